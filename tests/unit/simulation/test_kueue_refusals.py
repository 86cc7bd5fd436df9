"""Work that was refused is not decided about again until it makes a difference: what happens is the same."""

import random

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue import cycle
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.events import Job, simulate
from podwright.planning.simulation.kueue.policy import policy

HOST = "kubernetes.io/hostname"


def objects(source: random.Random) -> list[Object]:
    """A tree of five queues over two flavors, one with nodes, with preemption of every kind."""
    topology = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
    flavors = [flavor("nodes", nodeLabels={"pool": "gpu"}, topologyName="t"), flavor("plain")]
    result = [topology, *flavors, *(node(f"n{number}") for number in range(4))]
    result += [{"kind": "Cohort", "metadata": {"name": "below"}, "spec": {"parentName": "above"}}]
    for name in "abcde":
        limits = source.choice([(), (source.randrange(9),), (None, source.randrange(7))])
        names = source.sample(["nodes", "plain"], source.choice([1, 2]))
        preemption = {
            "withinClusterQueue": source.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": source.choice(["Never", "LowerPriority", "Any"]),
        }
        strategy = source.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"])
        quotas = {each: (source.randrange(4, 12), *limits) for each in names}
        cohort = source.choice(["above", "below"])
        result += [cluster_queue(name, cohort, quotas, preemption=preemption, queueingStrategy=strategy)]
        result += [local_queue(name)]
    return result


def turns(seed: int) -> list[tuple[object, ...]]:
    """Who held what, when, and why it ended."""
    source = random.Random(seed)
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
    history = simulate(decides, jobs, Assumptions())
    return [
        (job.work.name, turn.start, turn.end, turn.ended, turn.flavors, turn.counts, turn.placements)
        for job in history.jobs
        for turn in job.turns
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_remembered_of_a_refusal_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = turns(seed)
    monkeypatch.setattr(cycle.Scheduler, "_refusal", lambda *_: None)
    assert remembered == turns(seed)


def test_refused_work_is_seldom_decided_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = []
    original = cycle.Scheduler._best
    monkeypatch.setattr(cycle.Scheduler, "_best", lambda *arguments: decided.append(1) or original(*arguments))
    turns(1)
    remembering = len(decided)
    monkeypatch.setattr(cycle.Scheduler, "_refusal", lambda *_: None)
    turns(1)
    assert remembering < 0.8 * (len(decided) - remembering)
