"""Places for work that has its quota: another node for one that is lost, and places that wait for a check."""

from collections.abc import Sequence
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.cycle import Scheduler, Status
from podwright.planning.simulation.kueue.events import NODES_GONE, NOT_READY, Change, simulate
from podwright.planning.simulation.kueue.history import History, Job
from podwright.planning.simulation.kueue.policy import Policy, policy
from podwright.planning.simulation.kueue.second_pass import has_other_node
from podwright.planning.simulation.kueue.work import Work
from test_kueue_time import AT_ONCE, HOST, times

RACK = "rack"
BEGIN = 1795564800
"""When `workload` has its first work come."""
TOPOLOGY = {"kind": "Topology", "metadata": {"name": "net"}, "spec": {"levels": [{"nodeLabel": RACK}]}}
TOPOLOGY["spec"]["levels"].append({"nodeLabel": HOST})
CHECK = {"kind": "AdmissionCheck", "metadata": {"name": "nodes"}}
PROVISIONS = CHECK | {"spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"}}


def racks(*names: str, gpus: int = 8) -> list[Object]:
    """Nodes by rack: `a1` is in rack a."""
    return [node(name, gpus, rack=name[0]) for name in names]


def objects(nodes: Sequence[Object], **spec: Any) -> list[Object]:
    placed = flavor("default", nodeLabels={"pool": "gpu"}, topologyName="net")
    return [cluster_queue("a", quotas={"default": 64}, **spec), local_queue("a"), placed, TOPOLOGY, *nodes]


def held(work: Work) -> dict[str, int]:
    return {each.domain[-1]: each.pods for each in work.placements}


def after_loss(lost: str, nodes: Sequence[Object], item: Object, more: Sequence[Object] = ()) -> tuple[bool, Work]:
    """Whether work gets another node for one that it has lost, and it; some nodes may come at that time."""
    decides, work = placed_on(nodes, item)
    present = policy(objects([*(each for each in nodes if each["metadata"]["name"] != lost), *more]))
    assert decides.become(present) == [(work, {(lost[0], lost)})]
    return has_other_node(decides, work, lost), work


def placed_on(nodes: Sequence[Object], item: Object) -> tuple[Policy, Work]:
    decides = policy(objects(nodes))
    work = work_in(decides, item)
    assert [entry.status for entry in Scheduler(decides).cycle([work], 1e12)] == [Status.ADMITTED]
    return decides, work


def test_pods_of_a_lost_node_go_to_another_and_all_others_stay() -> None:
    item = workload("gang", "a", 8, count=2, topologyRequest={"preferred": RACK})
    placed, work = after_loss("a1", racks("a1", "a2", "b1"), item)
    assert (placed, held(work)) == (True, {"a2": 1, "b1": 1})


def test_pods_that_need_one_rack_stay_in_it_or_stop() -> None:
    item = workload("gang", "a", 8, count=2, topologyRequest={"required": RACK})
    placed, work = after_loss("a1", racks("a1", "a2", "a3", "b1"), item)
    assert (placed, held(work)) == (True, {"a2": 1, "a3": 1})
    placed, work = after_loss("a1", racks("a1", "a2", "b1", "c1"), item)
    assert (placed, held(work)) == (False, {"a1": 1, "a2": 1})


def test_one_node_alone_may_be_anywhere() -> None:
    item = workload("one", "a", 8, topologyRequest={"required": HOST})
    placed, work = after_loss("a1", racks("a1", "b1"), item)
    assert (placed, held(work)) == (True, {"b1": 1})


def test_a_slice_is_made_whole_where_its_rest_is() -> None:
    """Two slices of two pods, each in one rack: b1 is free and of no use to the slice in rack a."""
    slices = {"preferred": RACK, "podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2}
    item = workload("gang", "a", 8, count=4, topologyRequest=slices)
    placed, work = after_loss("a1", [*racks("a1", "a2", "c1", "c2"), *racks("b1"), *racks("a3", gpus=7)], item)
    assert (placed, held(work)) == (False, {"a1": 1, "a2": 1, "c1": 1, "c2": 1})
    placed, work = after_loss("a1", [*racks("a1", "a2", "c1", "c2", "b1", "a3")], item)
    assert (placed, held(work)) == (True, {"a2": 1, "a3": 1, "c1": 1, "c2": 1})


def test_a_whole_slice_goes_where_it_fits() -> None:
    slices = {"preferred": RACK, "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2}
    item = workload("gang", "a", 4, count=4, topologyRequest=slices)
    placed, work = after_loss("a1", racks("a1", "a2", "b1"), item)
    assert (placed, held(work)) == (True, {"a2": 2, "b1": 2})


def test_a_leader_and_workers_lose_the_same_node() -> None:
    item = workload("gang", "a", 4, count=1, topologyRequest={"preferred": RACK})
    leader = item["spec"]["podSets"][0] | {"name": "leader"}
    item["spec"]["podSets"].append(leader)
    placed, work = after_loss("a1", racks("a1", "b1"), item)
    assert placed
    assert {(each.pod_set, each.domain[-1]) for each in work.placements} == {("main", "b1"), ("leader", "b1")}
    # Room for one of both is too little, and then neither moves.
    placed, work = after_loss("a1", racks("a1"), item, racks("b1", gpus=4))
    assert not placed
    assert {each.domain[-1] for each in work.placements} == {"a1"}


def test_what_is_tried_in_vain_changes_nothing() -> None:
    item = workload("gang", "a", 8, count=2, topologyRequest={"required": RACK})
    decides, work = placed_on(racks("a1", "a2", "b1"), item)
    decides.become(policy(objects(racks("a2", "b1"))))
    before = decides.domains.free("default")
    assert not has_other_node(decides, work, "a1")
    assert decides.domains.free("default") == before


def test_slices_of_several_layers_lie_together_in_each() -> None:
    """Racks hold four pods together, nodes two: of rack b, three pods of b1 count as two."""
    layers = [{"topology": RACK, "size": 4}, {"topology": HOST, "size": 2}]
    item = workload("gang", "a", 1, count=8, topologyRequest={"podsetSliceRequiredTopologyConstraints": layers})
    _, work = placed_on([*racks("a1", gpus=4), *racks("b1", gpus=3), *racks("b2", gpus=4)], item)
    assert held(work) == {"a1": 4, "b1": 2, "b2": 2}
    too_small = policy(objects([*racks("a1", gpus=4), *racks("b1", "b2", gpus=3), *racks("c1", gpus=1)]))
    (entry,) = Scheduler(too_small).cycle([work_in(too_small, item)], 1e12)
    assert entry.status is Status.ADMITTED
    (entry,) = Scheduler(too_small).cycle([work_in(too_small, item)], 1e12)
    assert entry.status is not Status.ADMITTED


@pytest.mark.parametrize("layers", [[(RACK, 4), (HOST, 3)], [(HOST, 4), (RACK, 2)], [(RACK, 4), ("unknown", 2)]])
def test_layers_that_do_not_divide_each_other_are_refused(layers: list[tuple[str, int]]) -> None:
    listed = [{"topology": level, "size": size} for level, size in layers]
    decides = policy(objects(racks("a1", "a2")))
    item = workload("gang", "a", 1, count=4, topologyRequest={"podsetSliceRequiredTopologyConstraints": listed})
    (entry,) = Scheduler(decides).cycle([work_in(decides, item)], 1e12)
    assert (entry.status, "do not divide" in entry.reason) == (Status.NO_FIT, True)


# ------------------------------------------------------------------------------------------------ in time


def played(
    later: dict[float, list[Object]],
    item: Object,
    nodes: Sequence[Object],
    assumptions: Assumptions,
    wait: Object | None = None,
) -> History:
    """The history of one job of 1,000 seconds while nodes change."""
    configuration = {"waitForPodsReady": wait} if wait else {}
    every = [each for listed in (nodes, *later.values()) for each in objects(listed)]
    decides = policy(objects(nodes), configuration, every)
    changes = [Change(BEGIN + at, policy(objects(listed), configuration, every)) for at, listed in later.items()]
    return simulate(decides, [Job(work_in(decides, item), 1000.0)], assumptions, changes=changes)


GANG = workload("gang", "a", 8, count=2, topologyRequest={"preferred": RACK})


def test_who_loses_one_node_starts_again_from_its_checkpoint_and_keeps_its_quota() -> None:
    assumed = Assumptions(startup_seconds=50.0, repeated_seconds=100.0)
    result = played({450.0: racks("a2", "b1")}, GANG, racks("a1", "a2", "b1"), assumed)
    # 400 seconds are done of which 100 are done again, after another start.
    assert times(result) == {"gang": [(0, 450), (450, 1200)]}
    (job,) = result.jobs
    assert [turn.ended for turn in job.turns] == [NODES_GONE, "finished"]
    assert {each.domain[-1] for each in job.turns[1].placements} == {"a2", "b1"}


def test_who_loses_two_nodes_stops_at_once() -> None:
    result = played({400.0: racks("b1", "b2")}, GANG, racks("a1", "a2", "b1", "b2"), AT_ONCE)
    assert times(result) == {"gang": [(0, 400), (400, 1000)]}
    assert result.jobs[0].turns[0].ended == NODES_GONE


def test_a_restart_that_is_too_slow_is_stopped_by_the_recovery_timeout() -> None:
    """Its pods are ready within the first timeout, and not within that of recovery."""
    wait = {"timeout": "5m0s", "recoveryTimeout": "1m0s", "requeuingStrategy": {"backoffBaseSeconds": 100}}
    assumed = Assumptions(startup_seconds=90.0, grace_seconds=0.0, repeated_seconds=0.0)
    result = played({490.0: racks("a2", "b1")}, GANG, racks("a1", "a2", "b1"), assumed, wait)
    assert times(result)["gang"] == [(0, 490), (490, 550), (650, 1340)]
    assert [turn.ended for turn in result.jobs[0].turns] == [NODES_GONE, NOT_READY, "finished"]
    del wait["recoveryTimeout"]
    result = played({490.0: racks("a2", "b1")}, GANG, racks("a1", "a2", "b1"), assumed, wait)
    assert times(result)["gang"] == [(0, 490), (490, 1180)]


def checked(check: Object, others: Sequence[Object] = (), **strategy: Any) -> History:
    """The history of jobs of 100 seconds in a queue with a check, which is ready after ten minutes."""
    listed = {"admissionChecks": [{"name": "nodes", **strategy}]}
    decides = policy([*objects(racks("a1", "a2"), admissionChecksStrategy=listed), check])
    items = [workload("gang", "a", 8, count=2, topologyRequest={"required": RACK}), *others]
    jobs = [Job(work_in(decides, item), 100.0) for item in items]
    return simulate(decides, jobs, Assumptions(check_seconds=600.0, grace_seconds=0.0))


def test_a_job_has_quota_before_its_checks_are_ready_and_runs_after_that() -> None:
    other = CHECK | {"spec": {"controllerName": "example.com/approval"}}
    result = checked(other)
    assert times(result) == {"gang": [(0, 700)]}
    assert result.jobs[0].turns[0].begun == BEGIN + 600
    # Places are kept from the beginning where nothing provisions nodes.
    late = workload("late", "a", 8, 5)
    assert times(checked(other, [late])) == {"gang": [(0, 700)], "late": [(701, 1401)]}
    # And a check of other flavors is none.
    assert times(checked(other, onFlavors=["other"])) == {"gang": [(0, 100)]}


def test_where_a_check_provisions_nodes_places_are_chosen_once_it_is_ready() -> None:
    """Quota is there for both at once. Who comes first has its nodes first, and the other one waits for them."""
    result = checked(PROVISIONS, [workload("late", "a", 8, 5)])
    assert times(result) == {"gang": [(0, 700)], "late": [(5, 801)]}
    first, late = sorted(result.jobs, key=lambda job: job.work.name)
    assert [len(job.turns[0].placements) for job in (first, late)] == [2, 1]
    assert late.waits_for == ""


def test_who_finds_no_place_after_its_check_says_so() -> None:
    result = checked(PROVISIONS, [workload("huge", "a", 9)])
    (huge,) = [job for job in result.jobs if job.work.name == "huge"]
    assert huge.finished is None
    assert huge.waits_for == "its admission checks are ready, and its pods find no place among the nodes"


def test_a_cluster_shows_who_has_quota_and_waits_for_its_checks() -> None:
    listed = {"admissionChecks": [{"name": "nodes"}]}
    decides = policy([*objects(racks("a1", "a2"), admissionChecksStrategy=listed), PROVISIONS])
    assigned = {"name": "main", "flavors": {"nvidia.com/gpu": "default"}, "count": 1}
    assigned |= {"resourceUsage": {"nvidia.com/gpu": "8"}, "delayedTopologyRequest": "Pending"}
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-11-25T00:00:00Z"}
    status = {"admission": {"clusterQueue": "a", "podSetAssignments": [assigned]}, "conditions": [reserved]}
    work = work_in(decides, workload("one", "a", 8) | {"status": status})
    assert not work.is_admitted
    result = simulate(decides, [], Assumptions(check_seconds=600.0), [Job(work, 100.0)])
    assert times(result) == {"one": [(0, 700)]}
    assert held(work) == {"a1": 1}


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "alone", "uid": "pod"}


def owned(annotations: dict[str, str] | None = None) -> Object:
    item = workload("alone", "a", 8, topologyRequest={"required": HOST})
    item["metadata"] |= {"ownerReferences": [OWNER], "annotations": annotations or {}}
    return item


@pytest.mark.parametrize(
    ("item", "is_on", "node_after"),
    [(owned(), True, "a1"), (owned(), False, "a2"), (owned({"kueue.x-k8s.io/is-group-workload": "true"}), True, "a2")],
    ids=["a Pod", "gate off", "a group of Pods"],
)
def test_a_pod_alone_has_no_other_node(item: Object, is_on: bool, node_after: str) -> None:
    decides, work = placed_on(racks("a1", "a2"), item)
    decides.become(policy(objects(racks("a2")), {"featureGates": {"SkipReassignmentForPodOwnedWorkloads": is_on}}))
    assert (has_other_node(decides, work, "a1"), held(work)) == (True, {node_after: 1})


def test_nobody_makes_a_pod_anew_whose_node_is_gone() -> None:
    decides, later = policy(objects(racks("a1"))), policy(objects(racks("a2")))
    result = simulate(
        decides, [Job(work_in(decides, owned()), 1000.0)], AT_ONCE, changes=[Change(BEGIN + 100.0, later)]
    )
    (job,) = result.jobs
    assert (times(result)["alone"], job.turns[0].ended, job.finished) == ([(0, 100)], NODES_GONE, None)
    assert job.waits_for == "it was one Pod on a node that is gone, and nobody makes it anew"
    assert decides.queues["a"].usage == [0]
