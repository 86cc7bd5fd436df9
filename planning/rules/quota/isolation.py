"""Rules on what keeps teams apart: people, pods, storage, network and ceilings of a team's namespace."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.team_access import Claim, ContainerLimits, ServiceAccount, Size, TeamAccess
from ...kubernetes.isolation import CAPABILITIES, team_access
from ...quota.amounts import GPU, NEURON
from ..cluster.slurm import on_slurm
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from .quotas import policy

_TEAMS = ("governance", "teams")
# What a role that is made brings in its stack: role, policy, association and output; an existing role the last two.
_PER_ACCOUNT, _PER_ADOPTED = 3, 1


@rule("ISO001", WARNING, on=Environment, source="")
def only_in_kubernetes(environment: Environment) -> Problems:
    """Team access without a namespace."""
    for name in team_access(environment.governance) if on_slurm(environment) else ():
        yield Problem(
            (*_TEAMS, name, "access"),
            "access has no effect: with Slurm there are no namespaces, and people are the team's users",
            "remove it, and name the team's people under users",
        )


@rule("ISO002", ERROR, on=Environment, source="", final=True)
def claims_of_nothing(environment: Environment) -> Problems:
    """Claim on an unknown file system."""
    known = environment.storage.lustres
    for team, name, claim in _claims(environment):
        if claim.file_system not in known:
            yield Problem(
                (*_TEAMS, team, "access", "storage", name, "file_system"),
                f"there is no Lustre file system {claim.file_system}; known are {listed(known, 'and')}",
                "correct the name, or add the file system under storage",
            )


@rule("ISO003", WARNING, on=Environment, source="")
def folders_of_two(environment: Environment) -> Problems:
    """Folder that two teams write to."""
    written = [item for item in _claims(environment) if not item.claim.read_only]
    for (first, _, one), (team, name, two) in combinations(written, 2):
        if first != team and one.file_system == two.file_system and _within(one.path, two.path):
            yield Problem(
                (*_TEAMS, team, "access", "storage", name, "path"),
                f"{team} writes in {two.path} and {first} in {one.path} of {two.file_system}: each can change and "
                "delete what the other has there",
                "give each team its own folder, or make one of the claims read_only",
            )


@rule("ISO004", ERROR, on=Environment, source="cfn-eks", final=True)
def roles_with_an_entry(environment: Environment) -> Problems:
    """Team role that already has an access entry."""
    eks = environment.cluster.eks
    taken = dict.fromkeys(eks.admins, "an admin of the cluster")
    if eks.existing:
        taken[eks.existing.kubectl_role] = "the role that charts are applied with"
    for name, access in team_access(environment.governance).items():
        for arn in access.roles.keys() & taken.keys():
            yield Problem(
                (*_TEAMS, name, "access", "roles", arn),
                f"{arn} is {taken[arn]}; a cluster takes one access entry of a role, and that one may do everything",
                "remove it here, or name another role",
            )


@rule("ISO005", WARNING, on=Environment, source="eks-network-policy")
def beside_the_policy(environment: Environment) -> Problems:
    """Host network in an isolated namespace."""
    access = team_access(environment.governance)
    for name, job in environment.jobs.items():
        result = access.get(job.team) if job.team else None
        if result and result.network is not None and getattr(job, "uses_host_network", False):
            yield Problem(
                ("jobs", name),
                f"the pods of {name} use the node's network, which no network policy covers: whatever isolates "
                f"{job.team} does not hold for them",
                "do without host_network, or accept this",
            )


@rule("ISO006", ERROR, on=ServiceAccount, source="", final=True)
def role_and_more(account: ServiceAccount) -> Problems:
    """Permissions for an existing role."""
    more = sorted(account.model_fields_set & {"read", "write", "checkpoints", "keys", "policies"})
    if account.role and more:
        yield Problem(
            more[0],
            f"role names an existing role, to which podwright adds nothing: {listed(more, 'and')} would have no effect",
            "give that role its permissions where it is made, or leave role out",
        )


@rule("ISO007", WARNING, on=TeamAccess, source="k8s-resource-quota")
def caps_without_defaults(access: TeamAccess) -> Problems:
    """Resource cap that refuses pods without requests."""
    if access.caps is None:
        return
    limits_ = access.limits or ContainerLimits()
    for field in ("vcpu", "memory_gib"):
        defaults = [getattr(size, field) for size in (limits_.request, limits_.limit) if size]
        if getattr(access.caps, field) is not None and not any(defaults):
            yield Problem(
                ("caps", field),
                f"with a ceiling of {field} Kubernetes refuses every pod that does not say how much it asks for",
                f"set limits: {{request: {{{field}: …}}}}, or accept this where all pods say it",
            )


@rule("ISO008", ERROR, on=ContainerLimits, source="k8s-limit-range", final=True)
def limits_in_order(container_limits: ContainerLimits) -> Problems:
    """Contradictory container limits."""
    order = [(name, getattr(container_limits, name) or Size()) for name in ("request", "limit", "most")]
    for (low, one), (high, two) in combinations(order, 2):
        for field in ("vcpu", "memory_gib"):
            less, more = getattr(one, field), getattr(two, field)
            if less is not None and more is not None and less > more:
                yield Problem(
                    (low, field),
                    f"{low} is {less:g} {field} and {high} {more:g}; allowed: request ≤ limit ≤ most",
                    "lower the one or raise the other",
                )


@rule("ISO009", WARNING, on=Environment, source="")
def not_our_namespace(environment: Environment) -> Problems:
    """Pod security standard on a namespace of task governance."""
    for name, access in team_access(environment.governance).items():
        ours = environment.governance.engine != "hyperpod"
        if not ours and access.pod_security in ("baseline", "restricted"):
            yield Problem(
                (*_TEAMS, name, "access", "pod_security"),
                "pod_security has no effect: the standard is a label of the namespace, which task governance makes "
                "and keeps",
                "label the namespace by hand, or use another engine",
            )


@rule("ISO010", ERROR, on=Environment, source="cfn-quotas", final=True)
def entries_in_one_stack(environment: Environment) -> Problems:
    """Too many team resources for one stack."""
    access = team_access(environment.governance)
    accounts = [account for team in access.values() for account in team.service_accounts.values()]
    entries = len({arn for team in access.values() for arn in team.roles})
    made = sum(account.role is None for account in accounts)
    total = entries + made * _PER_ACCOUNT + (len(accounts) - made) * _PER_ADOPTED
    most = limits().cloudformation
    if total > most.resources or len(accounts) > most.outputs:
        yield Problem(
            _TEAMS,
            f"{entries} roles and {len(accounts)} service accounts, {made} of them with a role that is made, are "
            f"{total} resources and {len(accounts)} outputs of one stack; CloudFormation takes {most.resources} and "
            f"{most.outputs}",
            "let service accounts share existing roles, or spread the teams over several environments",
        )


@rule("ISO011", WARNING, on=Environment, source="eks-network-policy")
def policies_of_an_existing_cluster(environment: Environment) -> Problems:
    """Network isolation on an existing EKS cluster."""
    existing = environment.cluster.eks.existing
    closed = [name for name, access in team_access(environment.governance).items() if access.network is not None]
    if existing and closed:
        yield Problem(
            ("cluster", "eks", "existing"),
            f"teams have isolated networks; whether {existing.name} obeys network policies is its owner's setting",
            'set enableNetworkPolicy: "true" in the configuration of its VPC CNI add-on, and accept this then',
        )


@rule("ISO012", ERROR, on=Environment, source="k8s-pod-security")
def refused_by_the_standard(environment: Environment) -> Problems:
    """Job violates its namespace's security standard."""
    access = team_access(environment.governance)
    for name, job in environment.jobs.items():
        level = access[job.team].pod_security if job.team in access else None
        ours = environment.governance.engine != "hyperpod"
        if not ours or level not in ("baseline", "restricted"):
            continue
        reaches = {
            (): ("use the node's network", getattr(job, "uses_host_network", False)),
            ("scratch",): ("mount a folder of the node", job.scratch),
            # The standard itself has no IPC_LOCK, which podwright's own policy lets teams have.
            ("security",): (
                "may do more to the kernel",
                job.security.privileged or not set(job.security.capabilities) <= {*CAPABILITIES} - {"IPC_LOCK"},
            ),
        }
        for field, (what, specified) in reaches.items():
            if specified:
                yield Problem(
                    ("jobs", name, *field),
                    f"the pods of {name} {what}, and pod_security {level} of {job.team} refuses such pods",
                    f"do without {field[0] if field else 'host_network'}, or set pod_security: privileged",
                )


@rule("ISO013", WARNING, on=Environment, source="k8s-resource-quota")
def below_the_guarantee(environment: Environment, types: Catalog) -> Problems:
    """Resource cap below the guaranteed quota."""
    caps = {
        name: access.caps.accelerators
        for name, access in team_access(environment.governance).items()
        if access.caps and access.caps.accelerators is not None
    }
    teams = policy(environment, types).teams if caps else {}
    for name, cap in caps.items():
        shares = teams[name].shares.values() if name in teams else ()
        guaranteed = sum(share[device].nominal for share in shares for device in (GPU, NEURON) if device in share)
        if cap < guaranteed:
            yield Problem(
                (*_TEAMS, name, "access", "caps", "accelerators"),
                f"{guaranteed} accelerators are guaranteed to {name}, and its namespace takes {cap}: the rest of the "
                "guarantee can never be used",
                f"raise it to {guaranteed} or more, or lower the quota",
            )


@rule("ISO014", ERROR, on=Environment, source="cfn-capability", final=True)
def role_without_a_path(environment: Environment) -> Problems:
    """Capability role with a path."""
    argo_cd, path = environment.cluster.eks.argo_cd, environment.iam.role_path
    if argo_cd and (argo_cd.role or f"role{path}").partition("role/")[2].count("/"):
        yield Problem(
            ("cluster", "eks", "argo_cd"),
            f"Argo CD's role would be {argo_cd.role or f'below {path}'}; an EKS capability takes no role below a path",
            "name an existing role without a path under cluster.eks.argo_cd.role",
        )


@rule("ISO017", WARNING, on=Environment, source="hyperpod-cli-requests")
def default_below_requests(environment: Environment, types: Catalog) -> Problems:
    """Default limit below a container's request."""
    if environment.platform.training_operator is None:
        return
    names = {name for group in environment.instance_groups.values() for name in group.types}
    most = max((row.vcpu for name in names if (row := types.find(name))), default=0)
    for name, access in team_access(environment.governance).items():
        for field in ("limit", "most"):
            held = getattr(access.limits, field, None)
            if held and held.vcpu is not None and held.vcpu < most:
                yield Problem(
                    (*_TEAMS, name, "access", "limits", field, "vcpu"),
                    f"`hyp create hyp-pytorch-job` asks for most of a node's vCPUs, of {most} on the largest, and "
                    f"names no limit: with {held.vcpu:g} such a pod is refused, and its job waits without end",
                    f"set limits: {{request: {{vcpu: {held.vcpu:g}}}}} instead, or let people pass --vcpu-limit",
                )


class _NamedClaim(NamedTuple):
    team: str
    name: str
    claim: Claim


def _claims(environment: Environment) -> Iterator[_NamedClaim]:
    """Every claim of every team."""
    for team, access in team_access(environment.governance).items():
        for name, claim in access.storage.items():
            yield _NamedClaim(team, name, claim)


def _within(one: str, two: str) -> bool:
    """Whether one folder is the other or lies in it."""
    return f"{one}/".startswith(f"{two}/") or f"{two}/".startswith(f"{one}/")
