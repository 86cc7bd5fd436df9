"""Rules on jobs by themselves: names, nodes, pods, layouts, and what elastic training does not go with."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....config.catalog.instance_types import LOGICAL_CORES, Catalog, logical_cores
from ....config.catalog.topologies import topology
from ....config.findings import listed
from ....config.settings.environment import Environment
from ...jobs.batch_script import account_of
from ...jobs.plan import JobPlan, Planner
from ...jobs.topology import LABELS, ultraserver
from ...node.slurm_facts import team_limits
from ...quota.amounts import CPU, EFA, MEMORY, in_words
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import known

_LONGEST = 63
_BATCH = "sbatch"


class PlannedJob(NamedTuple):
    """A job of the file with its plan."""

    name: str
    job: Any
    plan: JobPlan


class _Looked(NamedTuple):
    """The plans that were made last, and of what."""

    environment: Environment
    types: Catalog
    plans: list[PlannedJob]


# Many rules look at the same plans, one environment after the other.
_LAST: list[_Looked] = []


def plans(environment: Environment, types: Catalog) -> list[PlannedJob]:
    """The jobs of Kubernetes that can be planned, with their plans: what they name is there."""
    if not environment.jobs:
        return []
    if not _LAST or _LAST[0].environment is not environment or _LAST[0].types is not types:
        _LAST[:] = [_Looked(environment, types, list(_planned(environment, types)))]
    return _LAST[0].plans


def _planned(environment: Environment, types: Catalog) -> Iterator[PlannedJob]:
    """The plans of jobs, in the order of the file."""
    if environment.cluster.orchestrator != "eks":
        return
    planner = Planner(environment, types)
    governance = environment.governance
    for name, job in environment.jobs.items():
        group = environment.instance_groups.get(job.group)
        wrong_team = job.team is not None and job.team not in governance.teams
        wrong_priority = any(priority not in governance.priorities for _, priority in _priorities(job))
        if (
            job.kind != _BATCH
            and group
            and len(known(group, types)) == len(group.types) > 0
            and not wrong_team
            and not wrong_priority
        ):
            yield PlannedJob(name, job, planner.plan(name))


def _priorities(job: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The priorities that a job names, each with where."""
    if job.priority:
        yield ("priority",), job.priority
    if job.kind == "hyperpod_pytorch" and job.elastic and job.elastic.extra_priority:
        yield ("elastic", "extra_priority"), job.elastic.extra_priority


@rule("JOB001", ERROR, on=Environment, source="", final=True)
def names_what_is_there(environment: Environment) -> Problems:
    """Job with an unknown group, team or priority."""
    governance = environment.governance
    for name, job in environment.jobs.items():
        path = ("jobs", name)
        if job.group not in environment.instance_groups:
            yield Problem(
                (*path, "group"),
                f"group is {job.group}; instance groups are {listed(environment.instance_groups, 'and')}",
                "name one of them",
            )
        if job.team is not None and job.team not in governance.teams:
            yield Problem(
                (*path, "team"),
                f"team is {job.team}; teams are {listed(governance.teams, 'and')}",
                "name one of them, or add it under governance.teams",
            )
        for where, priority in _priorities(job):
            if priority not in governance.priorities:
                yield Problem(
                    (*path, *where),
                    f"{where[-1]} is {priority}; priorities are {listed(governance.priorities, 'and')}",
                    "name one of them, or add it under governance.priorities",
                )


@rule("JOB002", ERROR, on=Environment, source="", final=True)
def only_on_eks(environment: Environment) -> Problems:
    """Job for another orchestrator."""
    orchestrator = environment.cluster.orchestrator
    for name, job in environment.jobs.items():
        if (job.kind == _BATCH) == (orchestrator == "slurm"):
            continue
        what = (
            "a batch script, and there is no Slurm" if job.kind == _BATCH else "Kubernetes objects, and there are none"
        )
        yield Problem(
            ("jobs", name, "kind"),
            f"kind is {job.kind} and orchestrator is {orchestrator}; it becomes {what}",
            "write `kind: sbatch`" if orchestrator == "slurm" else "take another kind: docs/user/jobs.md has them",
        )


@rule("JOB003", WARNING, on=Environment, source="kueue-fair")
def outside_of_quotas(environment: Environment) -> Problems:
    """Job outside every quota, or in another team's namespace."""
    for name, job in environment.jobs.items():
        if job.team is None and environment.governance.teams:
            yield Problem(
                ("jobs", name),
                "the job has no team, so it waits in no queue and takes nodes that teams were promised",
                f"set team to {listed(environment.governance.teams)}",
            )
        elif job.team is not None and job.namespace is not None:
            yield Problem(
                ("jobs", name, "namespace"),
                f"namespace is {job.namespace}, and a job of team {job.team} runs in the team's own",
                "remove one of the two",
            )


@rule("JOB004", ERROR, on=Environment, source="k8s-names kuberay", final=True)
def short_enough(environment: Environment) -> Problems:
    """Job name too long for its pods."""
    for name, job in environment.jobs.items():
        longest = _longest_name(name, job)
        if len(longest) > _LONGEST:
            yield Problem(
                ("jobs", name),
                f"a {job.kind} job called {name} makes {longest}, of {len(longest)} characters; Kubernetes takes "
                f"{_LONGEST}",
                f"shorten the name to {len(name) - len(longest) + _LONGEST} characters",
            )


def _longest_name(name: str, job: Any) -> str:
    """The longest name that the job's operator makes of its own."""
    last = (job.sizes[-1] if job.distributed else 1) - 1
    parts = getattr(job, "parts", 1) - 1
    suffixes = {
        "hyperpod_pytorch": f"-elastic-{last}",
        "pytorch": f"-worker-{last}",
        # The cluster is called after the job and five random characters, and its service after the cluster.
        "ray": "-xxxxx-head-svc",
        "ray_cluster": "-head-svc",
        "jobset": f"-node-{parts}-{last}-xxxxx",
        "leader_worker_set": f"-{parts}-{last}",
        "nccl_test": f"-worker-{last}",
        "mpi": f"-worker-{last}",
        "train": f"-node-0-{last}-xxxxx",
        "job": f"-{last}-xxxxx",
    }
    return name + suffixes.get(job.kind, "")


@rule("JOB005", ERROR, on=Environment, source="")
def enough_nodes(environment: Environment, types: Catalog) -> Problems:
    """More pods than the group can run."""
    for name, job, plan in plans(environment, types):
        group = environment.instance_groups[job.group]
        each = _pods_per_node(environment, plan, types)
        free = each * group.count
        if plan.head and each and plan.gang <= free:
            yield from _capacity_for_head(environment, name, plan, types, each)
        if plan.gang > free > 0:
            yield Problem(
                ("jobs", name, *size_field(job)),
                f"it needs {plan.gang} pods at once; {job.group} has {group.count} instances with room for {free}",
                f"lower it to {free}, or raise count of {job.group} to "
                f"{-(-plan.gang * group.count // free) if free else plan.gang}",
            )


def _capacity_for_head(environment: Environment, name: str, plan: JobPlan, types: Catalog, each: int) -> Problems:
    """A head with accelerators that fits neither beside the last pods nor on a node of its own."""
    has, group = _node(environment, plan, types), environment.instance_groups[plan.job.group]
    nodes = -(-plan.gang // each)
    beside = plan.gang - (nodes - 1) * each
    taken = {resource: amount * beside for resource, amount in plan.pod.resources.items()}
    fits = all(amount + taken.get(resource, 0) <= has.get(resource, 0) for resource, amount in plan.head.items())
    needed = nodes if fits else nodes + 1
    if needed > group.count:
        yield Problem(
            ("jobs", name, "head", "accelerators"),
            f"its {plan.gang} pods and its head need {needed} instances at once; {group.count} are in {plan.job.group}",
            f"lower nodes by {needed - group.count}, give the head no accelerators, or raise count of "
            f"{plan.job.group} to {needed}",
        )


def size_field(job: Any) -> tuple[str, ...]:
    """The field that says how many pods a job needs at least."""
    if getattr(job, "elastic", None) and job.nodes is None:
        return ("elastic", "min_replicas")
    return ("nodes",) if job.distributed else ()


def _pods_per_node(environment: Environment, plan: JobPlan, types: Catalog) -> int:
    has = _node(environment, plan, types)
    return min(has.get(name, 0) // amount for name, amount in plan.pod.resources.items() if amount)


def _node(environment: Environment, plan: JobPlan, types: Catalog) -> dict[str, int]:
    """What a node of the job's group has for its pods."""
    planner = Planner(environment, types)
    free = planner.allocatable(plan.job.group)
    return planner.devices(plan.job) | {CPU: free.cpu_millis, MEMORY: free.memory_mib}


@rule("JOB006", ERROR, on=Environment, source="hyperpod-cli")
def fits_a_node(environment: Environment, types: Catalog) -> Problems:
    """Pod larger than a node."""
    fields = {CPU: "vcpu", MEMORY: "memory_gib", EFA: "efa"}
    for name, job, plan in plans(environment, types):
        has = _node(environment, plan, types)
        for resource, amount in plan.pod.resources.items():
            if amount > has.get(resource, 0):
                field = fields.get(resource, "partition" if job.partition else "accelerators")
                yield Problem(
                    ("jobs", name, field),
                    f"a pod asks for {in_words(resource, amount)}; a node of {job.group} has "
                    f"{in_words(resource, has.get(resource, 0))} for pods of jobs",
                    "lower it, or leave it out: podwright then takes what fits",
                )
        for resource, amount in plan.head.items():
            if amount > has.get(resource, 0):
                yield Problem(
                    ("jobs", name, "head", fields.get(resource, "accelerators")),
                    f"the head asks for {in_words(resource, amount)}; a node of {job.group} has "
                    f"{in_words(resource, has.get(resource, 0))} for pods of jobs",
                    "lower it",
                )


@rule("JOB007", ERROR, on=Environment, source="efa-guide")
def talks_over_efa(environment: Environment, types: Catalog) -> Problems:
    """Multi-node job that does not use EFA."""
    for name, job, plan in plans(environment, types):
        rows = known(environment.instance_groups[job.group], types)
        if not job.distributed or job.sizes[-1] == 1 or EFA in plan.pod.resources or job.partition:
            continue
        if rows[0].accelerator_count and all(row.efa_interfaces for row in rows):
            yield Problem(
                ("jobs", name, "efa" if job.efa == 0 else "accelerators"),
                f"its {job.sizes[-1]} pods get no EFA interface, so they talk over TCP, at a small part of the speed; "
                "a job that waits for EFA hangs",
                f"leave efa out: a whole node of {job.group} has {rows[0].efa_interfaces}",
            )


@rule("JOB008", WARNING, on=Environment, source="efa-guide")
def no_efa_there(environment: Environment, types: Catalog) -> Problems:
    """Multi-node job on instances without EFA."""
    for name, job, _ in plans(environment, types):
        rows = known(environment.instance_groups[job.group], types)
        without = [row.name for row in rows if row.accelerator_count and not row.efa_interfaces]
        if job.distributed and job.sizes[-1] > 1 and without:
            yield Problem(
                ("jobs", name, "group"),
                f"{listed(without, 'and')} has no EFA, so {job.sizes[-1]} pods talk over TCP at "
                f"{rows[0].network_gbps:g} Gb/s",
                "use a larger size of the family, or one instance",
            )


@rule("JOB009", ERROR, on=Environment, source="")
def layout_divides(environment: Environment, types: Catalog) -> Problems:
    """Job size that its parallelism does not divide."""
    for name, job, plan in plans(environment, types):
        if not job.distributed:
            continue
        layout, per_pod = job.parallelism, plan.pod.ranks
        wrong = [size for size in job.sizes if not layout.divides(size * per_pod)]
        if wrong:
            parts = f"TP {layout.tensor} × PP {layout.pipeline} × CP {layout.context} = {layout.model_ranks}"
            inner = f"EP {layout.expert} × ETP {layout.expert_tensor or 1} = {layout.expert_ranks}"
            experts = f", and its experts {inner} of a stage's" if layout.expert_ranks > 1 else ""
            legal = [size for size in job.sizes if size not in wrong]
            yield Problem(
                ("jobs", name, "elastic" if getattr(job, "elastic", None) else "parallelism"),
                f"with {listed(wrong, 'and')} pods of {per_pod} ranks it has "
                f"{listed((size * per_pod for size in wrong), 'and')} ranks; each copy of the model takes {parts}"
                f"{experts}",
                f"allow only {listed(legal, 'and')} pods" if legal else "change parallelism or the number of pods",
            )


@rule("JOB010", WARNING, on=Environment, source="nvidia eks-ultraserver")
def tensor_stays_inside(environment: Environment, types: Catalog) -> Problems:
    """Tensor parallelism across NVLink domains."""
    for name, job, plan in plans(environment, types):
        rows = known(environment.instance_groups[job.group], types)
        if not job.distributed or not plan.pod.accelerators:
            continue
        domain = _domain(plan, rows, types)
        if job.parallelism.tensor > domain:
            yield Problem(
                ("jobs", name, "parallelism", "tensor"),
                f"tensor is {job.parallelism.tensor}, and {domain} ranks share an NVLink domain: every layer "
                "would wait for EFA",
                f"use at most {domain}, and pipeline stages for the rest",
            )


@rule("JOB036", ERROR, on=Environment, source="neuron-lnc")
def logical_cores_of_its_type(environment: Environment, types: Catalog) -> Problems:
    """Invalid number of logical NeuronCores."""
    for name, job, plan in plans(environment, types):
        for row in known(environment.instance_groups[job.group], types):
            size, allowed = plan.pod.env.get(LOGICAL_CORES), logical_cores(row).allowed
            if row.neuron_cores and size is not None and size not in map(str, allowed):
                yield Problem(
                    ("jobs", name, "env", LOGICAL_CORES),
                    f"{LOGICAL_CORES} is {size}; a logical core of {row.name} is of {listed(allowed)} physical cores",
                    "use one of these, and compile with the same --lnc; or leave it out",
                )


def _domain(plan: JobPlan, rows: Any, types: Catalog) -> int:
    """Ranks of a job that share an NVLink or NeuronLink domain."""
    server = ultraserver(rows, types)
    return server.accelerators * plan.pod.ranks_per_device if server else plan.pod.ranks


@rule("JOB035", WARNING, on=Environment, source="nvidia eks-ultraserver")
def experts_stay_inside(environment: Environment, types: Catalog) -> Problems:
    """Expert parallelism that leaves the NVLink domain."""
    for name, job, plan in plans(environment, types):
        rows = known(environment.instance_groups[job.group], types)
        if not job.distributed or not plan.pod.accelerators:
            continue
        layout, domain = job.parallelism, _domain(plan, rows, types)
        if layout.expert > 1 and layout.expert_ranks > domain:
            yield Problem(
                ("jobs", name, "parallelism", "expert"),
                f"EP {layout.expert} × ETP {layout.expert_tensor or 1} are {layout.expert_ranks} ranks, and {domain} "
                "ranks share an NVLink domain: tokens reach their experts over EFA, twice per layer",
                "accept it if the experts do not fit into a domain, with a library for it (DeepEP, or NCCL's "
                f"alltoall measured by kind nccl_test); else use at most {domain}",
            )


@rule("JOB011", ERROR, on=Environment, source="hyperpod-elastic")
def starts_at_a_size(environment: Environment) -> Problems:
    """Elastic job starts at an invalid size."""
    for name, job in environment.jobs.items():
        if (job.kind == "hyperpod_pytorch" or job.kind == "pytorch") and job.elastic and job.start not in job.sizes:
            yield Problem(
                ("jobs", name, "nodes"),
                f"nodes is {job.start}; it may have {listed(job.sizes)}",
                f"use one of them, or leave nodes out: it starts with {job.model_copy(update={'nodes': None}).start}",
            )


@rule("JOB012", ERROR, on=Environment, source="hyperpod-elastic")
def elastic_goes_with(environment: Environment) -> Problems:
    """Elastic training with an unsupported setting."""
    for name, job in environment.jobs.items():
        if job.kind != "hyperpod_pytorch" or job.elastic is None:
            continue
        group = environment.instance_groups.get(job.group)
        against = {
            ("checkpoints", "tiered"): job.checkpoints.tiered,
            ("checkpoints", "checkpointless"): job.checkpoints.checkpointless,
            ("group",): group is not None and group.capacity == "spot",
        }
        for field, specified in against.items():
            if specified:
                what = f"group {job.group} is Spot capacity" if field == ("group",) else f"{field[-1]} is set"
                yield Problem(
                    ("jobs", name, *field),
                    f"{what}, which elastic training does not support",
                    "remove it, or `elastic`; PyTorch's DCP to a shared file system loads at every size",
                )


@rule("JOB013", ERROR, on=Environment, source="hyperpod-tiered")
def tier_is_there(environment: Environment) -> Problems:
    """Tiered checkpoints on a cluster without them."""
    for name, job in environment.jobs.items():
        checkpoints = getattr(job, "checkpoints", None)
        if checkpoints and checkpoints.tiered and not environment.cluster.tiered_checkpoints:
            yield Problem(
                ("jobs", name, "checkpoints", "tiered"),
                "tiered is on, and no node keeps memory for checkpoints",
                "add `tiered_checkpoints: {memory_percent: 20}` under cluster, or remove it",
            )


@rule("JOB014", ERROR, on=Environment, source="hyperpod-topology hyperpod-ultraservers")
def fits_its_domain(environment: Environment, types: Catalog) -> Problems:
    """Gang larger than its required topology level."""
    for name, job, plan in plans(environment, types):
        desired = plan.pod.placement
        if desired is None:
            continue
        rows = known(environment.instance_groups[job.group], types)
        levels = topology([row.name for row in rows], types).levels[:-1]
        if desired.label not in levels:
            existing = listed((level for level, label in LABELS.items() if label in levels), "and")
            yield Problem(
                ("jobs", name, "topology"),
                f"topology is {job.topology}; nodes of {job.group} say of themselves: {existing}",
                "use one of those, or `none`",
            )
        elif desired.required and (server := ultraserver(rows, types)) and plan.gang > server.instances:
            yield Problem(
                ("jobs", name, "topology_required"),
                f"its {plan.gang} pods have to share one {server.name}, which has {server.instances} instances: they "
                "would wait forever",
                f"use at most {server.instances} nodes, or `topology_required: false`",
            )


@rule("JOB050", ERROR, on=Environment, source="")
def batch_job_can_start(environment: Environment, types: Catalog) -> Problems:
    """Batch job that Slurm never starts."""
    for name, job in environment.jobs.items():
        group = environment.instance_groups.get(job.group)
        if job.kind != _BATCH or group is None or group.slurm is None:
            continue
        if group.slurm.node_type != "compute":
            yield Problem(
                ("jobs", name, "group"),
                f"{job.group} is a group of {group.slurm.node_type} nodes, which run no jobs",
                "name a group of compute nodes",
            )
        elif job.start > group.count:
            yield Problem(
                ("jobs", name, "nodes"),
                f"it needs {job.start} nodes at once; {job.group} has {group.count}",
                f"lower it to {group.count}, or raise count of {job.group}",
            )
        elif job.team in environment.governance.teams:
            yield from _within_account(environment, name, job, types)


def _within_account(environment: Environment, name: str, job: Any, types: Catalog) -> Problems:
    """The accounts that a team has, and the limit of the one that the job runs in."""
    team, groups = environment.governance.teams[job.team], environment.instance_groups
    if job.borrow and team.share != "lend_and_borrow":
        yield Problem(
            ("jobs", name, "borrow"),
            f"team {job.team} shares by {team.share}, so it has no account for what it borrows",
            "leave borrow out, or set `share: lend_and_borrow` of the team",
        )
        return
    # What a quota names that is not there is another rule's matter.
    rows = known(groups[job.group], types)
    if not rows or any(len(known(groups[key], types)) < len(groups[key].types) for key in team.quota if key in groups):
        return
    if not team.quota.keys() <= groups.keys():
        return
    limits = team_limits(environment.governance.model_copy(update={"teams": {job.team: team}}), groups, types)[job.team]
    if "gres/gpu" not in limits:
        return
    most = limits["gres/gpu"] * team.borrow_limit_percent // 100 if job.borrow else limits["gres/gpu"]
    each = min(row.accelerator_count for row in rows) if job.accelerators is None else job.accelerators
    if job.start * each > most:
        yield Problem(
            ("jobs", name, "nodes"),
            f"{job.start} nodes have {job.start * each} GPUs; account {account_of(job)} is limited to {most}",
            f"run at most {most // each} nodes, or give {job.team} more",
        )


@rule("JOB051", ERROR, on=Environment, source="")
def nothing_of_kubernetes(environment: Environment) -> Problems:
    """Kubernetes setting on a Slurm batch job."""
    for name, job in environment.jobs.items():
        if job.kind == _BATCH:
            for field in sorted(job.model_fields_set & _OF_KUBERNETES.keys()):
                yield Problem(
                    ("jobs", name, field),
                    f"{field} is for jobs on EKS; Slurm knows nothing of it",
                    _OF_KUBERNETES[field],
                )


# What stands in their place on Slurm.
_OF_KUBERNETES = {
    "namespace": "remove it: the account is that of the team",
    "mounts": "remove it: shared file systems are in the container; `folders` has others",
    "secrets": "remove it: read the secret in the command, from where the node's role may",
    "config_maps": "remove it: put the file on a shared file system",
    "scratch": "name a folder of the node under `folders`",
    "security": "remove it: the job runs as the user who submits it",
    "pull": "remove it: enroot keeps images by their digest",
    "pull_secrets": "remove it: enroot reads the credentials of the user who submits",
    "tolerations": "remove it: Slurm knows no taints",
    "affinity": "remove it: Slurm places by partition and topology.conf",
    "init": "write it into the command",
    "requests": "remove it: a job has what it asks for",
    "patch": "remove it: there is no object to patch",
    "service_account": "remove it: the job has the role of its node",
    "labels": "remove it: `env` reaches the job",
    "partition": "remove it; Slurm's partition is that of the group",
    "shm_gib": "remove it: the container has the node's /dev/shm",
    "efa": "remove it: the job has all interfaces of its nodes",
    "huge_pages_mib": "remove it: the job has those of its nodes",
    "host_network": "remove it: the job uses the node's network in any case",
    "topology": "remove it: Slurm places by topology.conf",
    "topology_required": "remove it: Slurm places by topology.conf",
}
