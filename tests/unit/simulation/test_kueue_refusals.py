"""What was decided holds until something makes a difference: what happens is the same as without."""

import copy
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.planning.jobs.queue import REPLACEMENT
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue import cycle, events
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.events import simulate
from podwright.planning.simulation.kueue.history import Job
from podwright.planning.simulation.kueue.policy import Policy, policy
from podwright.planning.simulation.kueue.work import Work

HOST = "kubernetes.io/hostname"
MOST_CYCLES = 3000
"""What was remembered by mistake may keep work from ever starting, or keep it trying."""
RING = 20
"""Some of what is made up preempts each other in a ring, which takes long to tell from what ends."""


def objects(source: random.Random) -> list[Object]:
    """Five queues in one or two cohorts, two flavors, on the same nodes or one without, and preemption of all kinds."""
    cohorts, shared = source.choice([["above"], ["above", "below"]]), source.random() < 0.5
    topology = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
    on_nodes = {"nodeLabels": {"pool": "gpu"}, "topologyName": "t"}
    flavors = [flavor("nodes", **on_nodes), flavor("plain", **(on_nodes if shared else {}))]
    result = [topology, *flavors, *(node(f"n{number}") for number in range(4))]
    below = {"kind": "Cohort", "metadata": {"name": "below"}, "spec": {"parentName": "above"}}
    result += [below] if "below" in cohorts else []
    for name in "abcde":
        limits = source.choice([(), (source.randrange(9),), (None, source.randrange(7))])
        names = source.sample(["nodes", "plain"], source.choice([1, 2]))
        preemption = {
            "withinClusterQueue": source.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": source.choice(["Never", "LowerPriority", "Any"]),
        }
        strategy = source.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"])
        quotas = {each: (source.randrange(4, 12), *limits) for each in names}
        cohort = source.choice(cohorts)
        result += [cluster_queue(name, cohort, quotas, preemption=preemption, queueingStrategy=strategy)]
        result += [local_queue(name)]
    return result


def turns(seed: int) -> list[tuple[object, ...]]:
    """Who held what, when, and why it ended."""
    source, of_slices = random.Random(seed), random.Random(f"slices {seed}")
    decides = policy(objects(source), {"fairSharing": {}} if seed % 3 == 0 else {"fairSharing": {"enable": True}})
    jobs = []
    for number in range(60):
        count, priority = source.choice([1, 1, 2, 4]), source.choice([0, 0, 1, 5])
        more = {"minCount": 1} if count > 2 and source.random() < 0.5 else {}
        item = workload(
            f"job{number}", source.choice("abcde"), source.choice([1, 2, 4, 8]), source.randrange(3000),
            count=count, priority=priority, **more,
        )  # fmt: skip
        jobs.append(Job(work_in(decides, item), source.choice([60.0, 300.0, 900.0])))
        if not more and of_slices.random() < 0.4:
            jobs.append(Job(work_in(decides, larger(item, of_slices)), 0.0))
    return happened(decides, jobs)


def larger(before: Object, source: random.Random) -> Object:
    """A slice of an elastic job that comes up to ten minutes after it, with one to four pods more."""
    result = copy.deepcopy(before)
    team, name = before["metadata"]["namespace"], before["metadata"]["name"]
    created = datetime.fromisoformat(before["metadata"]["creationTimestamp"]) + timedelta(seconds=source.randrange(600))
    result["metadata"] |= {
        "name": f"{name}-larger",
        "uid": f"{name}-larger",
        "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "annotations": {REPLACEMENT: f"{team}/{name}"},
    }
    result["spec"]["podSets"][0]["count"] += source.randint(1, 4)
    return result


def happened(decides: Policy, jobs: list[Job]) -> list[tuple[object, ...]]:
    """Who held what, when, and why it ended."""
    cycle_of, cycles = cycle.Scheduler.cycle, itertools.count(1)

    def counted(*arguments: Any) -> list[cycle.Entry]:
        assert next(cycles) <= MOST_CYCLES, "it never ends"
        return cycle_of(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle.Scheduler, "cycle", counted)
        patch.setattr(events, "_MOST_PREEMPTIONS", RING)
        history = simulate(decides, jobs, Assumptions())
    return [
        (job.work.name, turn.start, turn.end, turn.ended, turn.flavors, turn.counts, turn.placements)
        for job in history.jobs
        for turn in job.turns
    ]


def with_shares(
    quotas: dict[str, dict[str, int]], *jobs: tuple[str, int, int, float], below: str = ""
) -> list[tuple[object, ...]]:
    """The same for queues that preempt by shares, and jobs: queue, GPUs, when it comes, seconds.

    All queues are of one cohort, but for those that are each in one `below` it.
    """
    reclaims = {"reclaimWithinCohort": "Any"}
    queues = [
        cluster_queue(name, f"with-{name[0]}" if name[0] in below else "above", each, preemption=reclaims)
        for name, each in quotas.items()
    ]
    cohorts = [
        {"kind": "Cohort", "metadata": {"name": f"with-{name}"}, "spec": {"parentName": "above"}} for name in below
    ]
    items = [flavor("x"), flavor("y"), *cohorts, *queues, *map(local_queue, quotas)]
    decides = policy(items, {"fairSharing": {"enable": True}})
    works = [workload(f"{job[0]}{number}", *job[:3]) for number, job in enumerate(jobs)]
    return happened(decides, [Job(work_in(decides, item), job[3]) for item, job in zip(works, jobs, strict=True)])


def somebody_borrows() -> list[tuple[object, ...]]:
    """Job a is parked, and looked at when d ends. When b ends, c borrows all of that: too little is left for a, which
    preempts c."""
    quotas = {"a": {"x": 4}, "b": {"x": 4}, "c": {"x": 0}, "d": {"y": 1}}
    return with_shares(quotas, ("b", 4, 0, 100.0), ("d", 1, 0, 50.0), ("a", 5, 1, 60.0), ("c", 4, 100, 900.0))


def just_enough() -> list[tuple[object, ...]]:
    """Job a is parked, and looked at when d ends. When b ends, exactly what a asks for is left."""
    quotas = {"a": {"x": 4}, "b": {"x": 4}, "d": {"y": 1}}
    return with_shares(quotas, ("b", 4, 0, 100.0), ("d", 1, 0, 50.0), ("a", 8, 1, 60.0))


def a_share_grows_elsewhere() -> list[tuple[object, ...]]:
    """Job a may preempt nobody while it would have as much as c and e. Then c gets some of a flavor that a does not
    look at, and a may preempt c when it is looked at again, as d ends."""
    quotas = {"a": {"x": 0}, "c": {"x": 0, "y": 0}, "d": {"x": 8, "y": 8}, "e": {"x": 0}}
    first = ("c", 4, 0, 900.0), ("e", 4, 0, 900.0), ("a", 4, 10, 60.0)
    return with_shares(quotas, *first, ("c", 1, 20, 900.0), ("d", 1, 20, 50.0))


def just_enough_to_preempt() -> list[tuple[object, ...]]:
    """Job a may preempt c, which is not enough. When b ends, what is left is enough together with what c has."""
    quotas = {"a": {"x": 4}, "b": {"x": 6}, "c": {"x": 0, "y": 0}, "d": {"y": 8}}
    first = ("b", 3, 0, 100.0), ("b", 2, 0, 900.0), ("c", 3, 0, 900.0), ("d", 1, 0, 50.0)
    return with_shares(quotas, *first, ("c", 4, 5, 900.0), ("a", 8, 10, 60.0))


def a_cohort_waits_for_victims() -> list[tuple[object, ...]]:
    """Job a has as much as b and comes first, but for another of its cohort, for whose victims that waits."""
    quotas = {"a": {"x": 0}, "a2": {"y": 0}, "b": {"x": 0}, "f": {"y": 0}, "r": {"x": 4, "y": 8}}
    first = ("f", 4, 0, 900.0), ("f", 4, 0, 900.0), ("a2", 2, 10, 60.0)
    return with_shares(quotas, *first, ("a", 4, 20, 60.0), ("b", 4, 20, 60.0), below="abf")


BY_HAND = [somebody_borrows, just_enough, a_share_grows_elsewhere, just_enough_to_preempt, a_cohort_waits_for_victims]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "play" in metafunc.fixturenames:
        seeds = range(60 if metafunc.config.getoption("--all") else 15)
        metafunc.parametrize("play", [*(partial(turns, seed) for seed in seeds), *BY_HAND])


def test_what_is_remembered_changes_nothing(
    play: Callable[[], list[tuple[object, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = play()
    forget(monkeypatch)
    assert remembered == play()


def test_jobs_that_preempt_each_other_in_a_ring_end() -> None:
    """In the work of this seed some do, and one of them is left alone."""
    reasons = defaultdict(list)
    for name, *_, reason, _, _, _ in turns(10):
        reasons[name].append(reason)
    assert [name for name, ended in reasons.items() if len(ended) >= RING and "finished" not in ended] != []


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was decided is ever looked up again, and each head takes a cycle."""
    ever_new = itertools.count()
    monkeypatch.setattr(cycle.Scheduler, "_refusal", lambda *_: None)
    for name in ("_count", "_situation"):
        monkeypatch.setattr(cycle.Scheduler, name, lambda *_: next(ever_new))


def test_refused_work_is_seldom_decided_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()
    monkeypatch.setattr(cycle.Scheduler, "_best", counting(calls, "_best"))
    turns(1)
    remembering = calls["_best"]
    forget(monkeypatch)
    turns(1)
    assert remembering < 0.5 * (calls["_best"] - remembering)


def test_heads_that_are_refused_again_take_no_cycle_each(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()
    monkeypatch.setattr(cycle.Scheduler, "cycle", counting(calls, "cycle"))
    quotas, sizes = {"a": {"x": 8}, "b": {"x": 8}}, (8, 7, 6, 5, 4, 3, 2, 1)
    jobs = [("ab"[number % 2], sizes[number % 7], number // 30, 60.0 + number) for number in range(60)]
    remembered, remembering = with_shares(quotas, *jobs), calls["cycle"]
    forget(monkeypatch)
    assert with_shares(quotas, *jobs) == remembered
    assert remembering < 0.5 * (calls["cycle"] - remembering), calls


def counting(calls: Counter[str], name: str) -> Callable[..., Any]:
    """A method of the scheduler, whose calls are counted."""
    original = getattr(cycle.Scheduler, name)

    def counted(*arguments: Any) -> Any:
        calls[name] += 1
        return original(*arguments)

    return counted


def test_the_same_work_on_the_same_free_nodes_is_decided_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
    placed = flavor("nodes", nodeLabels={"pool": "gpu"}, topologyName="t")
    items = [topology, placed, cluster_queue("a", quotas={"nodes": 16}), local_queue("a"), node("n0"), node("n1")]
    decides, calls = policy(items), Counter[str]()
    monkeypatch.setattr(cycle.Scheduler, "_best", counting(calls, "_best"))
    jobs = [Job(work_in(decides, workload(f"job{number}", "a", 8)), 60.0) for number in range(20)]
    history = simulate(decides, jobs, Assumptions())
    starts = [job.turns[0].start for job in history.jobs]
    # One at a time on each node: 0–60, 61–121 and so on, as what becomes free is looked at a second later.
    assert {(start - min(starts)) % 61 for start in starts} == {0}
    # With two nodes free, one free, and none.
    assert calls["_best"] == 3


def test_only_so_many_situations_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = turns(3)
    monkeypatch.setattr(cycle, "_MOST_SITUATIONS", 1)
    assert turns(3) == remembered


def test_older_work_preempts_where_newer_work_like_it_was_refused() -> None:
    newer = cluster_queue("a", quotas={"x": 4}, preemption={"withinClusterQueue": "LowerOrNewerEqualPriority"})
    decides = policy([flavor("x"), newer, local_queue("a")])
    scheduler = cycle.Scheduler(decides)
    for created, status in ((5, "ADMITTED"), (10, "NO_CANDIDATES"), (0, "PREEMPTING")):
        work = work_in(decides, workload(f"job{created}", "a", 4, created))
        assert [entry.status.name for entry in scheduler.cycle([work], 1e12)] == [status]


def test_a_head_that_rests_takes_part_where_another_is_moved_to_other_nodes() -> None:
    """By shares it is found whom that one may preempt then, and in these counts what heads before it would use."""
    reclaims = {"reclaimWithinCohort": "Any"}
    quotas = {"a": {"nodes": 8}, "b": {"nodes": 8}, "e": {"plain": 4}, "f": {"plain": 0}, "g": {"plain": 0}}
    topology = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
    items = [topology, flavor("nodes", nodeLabels={"pool": "gpu"}, topologyName="t"), flavor("plain")]
    items += [cluster_queue(name, "above", each, preemption=reclaims) for name, each in quotas.items()]
    decides = policy([*items, node("n0"), node("n1"), *map(local_queue, quotas)], {"fairSharing": {"enable": True}})
    scheduler = cycle.Scheduler(decides)

    def heads(*names: str) -> list[Work]:
        return [work_in(decides, workload(name, name, 8 if name in "ab" else 4)) for name in names]

    (borrower,), (waits,) = heads("f"), heads("e")
    scheduler.cycle([borrower], 1e12)
    assert [target.work for target in scheduler.cycle([waits], 1e12)[0].targets] == [borrower]
    decides.evict(borrower)
    (entry,) = scheduler.cycle([waits], 1e12)
    resting = scheduler.rest(entry)
    assert resting
    # Alone, one that was moved would be where it was nominated for, with other victims.
    assert scheduler.rest(replace(entry, assignment=copy.copy(entry.assignment))) is None
    entries = scheduler.cycle(heads("a"), 1e12, [resting])
    assert [entry.work.name for entry in entries] == ["a"]
    decides.release(entries[0].work)
    near = resting._replace(flavors=frozenset({"nodes", "plain"}))
    far = resting._replace(work=heads("g")[0])
    entries = scheduler.cycle(heads("a"), 1e12, [far, near])
    assert {entry.work.name for entry in entries} == {"a", "e", "g"}
    decides.release(next(entry.work for entry in entries if entry.work.name == "a"))
    entries = scheduler.cycle(heads("a", "b"), 1e12, [resting])
    outcome = {entry.work.name: entry.status for entry in entries}
    assert outcome == {"a": cycle.Status.ADMITTED, "b": cycle.Status.ADMITTED, "e": cycle.Status.PREEMPTING}
