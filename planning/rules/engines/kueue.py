"""Rules on Kueue of one's own: flavors, topologies, what holds quota, and work that clusters share."""

from difflib import get_close_matches
from typing import Final

from ....config.catalog.charts import KUEUE, chart
from ....config.catalog.facts import table
from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.catalog.topologies import HOSTNAME, topology
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.kueue import FlavorChoice, Kueue, MultiKueue
from ....config.settings.governance.teams import WaitForPods
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..quota.quotas import policy

_SETTINGS: Final = ("governance", "kueue")
# What Kueue sees of a kind of job; HyperPodPyTorchJob brings its own part, and Spaces and endpoints run plain pods.
_FRAMEWORKS: Final = {
    "pytorch": "kubeflow.org/pytorchjob",
    "ray": "ray.io/rayjob",
    "ray_cluster": "ray.io/raycluster",
    "jobset": "jobset.x-k8s.io/jobset",
    "leader_worker_set": "leaderworkerset.x-k8s.io/leaderworkerset",
    "mpi": "kubeflow.org/mpijob",
    "nccl_test": "kubeflow.org/mpijob",
    "train": "trainer.kubeflow.org/trainjob",
    "job": "batch/job",
    "inference": "pod",
    "jumpstart": "pod",
    "space": "pod",
}


def _on(environment: Environment, *engines: str) -> bool:
    return environment.governance.engine in engines


@rule("GOV050", WARNING, on=Environment, source="kueue-tas hyperpod-topology")
def nodes_without_a_level(environment: Environment, types: Catalog) -> Problems:
    """Instance types of a group differ in topology levels."""
    for name, group in environment.instance_groups.items():
        labels = {
            instance_type: row.topology_labels for instance_type in group.types if (row := types.find(instance_type))
        }
        levels = topology(group.types, types).levels
        lost = {label for own in labels.values() for label in own} - set(levels)
        if lost and _on(environment, "kueue", "kai"):
            without = sorted(result for result, own in labels.items() if not lost <= set(own))
            yield Problem(
                ("instance_groups", name, "instance_types"),
                f"nodes of {listed(without, 'and')} have no {listed(sorted(lost), 'and')}, so the whole group is "
                f"placed by {listed(levels, 'and')} alone: a level that one node lacks would leave that node out",
                "make a group of each type, or accept this",
            )


@rule("GOV051", ERROR, on=Environment, source="kueue-api", final=True)
def taints_of_a_flavor(environment: Environment) -> Problems:
    """Too many taints for a resource flavor."""
    most = limits().kueue.taints
    for name, group in environment.instance_groups.items():
        if _on(environment, "kueue") and len(group.taints) > most:
            yield Problem(
                ("instance_groups", name, "taints"),
                f"{name} has {len(group.taints)} taints, and a flavor of Kueue allows {most}",
                "remove taints that all jobs tolerate, which keep no job away",
            )


@rule("GOV052", ERROR, on=Environment, source="kueue-api", final=True)
def flavors_of_a_queue(environment: Environment, types: Catalog) -> Problems:
    """Too many flavors for a cluster queue."""
    most = limits().kueue.flavors
    for name, team in policy(environment, types).teams.items() if _on(environment, "kueue") else ():
        if len(team.shares) > most:
            yield Problem(
                ("governance", "teams", name),
                f"{name} may use {len(team.shares)} groups, and a queue of Kueue holds {most}",
                f"give it a quota that names {most} groups at most, 0 where it only borrows",
            )


@rule("GOV053", ERROR, on=FlavorChoice, source="kueue-api", final=True)
def preference_of_two(choice: FlavorChoice) -> Problems:
    """Flavor preference without a choice."""
    if choice.preference and "may_stop_search" in (choice.when_can_borrow, choice.when_can_preempt):
        yield Problem(
            "preference",
            "preference counts only where Kueue looks at all groups; one of when_can_borrow and when_can_preempt is "
            "may_stop_search",
            "set both to try_next_flavor, or remove preference",
        )


@rule("GOV054", WARNING, on=Environment, source="")
def kueue_elsewhere(environment: Environment) -> Problems:
    """Kueue settings with another engine."""
    engine = environment.governance.engine
    if engine != "kueue" and "kueue" in environment.governance.model_fields_set:
        yield Problem(
            _SETTINGS,
            f"kueue has no effect: {f'the engine is {engine}' if engine else 'there is no quota engine'}",
            "remove it, or use engine kueue",
        )


@rule("GOV055", ERROR, on=Environment, source="kueue-api", final=True)
def labels_of_a_topology(environment: Environment, types: Catalog) -> Problems:
    """Invalid topology labels."""
    most = limits().kueue.topology_levels - 1
    for name in environment.instance_types:
        row = types.find(name)
        labels = row.topology_labels if row and "topology_labels" in row.overridden else ()
        if HOSTNAME in labels or len(set(labels)) < len(labels) or len(labels) > most:
            yield Problem(
                ("instance_types", name, "topology_labels"),
                f"topology_labels of {name} are {listed(labels, 'and')}; allowed are up to {most} different node "
                f"labels, the widest domain first, without {HOSTNAME}, which comes below them by itself",
                "correct them",
            )


@rule("GOV056", WARNING, on=Environment, source="kueue-config")
def jobs_without_quota(environment: Environment) -> Problems:
    """Job kind outside Kueue's quotas."""
    known = environment.governance.kueue.frameworks
    for name, job in environment.jobs.items():
        framework = _FRAMEWORKS.get(job.kind)
        if _on(environment, "kueue") and framework and framework not in known and "pod" not in known:
            yield Problem(
                ("jobs", name, "kind"),
                f"{name} is a {framework}, which is not among frameworks: it runs at once and outside all quotas",
                f"add {framework} to governance.kueue.frameworks",
            )


@rule("GOV057", WARNING, on=Environment, source="kueue-config")
def a_way_around(environment: Environment) -> Problems:
    """Jobs that bypass quotas."""
    if _on(environment, "kueue") and not environment.governance.kueue.every_job:
        yield Problem(
            (*_SETTINGS, "every_job"),
            "every_job is off: whoever leaves out the label of a queue runs at once and outside all quotas",
            "remove it, or accept this",
        )


@rule("GOV058", WARNING, on=Environment, source="kueue-config hyperpod-field-notes hyperpod-resilience")
def evicted_while_a_node_is_replaced(environment: Environment) -> Problems:
    """Gang scheduling timeout shorter than a node replacement."""
    if not _on(environment, "kueue"):
        return
    # Kueue's configuration has this block whether or not the file has one.
    wait = environment.governance.wait_for_pods or WaitForPods()
    checked = sorted(name for name, group in environment.instance_groups.items() if group.deep_health_checks)
    known = limits().cluster
    longest = known.replacement_seconds[1] + (known.deep_health_check_seconds if checked else 0)
    checks = f" and check it with the deep health checks of {listed(checked, 'and')}" if checked else ""
    field, seconds = ("recovery_timeout_seconds", wait.recovery_timeout_seconds)
    if seconds is None:
        field, seconds = ("timeout_seconds", wait.timeout_seconds)
    if 0 < seconds <= longest:
        yield Problem(
            ("governance", "wait_for_pods", field),
            f"a job that lost a pod gives its quota back after {seconds} s, and HyperPod takes up to {longest} s to "
            f"replace a node{checks}: each failed node sends the job back to its queue",
            f"set recovery_timeout_seconds to more than {longest} s and the pull of an image, or to 0; accept this if "
            "other work should go first meanwhile",
        )


@rule("GOV059", ERROR, on=Kueue, source="kueue-gates", final=True)
def gates_of_the_version(settings: Kueue) -> Problems:
    """Feature gate unknown or locked in the pinned Kueue."""
    gates = {row["gate"]: row for row in table("kueue_feature_gates")}
    for name, switch in settings.feature_gates.items():
        row = gates.get(name)
        if row is None:
            near = get_close_matches(name, gates, 1)
            yield Problem(
                ("feature_gates", name),
                f"Kueue {chart(KUEUE).version} has no feature gate {name}, and does not start with one that it lacks",
                f"write {near[0]}" if near else "remove it",
            )
        elif row["locked"] == "yes" and switch != (row["default"] == "on"):
            yield Problem(
                ("feature_gates", name),
                f"{name} is {row['stage']} in Kueue {chart(KUEUE).version} and always {row['default']}",
                "remove it",
            )


@rule("GOV060", ERROR, on=MultiKueue, source="kueue-multikueue", final=True)
def workers_of_a_manager(shared: MultiKueue) -> Problems:
    """MultiKueue manager without workers, or worker with workers."""
    if shared.role == "manager" and not shared.workers:
        yield Problem("workers", "a manager runs nothing itself, and has no workers", "name them, or remove multikueue")
    if shared.role == "worker" and shared.workers:
        yield Problem(
            "workers",
            f"a worker has no workers, and workers lists {listed(shared.workers, 'and')}",
            "remove them, or use role manager",
        )


@rule("GOV061", ERROR, on=MultiKueue, source="", final=True)
def one_type_of_a_name(shared: MultiKueue) -> Problems:
    """Groups with the same name and different types."""
    first: dict[str, tuple[str, str]] = {}
    for worker, settings in shared.workers.items():
        for name, group in settings.groups.items():
            other, instance_type = first.setdefault(name, (worker, group.instance_type))
            if group.instance_type != instance_type:
                yield Problem(
                    ("workers", worker, "groups", name, "instance_type"),
                    f"{name} is {group.instance_type} in {worker} and {instance_type} in {other}; a quota of {name} "
                    "would count both as one",
                    "call one of the groups otherwise, here and in its own environment",
                )


@rule("GOV062", WARNING, on=Environment, source="kueue-multikueue")
def idle_at_the_manager(environment: Environment) -> Problems:
    """Manager nodes that no queue uses."""
    shared = environment.governance.kueue.multikueue
    if not (_on(environment, "kueue") and shared and shared.role == "manager"):
        return
    for name, group in environment.instance_groups.items():
        if name != environment.cluster.system_group and group.count:
            yield Problem(
                ("instance_groups", name),
                f"{name} has {group.count} instances, and a manager hands all work to its workers",
                "remove the group, or create a separate worker cluster",
            )


@rule("GOV063", INFO, on=Environment, source="kueue-multikueue")
def way_into_a_worker(environment: Environment) -> Problems:
    """MultiKueue workers that a deployment cannot connect."""
    shared = environment.governance.kueue.multikueue
    if _on(environment, "kueue") and shared and shared.role == "manager" and shared.workers:
        secrets = listed([worker.secret for worker in shared.workers.values()], "and")
        yield Problem(
            (*_SETTINGS, "multikueue", "workers"),
            f"work reaches a worker once this cluster has its Secret in kueue-system ({secrets}) and a network way to "
            "its control plane; no deployment makes either",
            f"run `podwright workers {environment.name}` after all clusters are deployed; it makes both",
        )
