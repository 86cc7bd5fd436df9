"""Rules on lending and borrowing, on departments, and on what an engine or Slurm takes of them."""

from collections import defaultdict

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance
from ...quota.guarantees import leading
from ..cluster.slurm import on_slurm
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .quotas import amounts, policy


@rule("GOV021", WARNING, on=Environment, source="cfn-compute-quota")
def groups_of_one_type(environment: Environment) -> Problems:
    """Groups that task governance cannot tell apart."""
    groups, observed = environment.instance_groups, set[str]()
    for path, key, _ in amounts(environment):
        if environment.governance.engine != "hyperpod" or key not in groups or len(groups[key].types) != 1:
            continue
        (name,) = groups[key].types
        same = [
            other
            for other, group in groups.items()
            if name in group.types and other != environment.cluster.system_group
        ]
        if len(same) > 1 and name not in observed:
            observed.add(name)
            yield Problem(
                path,
                f"{listed(same, 'and')} hold {name}, and task governance counts types: what is guaranteed of {key} may "
                "be had of any of them",
                f"write {name}, so that the file says what is counted; or use engine kueue, which counts groups",
            )


@rule("GOV022", WARNING, on=Environment, source="hyperpod-governance")
def nobody_lends(environment: Environment, types: Catalog) -> Problems:
    """Borrowing limit where no team lends."""
    quota_policy = policy(environment, types)
    for name, team in quota_policy.teams.items():
        settings = environment.governance.teams[name]
        specified = sorted(settings.model_fields_set & {"share", "borrow_limit_percent", "borrow_limits", "weight"})
        idle = {
            resource
            for flavor, shares in team.shares.items()
            for resource in leading(quota_policy.flavors[flavor])
            if quota_policy.pool[flavor].get(resource, 0) > shares[resource].lendable
        }
        if team.share == "lend_and_borrow" and specified and not idle and environment.has_cluster:
            others = len(quota_policy.teams) - 1
            yield Problem(
                ("governance", "teams", name, specified[0]),
                f"{name} may borrow, but {'no other team lends' if others else 'is the only team'} and quotas "
                "cover all capacity: it cannot borrow anything",
                "let a team lend, leave capacity without quota, or remove this setting",
            )


@rule("GOV023", INFO, on=Environment, source="")
def less_than_an_instance(environment: Environment) -> Problems:
    """Borrowing limit below one instance."""
    for name, team in environment.governance.teams.items():
        for key, amount in team.quota.items():
            percent = team.borrow_limit_percent
            borrows = team.share == "lend_and_borrow" and key not in team.borrow_limits
            if borrows and amount.instances and amount.instances * percent < 100:
                yield Problem(
                    ("governance", "teams", name, "borrow_limit_percent"),
                    f"{percent} % of {amount.instances} of {key} is less than one instance: {name} borrows parts of "
                    "one there and never a whole one",
                    # Rounded up: the smallest percentage that makes a whole instance.
                    f"set borrow_limit_percent to {-(-100 // amount.instances)} or more, or accept this",
                )


@rule("GOV026", ERROR, on=Environment, source="", final=True)
def slurm_is_the_engine(environment: Environment) -> Problems:
    """Quota engine on a Slurm cluster."""
    if on_slurm(environment) and environment.governance.engine:
        yield Problem(
            ("governance", "engine"),
            f"engine is {environment.governance.engine}, which runs on EKS; Slurm keeps quotas itself",
            "remove it, or use orchestrator eks",
        )


@rule("GOV027", WARNING, on=Environment, source="slurm-limits")
def slurm_has_none_of_it(environment: Environment) -> Problems:
    """Quota settings that Slurm does not support."""
    governance = environment.governance
    if not on_slurm(environment):
        return
    specified = [(field,) for field in ("departments", "wait_for_pods") if getattr(governance, field)]
    specified += [("teams", name, "borrow_limits") for name, team in governance.teams.items() if team.borrow_limits]
    for path in specified:
        yield Problem(("governance", *path), f"{path[-1]} has no effect on Slurm", "remove it, or use orchestrator eks")
    if not governance.idle_resource_sharing:
        yield Problem(
            ("governance", "idle_resource_sharing"),
            "idle_resource_sharing is false: Slurm cannot keep idle nodes from teams that may borrow",
            "remove it; use share lend for teams that may not borrow",
        )


@rule("GOV028", ERROR, on=Environment, source="slurm-limits", final=True)
def whole_on_slurm(environment: Environment) -> Problems:
    """Partial-instance quota on Slurm."""
    for path, key, amount in amounts(environment):
        if on_slurm(environment) and path[3] == "quota" and amount.instances is None:
            yield Problem(
                path,
                f"{listed(sorted(amount.model_fields_set), 'and')} of {key} is counted; Slurm's quotas are made of "
                "whole instances, whose GPUs and CPUs it counts",
                f"give a number of instances, such as `{key}: 2`",
            )


@rule("GOV029", ERROR, on=Governance, source="", final=True)
def known_departments(governance: Governance) -> Problems:
    """Unknown department."""
    known = governance.departments
    specified = {("teams", name, "department"): team.department for name, team in governance.teams.items()}
    specified |= {("departments", name, "parent"): department.parent for name, department in known.items()}
    for path, name in specified.items():
        if name is not None and name not in known:
            yield Problem(
                path,
                f"{name} is not under departments; known are {listed(known, 'and')}",
                "correct the name, or add the department",
            )


@rule("GOV030", ERROR, on=Governance, source="kueue-api", final=True)
def no_circle(governance: Governance) -> Problems:
    """Departments that contain each other."""
    for name in governance.departments:
        way = [name]
        # A department may lead into a circle without being in it: the walk ends there, and the circle's members are
        # reported.
        while (parent := governance.departments[way[-1]].parent) in governance.departments and parent not in way:
            way.append(parent)
        if parent == name:
            yield Problem(
                ("departments", name, "parent"), f"{' is part of '.join([*way, name])}", "remove one of the references"
            )


@rule("GOV031", WARNING, on=Governance, source="cfn-compute-quota")
def one_level(governance: Governance) -> Problems:
    """Task governance does not support departments."""
    if governance.departments and governance.engine == "hyperpod":
        yield Problem(
            "departments",
            "task governance has teams only: all lend to all, and a department's weight has no effect",
            "use engine kueue or kai, or accept this",
        )


@rule("GOV032", ERROR, on=Governance, source="", final=True)
def one_name_each(governance: Governance) -> Problems:
    """Department and team with the same name."""
    for name in governance.departments.keys() & governance.teams.keys():
        yield Problem(
            ("departments", name),
            f"{name} is a team too, and queues of both have one name space",
            "call one of them otherwise",
        )


@rule("GOV033", ERROR, on=Environment, source="cfn-compute-quota", final=True)
def one_type_in_a_group(environment: Environment) -> Problems:
    """Task governance quota on a mixed instance group."""
    for path, key, _ in amounts(environment):
        group = environment.instance_groups.get(key)
        if environment.governance.engine == "hyperpod" and group and len(group.types) > 1:
            yield Problem(
                path,
                f"{key} may hold {listed(group.types)}, and a compute quota counts instances of one type",
                "make a group of each type, or use engine kueue",
            )


@rule("GOV034", ERROR, on=Environment, source="cfn-compute-quota", final=True)
def entries_of_a_quota(environment: Environment, types: Catalog) -> Problems:
    """Quota above task governance's limit."""
    teams = policy(environment, types).teams if environment.governance.engine == "hyperpod" else {}
    most = limits().compute_quota.resources
    for name, team in teams.items():
        if len(team.shares) > most:
            yield Problem(
                ("governance", "teams", name, "quota"),
                f"{name} may use {len(team.shares)} instance types, and one compute quota takes {most}",
                "name fewer types, or make two teams of it",
            )
        for flavor, shares in team.shares.items():
            nominal = [resource for resource, share in shares.items() if share.nominal]
            several = [resource.rpartition("/")[2] for resource in nominal if "/mig-" in resource]
            if len(several) > 1:
                yield Problem(
                    ("governance", "teams", name, "quota"),
                    f"{name} is guaranteed {listed(several, 'and')} of {flavor}, and an entry of a compute quota has "
                    "room for one profile",
                    "keep one of them, make a team for each profile, or use engine kueue",
                )


@rule("GOV035", ERROR, on=Environment, source="kubernetes", final=True)
def names_in_lower_case(environment: Environment) -> Problems:
    """Group names differ only in case."""
    if not environment.governance.teams or on_slurm(environment) or environment.governance.engine == "hyperpod":
        return
    same: defaultdict[str, list[str]] = defaultdict(list)
    for name in environment.instance_groups:
        same[name.lower()].append(name)
    for first, *others in same.values():
        for name in others:
            yield Problem(
                ("instance_groups", name),
                f"{name} and {first} are one name in Kubernetes, where quotas would not tell them apart",
                "call one of them otherwise",
            )


@rule("GOV036", INFO, on=Governance, source="kueue-fair")
def weights_without_fair_share(governance: Governance) -> Problems:
    """Fair-share weights without fair sharing."""
    specified = [name for name, team in governance.teams.items() if "weight" in team.model_fields_set]
    if specified and not governance.fair_share:
        yield Problem(
            "fair_share",
            f"fair_share is off: idle resources go to the first request, and the weights of {listed(specified, 'and')} "
            "have no effect",
            "turn it on, or remove the weights",
        )
