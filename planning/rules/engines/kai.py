"""Rules on what KAI makes of the quota policy, and what it has no words for."""

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.catalog.mig import MIG_RESOURCE
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance
from ...quota.amounts import EFA, NEURON
from ...quota.node_pools import KAI_POOL_LABEL, kai_queue, pool
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..jobs.jobs import plans
from ..quota.quotas import policy

# A Deployment of the pool's scheduler is called so, and a Service of that name has to be a DNS label.
_SCHEDULER = "kai-scheduler-"
# Their objects have no field for the scheduler of the pods.
_WITHOUT_SCHEDULER = ("inference", "jumpstart", "space", "train")


@rule("GOV070", WARNING, on=Governance, source="kai-docs")
def kai_lends_always(governance: Governance) -> Problems:
    """KAI lends the quota of a team that does not lend."""
    for name, team in governance.teams.items():
        if governance.engine == "kai" and team.share == "dont_lend" and team.quota:
            yield Problem(
                ("teams", name, "share"),
                f"share of {name} is dont_lend: KAI lends the idle resources of a queue, and reclaims them when "
                "the queue needs them",
                "use lend, which says that, or engine kueue, which can keep quotas idle",
            )


@rule("GOV071", INFO, on=Governance, source="kai-scheduling")
def kai_divides_always(governance: Governance) -> Problems:
    """KAI does not support FIFO order between teams."""
    if governance.engine == "kai" and governance.teams and not governance.fair_share:
        yield Problem(
            "fair_share",
            "fair_share is off: KAI still divides idle resources among queues, so each gets the same weight",
            "accept this, or use another engine",
        )


@rule("GOV072", WARNING, on=Environment, source="kai-docs")
def kai_counts_no_neuron(environment: Environment, types: Catalog) -> Problems:
    """KAI does not support Neuron quotas."""
    if environment.governance.engine != "kai":
        return
    quota_policy = policy(environment, types)
    for name, team in quota_policy.teams.items():
        for flavor, shares in team.shares.items():
            if NEURON in shares and shares[NEURON].nominal:
                yield Problem(
                    ("governance", "teams", name, "quota"),
                    f"{name} has {shares[NEURON].nominal} Neuron devices of {flavor}, which KAI's queues do not "
                    "count: only the team's quota of vCPU and memory limits it",
                    "let jobs ask for vCPU in proportion, as podwright's do, or use engine kueue or yunikorn",
                )


@rule("GOV073", INFO, on=Environment, source="kai-docs")
def kai_adds_partitions(environment: Environment, types: Catalog) -> Problems:
    """KAI counts MIG quotas as a sum."""
    if environment.governance.engine != "kai":
        return
    for name, flavor in policy(environment, types).flavors.items():
        profiles = sorted(
            resource.removeprefix(MIG_RESOURCE) for resource in flavor.capacity if resource.startswith(MIG_RESOURCE)
        )
        if profiles:
            yield Problem(
                ("governance", "teams"),
                f"{name} is cut into {listed(profiles, 'and')}; KAI counts a partition as its slices of compute, all "
                "in one number with whole GPUs, so a team may take its quota in any of them",
                "accept this, or use engine kueue, which counts each profile separately",
            )


@rule("GOV074", INFO, on=Governance, source="kai-docs")
def kai_stops_what_is_over(governance: Governance) -> Problems:
    """KAI preempts jobs of teams with preempt: never."""
    teams = [name for name, team in governance.teams.items() if team.preempt == "never"]
    if governance.engine == "kai" and teams and len(governance.priorities) > 1:
        yield Problem(
            ("teams", teams[0], "preempt"),
            f"preempt of {listed(teams, 'and')} is never: KAI gets a time that no job reaches before it may be stopped "
            "for the team's own higher priorities; pods beyond the fewest of an elastic job can still be",
            "accept this, or use another engine",
        )


@rule("GOV094", WARNING, on=Governance, source="kai-docs")
def kai_alone_waits(governance: Governance) -> Problems:
    """Quota engine does not support a minimum runtime."""
    for name, team in governance.teams.items():
        path = ("teams", name, "min_runtime_seconds")
        if team.min_runtime_seconds and governance.engine != "kai":
            yield Problem(
                path,
                f"work of {name} may be stopped at once: only KAI has a time before that",
                "remove it, write checkpoints more often, or use engine kai",
            )
        elif team.min_runtime_seconds and team.department:
            yield Problem(
                path,
                f"teams outside of {team.department} may stop work of {name} at once: between departments KAI takes "
                "the time of the department's queue, which has none",
                "take the team out of the department, or accept this",
            )


@rule("GOV075", WARNING, on=Governance, source="kai-scheduling")
def kai_waits_otherwise(governance: Governance) -> Problems:
    """Gang scheduling settings that KAI replaces."""
    specified = governance.wait_for_pods
    if governance.engine != "kai" or specified is None:
        return
    for field in sorted(specified.model_fields_set - {"recovery_timeout_seconds"}):
        yield Problem(
            ("wait_for_pods", field),
            f"{field} has no effect: KAI binds the pods of a gang together and does not watch how they get ready",
            "remove it; recovery_timeout_seconds says how long a gang may lack pods",
        )


@rule("GOV076", ERROR, on=Environment, source="kubernetes kai-chart", final=True)
def kai_names(environment: Environment, types: Catalog) -> Problems:
    """Name too long for KAI, or reserved label."""
    governance = environment.governance
    if governance.engine != "kai":
        return
    most = limits().cluster.label_value_length
    pools = policy(environment, types).flavors
    for name, group in environment.instance_groups.items():
        if pool(name) not in pools:
            continue
        if len(_SCHEDULER + pool(name)) > most:
            yield Problem(
                ("instance_groups", name),
                f"{name} has {len(name)} characters; the scheduler of its pool is called {_SCHEDULER}{pool(name)}, of "
                f"which {most} are allowed",
                f"shorten it to {most - len(_SCHEDULER)} characters",
            )
        if KAI_POOL_LABEL in group.labels:
            yield Problem(
                ("instance_groups", name, "labels", KAI_POOL_LABEL),
                f"{KAI_POOL_LABEL} is the label by which KAI knows the pool of {name}, and podwright sets it",
                "remove it",
            )
        for team in governance.teams:
            queue = kai_queue(team, name)
            if len(queue) > most:
                yield Problem(
                    ("governance", "teams", team),
                    f"the queue {queue} has {len(queue)} characters; jobs name it in a label, which holds {most}",
                    f"shorten {team} or {name} by {len(queue) - most} characters",
                )


@rule("GOV077", INFO, on=Environment, source="kai-docs")
def shared_gpus(environment: Environment, types: Catalog) -> Problems:
    """Shared GPUs without memory isolation."""
    if environment.governance.engine == "kai" and environment.governance.kai.gpu_sharing:
        yield Problem(
            ("governance", "kai", "gpu_sharing"),
            "KAI places pods by the fraction of a GPU that they ask for; a pod that takes more memory than that takes "
            "it from its neighbours, and a pod that shares a GPU uses no EFA and no partition",
            "accept this if the teams that share GPUs trust each other; use MIG partitions to isolate them",
        )


@rule("GOV078", INFO, on=Environment, source="kai-docs")
def kai_counts_no_efa(environment: Environment, types: Catalog) -> Problems:
    """KAI does not count EFA interfaces of shared nodes."""
    if environment.governance.engine != "kai":
        return
    quota_policy = policy(environment, types)
    for name, flavor in quota_policy.flavors.items():
        each = flavor.capacity.get(EFA, 0) // max(flavor.instances, 1)
        shares = {
            team.name: team.shares[name][EFA].nominal
            for team in quota_policy.teams.values()
            if EFA in team.shares.get(name, {})
        }
        parts = [team for team, held in shares.items() if each and held % each]
        if parts:
            yield Problem(
                ("governance", "teams", parts[0], "quota"),
                f"{listed(parts, 'and')} has no whole instances of {name}, so pods of several teams share nodes; KAI's "
                f"queues do not count the {each} EFA interfaces of each, and the first job may use all",
                "accept this if all jobs ask for EFA interfaces in proportion to their GPUs; or use engine "
                "kueue or yunikorn, which count them",
            )


@rule("GOV079", WARNING, on=Governance, source="")
def settings_of_another_engine(governance: Governance) -> Problems:
    """Settings of another quota engine."""
    for name in ("kai", "yunikorn"):
        if name in governance.model_fields_set and governance.engine != name:
            yield Problem(
                name,
                f"{name} has no effect: engine is {governance.engine or 'not set'}",
                f"remove it, or use engine {name}",
            )


@rule("GOV088", ERROR, on=Environment, source="kai-docs")
def kai_does_not_place(environment: Environment, types: Catalog) -> Problems:
    """Job kind that KAI does not schedule."""
    if environment.governance.engine != "kai":
        return
    for name, job, plan in plans(environment, types):
        if job.team and job.kind in _WITHOUT_SCHEDULER and plan.pod.accelerators:
            yield Problem(
                ("jobs", name, "kind"),
                f"kind is {job.kind}, whose operator names no scheduler in its pods: Kubernetes refuses those with "
                "accelerators in a team's namespace, because KAI would not count them",
                "use another kind, run it without a team in a separate namespace, or use engine hyperpod, kueue or "
                "yunikorn",
            )
