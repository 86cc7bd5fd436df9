"""What Kueue's scheduler decides in one cycle: quotas, flavors, preemption, shares and places."""

from typing import Any

import pytest

from kueue_objects import GPU, Object, cluster_queue, flavor, local_queue, node, workload
from podwright.config.errors import InvalidValue
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.cycle import Entry, Scheduler, Status
from podwright.planning.simulation.kueue.policy import Policy, check, policy
from podwright.planning.simulation.kueue.work import Work

RECLAIMS = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
FAIR = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}}


class Cluster:
    """A policy, and work that it admits at once."""

    def __init__(self, *objects: Object, configuration: Object | None = None) -> None:
        queues = [item["metadata"]["name"] for item in objects if item["kind"] == "ClusterQueue"]
        known = {item["metadata"]["name"] for item in objects if item["kind"] == "ResourceFlavor"}
        named = [] if known else [flavor("default")]
        every = [*objects, *named, *map(local_queue, queues)]
        self.policy: Policy = policy(every, configuration)
        self.scheduler = Scheduler(self.policy)

    def work(self, *arguments: Any, **spec: Any) -> Work:
        return work_in(self.policy, workload(*arguments, **spec))

    def submit(self, *arguments: Any, **spec: Any) -> Entry:
        (entry,) = self.cycle(self.work(*arguments, **spec))
        return entry

    def cycle(self, *work: Work) -> list[Entry]:
        return self.scheduler.cycle(work, 1e12)

    def available(self, queue: str) -> int:
        return self.policy.queues[queue].available(self.policy.index["default", GPU])


def victims(entry: Entry) -> list[tuple[str, str]]:
    return [(target.work.name, target.reason) for target in entry.targets]


def test_idle_quota_is_borrowed_up_to_both_limits() -> None:
    cluster = Cluster(
        cluster_queue("a", "all", {"default": (8, 6)}), cluster_queue("b", "all", {"default": (8, None, 4)})
    )
    assert cluster.available("a") == 8 + 4, "b lends 4, and a may borrow 6"
    assert cluster.submit("one", "a", 12).status is Status.ADMITTED
    assert cluster.available("b") == 4, "what b does not lend is its own"
    assert cluster.submit("two", "b", 5).status is not Status.ADMITTED


def test_a_cohort_of_cohorts_lends_what_its_children_leave() -> None:
    def cohort(name: str) -> Object:
        return {"kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": "all"}}

    cluster = Cluster(cluster_queue("a", "left"), cluster_queue("b", "right"), cohort("left"), cohort("right"))
    entry = cluster.submit("one", "a", 16)
    assert entry.status is Status.ADMITTED
    assert entry.assignment.borrowing == 2, "the height of the cohort in which it fits"
    assert cluster.available("b") == 0


def test_a_guarantee_is_reclaimed_from_who_borrowed_last() -> None:
    cluster = Cluster(cluster_queue("a", "all", preemption=RECLAIMS), cluster_queue("b", "all", preemption=RECLAIMS))
    for number in range(4):
        cluster.scheduler.cycle([cluster.work(f"a{number}", "a", 4, number)], 1e12 + number)
    entry = cluster.submit("mine", "b", 4)
    assert entry.status is Status.PREEMPTING
    assert victims(entry) == [("a3", "InCohortReclamation")]


def test_higher_priority_preempts_in_its_own_queue_and_no_more_than_it_takes() -> None:
    cluster = Cluster(cluster_queue("a", preemption={"withinClusterQueue": "LowerPriority"}))
    for name, gpus, priority in (("small", 2, 10), ("large", 6, 20)):
        assert cluster.submit(name, "a", gpus, priority=priority).status is Status.ADMITTED
    assert victims(cluster.submit("urgent", "a", 6, priority=30)) == [("large", "InClusterQueue")]
    assert cluster.submit("equal", "a", 2, priority=10).status is Status.NO_CANDIDATES


def test_borrowing_is_preempted_for_only_where_the_policy_says_so() -> None:
    def entry(**borrow: Any) -> Entry:
        policy_of_a = RECLAIMS | borrow
        cluster = Cluster(
            cluster_queue("a", "all", {"default": 4}, preemption=policy_of_a), cluster_queue("b", "all", {"default": 4})
        )
        cluster.submit("b1", "b", 6, priority=1)
        return cluster.submit("a1", "a", 6, priority=9)

    assert entry().status is Status.NO_FIT or not entry().targets
    within = {"borrowWithinCohort": {"policy": "LowerPriority"}}
    assert victims(entry(**within)) == [("b1", "InCohortReclaimWhileBorrowing")]
    assert not entry(borrowWithinCohort={"policy": "LowerPriority", "maxPriorityThreshold": 0}).targets


def test_the_first_flavor_that_fits_is_taken_and_taints_and_labels_keep_others_out() -> None:
    taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
    objects = (
        flavor("spot", nodeTaints=[taint]),
        flavor("h100", nodeLabels={"pool": "h100"}),
        flavor("h200", nodeLabels={"pool": "h200"}),
        cluster_queue("a", quotas={"spot": 8, "h100": 8, "h200": 8}),
    )
    assert Cluster(*objects).submit("any", "a", 8).assignment.flavors == [{GPU: "h100"}]
    cluster = Cluster(*objects)
    item = workload("picky", "a", 8)
    item["spec"]["podSets"][0]["template"]["spec"] |= {"nodeSelector": {"pool": "h200"}}
    assert cluster.cycle(work_in(cluster.policy, item))[0].assignment.flavors == [{GPU: "h200"}]
    item["spec"]["podSets"][0]["template"]["spec"] |= {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    (entry,) = cluster.cycle(work_in(cluster.policy, item))
    assert entry.assignment.flavors == [{GPU: "spot"}], "a flavor is asked for its own labels alone"


def test_the_second_flavor_is_tried_before_anybody_is_preempted() -> None:
    preempts = {"withinClusterQueue": "LowerPriority"}
    flavors = (flavor("one"), flavor("two"))
    for when, chosen in (("TryNextFlavor", "two"), ("MayStopSearch", "one")):
        fungibility = {"whenCanPreempt": when}
        queue = cluster_queue("a", quotas={"one": 8, "two": 8}, preemption=preempts, flavorFungibility=fungibility)
        cluster = Cluster(*flavors, queue)
        cluster.submit("low", "a", 8)
        assert cluster.submit("high", "a", 8, priority=5).assignment.flavors == [{GPU: chosen}]


def test_work_starts_with_as_many_pods_as_fit() -> None:
    cluster = Cluster(cluster_queue("a"))
    entry = cluster.submit("elastic", "a", 1, count=12, minCount=4)
    assert (entry.status, entry.assignment.counts) == (Status.ADMITTED, (8,))
    assert cluster.submit("rigid", "a", 1, count=1).status is Status.NO_CANDIDATES
    assert cluster.submit("all or none", "a", 1, count=2, minCount=2).status is Status.NO_CANDIDATES


def test_who_does_not_borrow_comes_first_and_then_priority_and_time() -> None:
    cluster = Cluster(cluster_queue("a", "all"), cluster_queue("b", "all"), cluster_queue("c", "all"))
    work = [
        cluster.work("borrows", "a", 12, 0, priority=9),
        cluster.work("late", "b", 8, 2),
        cluster.work("early", "c", 8, 1),
    ]
    assert [(entry.work.name, entry.status) for entry in cluster.cycle(*work)] == [
        ("early", Status.ADMITTED),
        ("late", Status.ADMITTED),
        ("borrows", Status.SKIPPED),
    ]


def test_shares_decide_who_is_preempted_and_who_comes_first() -> None:
    def cluster() -> Cluster:
        queues = (cluster_queue(name, "all", {"default": 4}, preemption=RECLAIMS) for name in ("a", "b", "c", "d"))
        return Cluster(*queues, configuration=FAIR)

    first = cluster()
    for number in range(8):
        first.submit(f"a{number}", "a", 1, number)
    for number in range(6):
        first.submit(f"b{number}", "b", 1, number)
    first.submit("rest", "d", 2)
    assert [name for name, _ in victims(first.submit("c0", "c", 4))] == ["a0", "a1", "a2", "b0"]
    assert not first.submit("c1", "c", 5).targets, "nobody stays above what c would borrow then"

    second = cluster()
    second.submit("a0", "a", 6)
    entries = second.cycle(second.work("more", "a", 2, 0, priority=9), second.work("first", "b", 6, 1))
    assert [entry.work.name for entry in entries] == ["first", "more"], "by share, and not by priority"


def test_a_weight_of_zero_is_preempted_before_all_others() -> None:
    queues = [cluster_queue(name, "all", {"default": 4}, preemption=RECLAIMS) for name in ("a", "b", "c")]
    queues[1]["spec"]["fairSharing"] = {"weight": "0"}
    cluster = Cluster(*queues, configuration=FAIR)
    for name in ("a", "b"):
        for number in range(6):
            cluster.submit(f"{name}{number}", name, 1, number)
    assert next(name for name, _ in victims(cluster.submit("c0", "c", 1))).startswith("b")


def test_whether_work_stays_within_its_quota_is_asked_before_anybody_is_preempted() -> None:
    cluster = Cluster(
        cluster_queue("a", "all", {"default": 4}, preemption=RECLAIMS),
        cluster_queue("b", "all", {"default": 4}, preemption=RECLAIMS),
        configuration=FAIR,
    )
    cluster.submit("own", "a", 3)
    for number in range(5):
        cluster.submit(f"b{number}", "b", 1, number)
    entry = cluster.submit("high", "a", 4, priority=1)
    assert [reason for _, reason in victims(entry)] == ["InClusterQueue", "InCohortFairSharing"]


def test_what_borrows_hides_what_takes_preemption_where_not_to_borrow_is_preferred() -> None:
    """Kueue takes the work for one that fits, finds that it does not, and tries it again forever."""

    def amounts(**nominal: int) -> list[Object]:
        resources = [
            {"name": name, "nominalQuota": str(value)} for name, value in {"cpu": 0, GPU: 0, **nominal}.items()
        ]
        return [{"coveredResources": ["cpu", GPU], "flavors": [{"name": "default", "resources": resources}]}]

    fungibility = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    lender = cluster_queue("b", "all", resourceGroups=amounts(cpu=10))
    for preference, status in (("PreemptionOverBorrowing", Status.SKIPPED), (None, Status.PREEMPTING)):
        own = fungibility | ({"preference": preference} if preference else {})
        groups = amounts(**{GPU: 4})
        queue = cluster_queue("a", "all", resourceGroups=groups, flavorFungibility=own, preemption=RECLAIMS)
        cluster = Cluster(queue, lender, configuration=FAIR)
        assert cluster.submit("borrower", "b", 2).status is Status.ADMITTED
        work = workload("owner", "a", 4)
        work["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
        assert cluster.submit("owner", "a", 4, podSets=work["spec"]["podSets"]).status is status


def topologies(*levels: str) -> tuple[Object, Object]:
    spec = {"levels": [{"nodeLabel": level} for level in (*levels, "kubernetes.io/hostname")]}
    return (
        {"kind": "Topology", "metadata": {"name": "net"}, "spec": spec},
        flavor("default", nodeLabels={"pool": "gpu"}, topologyName="net"),
    )


@pytest.mark.parametrize(
    ("request_", "placed"),
    [
        ({"required": "rack"}, {"r2-0": 1, "r2-1": 1}),
        ({"preferred": "rack"}, {"r2-0": 1, "r2-1": 1}),
        ({"unconstrained": True}, {"r1-0": 1, "r2-0": 1}),
    ],
)
def test_pods_lie_in_one_domain_where_they_ask_for_it(request_: Object, placed: dict[str, int]) -> None:
    nodes = [node("r1-0", rack="r1"), node("r2-0", rack="r2"), node("r2-1", rack="r2"), node("r3-0", rack="r3")]
    nodes += [node("r3-1", rack="r3"), node("r3-2", rack="r3")]
    cluster = Cluster(*topologies("rack"), cluster_queue("a", quotas={"default": 80}), *nodes)
    work = cluster.work("job", "a", 8, count=2, topologyRequest=request_)
    (entry,) = cluster.cycle(work)
    assert entry.status is Status.ADMITTED
    assert {each.domain[-1]: each.pods for each in work.placements} == placed


def test_a_domain_that_holds_no_gang_keeps_it_waiting_though_quota_is_free() -> None:
    nodes = [node(f"r{rack}-{number}", rack=f"r{rack}") for rack in range(2) for number in range(2)]
    cluster = Cluster(*topologies("rack"), cluster_queue("a", quotas={"default": 80}), *nodes)
    entry = cluster.submit("job", "a", 8, count=3, topologyRequest={"required": "rack"})
    assert entry.status is Status.NO_FIT
    assert "fit only 2 out of 3 pods" in entry.reason
    assert cluster.submit("spread", "a", 8, count=3, topologyRequest={"preferred": "rack"}).status is Status.ADMITTED


@pytest.mark.parametrize(
    ("node_name", "phase", "labels", "status"),
    [
        ("n0", "Pending", {}, Status.NO_FIT),
        ("n0", "Running", {"kueue.x-k8s.io/tas": "true"}, Status.ADMITTED),
        ("n0", "Succeeded", {}, Status.ADMITTED),
        (None, "Pending", {}, Status.ADMITTED),
        ("n1", "Running", {}, Status.ADMITTED),
    ],
)
def test_pods_that_no_topology_aware_work_owns_take_room_on_their_node(
    node_name: str | None, phase: str, labels: dict[str, str], status: Status
) -> None:
    containers = [{"name": "main", "resources": {"requests": {GPU: "1"}}}]
    spec = {"containers": containers} | ({"nodeName": node_name} if node_name else {})
    pod = {"kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec, "status": {"phase": phase}}
    cluster = Cluster(*topologies(), cluster_queue("a"), node("n0"), pod)
    assert cluster.submit("job", "a", 8, topologyRequest={"unconstrained": True}).status is status


def test_pod_sets_are_looked_at_one_by_one_where_others_of_the_cycle_came_first() -> None:
    """Kueue admits both, whose pods do not fit on the node together."""
    queues = [cluster_queue(name, "all", {"default": 16}) for name in ("a", "b")]
    cluster = Cluster(*topologies(), *queues, node("n0"))
    first = cluster.work("first", "a", 4, priority=1, topologyRequest={"unconstrained": True})
    both = workload("both", "b", 4, topologyRequest={"unconstrained": True})["spec"]["podSets"][0]
    pairs = cluster.work("pairs", "b", 4, podSets=[both, both | {"name": "more"}])
    assert [entry.status for entry in cluster.cycle(first, pairs)] == [Status.ADMITTED, Status.ADMITTED]
    full = cluster.work("full", "a", 8, priority=1, topologyRequest={"unconstrained": True})
    assert cluster.cycle(full)[0].status is not Status.ADMITTED


def test_pods_that_fill_no_slice_have_quota_and_no_place() -> None:
    nodes = [node(f"n{number}", rack="r") for number in range(8)]
    cluster = Cluster(*topologies("rack"), cluster_queue("a", quotas={"default": 40}), *nodes)
    request = {"required": "rack", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    entry = cluster.submit("job", "a", 8, count=8, minCount=2, topologyRequest=request)
    assert entry.status is Status.ADMITTED
    assert entry.work.counts == (5,)
    assert sum(each.pods for each in entry.work.placements) == 4, "two slices of the five pods, as Kueue has it"
    assert cluster.submit("less", "a", 8, count=8, minCount=1, topologyRequest=request).status is Status.NO_FIT


def test_two_gangs_of_a_cycle_do_not_get_the_same_nodes() -> None:
    nodes = [node(f"n{number}", rack="r") for number in range(3)]
    queues = [cluster_queue(name, "all", {"default": 24}) for name in ("a", "b")]
    cluster = Cluster(*topologies("rack"), *queues, *nodes)
    work = [cluster.work(f"job-{team}", team, 8, count=2, topologyRequest={"required": "rack"}) for team in ("a", "b")]
    assert [entry.status for entry in cluster.cycle(*work)] == [Status.ADMITTED, Status.NO_CANDIDATES]


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([cluster_queue("a", quotas={"default": (8, 4)})], "borrowingLimit and no cohort"),
        (
            [cluster_queue("a", "all", preemption={"borrowWithinCohort": {"policy": "LowerPriority"}})],
            "without reclaim",
        ),
    ],
)
def test_what_kueue_refuses_is_refused_with_its_reason(objects: list[Object], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        check(policy([*objects, flavor("default")]))


def test_a_queue_without_its_flavor_or_that_is_held_takes_nothing() -> None:
    held = Cluster(cluster_queue("a", stopPolicy="Hold"))
    assert held.submit("one", "a", 1).status is Status.INACTIVE
    lacking = Cluster(flavor("other"), cluster_queue("a"))
    assert lacking.submit("one", "a", 1).status is Status.INACTIVE
