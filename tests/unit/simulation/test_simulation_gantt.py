"""Jobs on domains: no two share an accelerator, and arrows lead from those that began to those that were stopped."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from podwright.planning.simulation.summary.gantt import busiest, gantt
from podwright.planning.simulation.summary.outcome import JobOutcome, Outcome, Run, Stop

H = 3600.0


def outcome(jobs: list[JobOutcome], stops: tuple[Stop, ...] = (), days: float = 4) -> Outcome:
    return Outcome("prod", 0.0, days * 86400, jobs, stops, {}, {"h200": 16}, {})


RUNS = st.tuples(st.integers(0, 20), st.integers(1, 5), st.integers(1, 4), st.sampled_from(["a", "b"]))


@given(st.lists(RUNS, max_size=25))
def test_no_two_jobs_share_an_accelerator(rows: list[tuple[int, int, int, str]]) -> None:
    jobs = [
        JobOutcome(
            f"job-{index}",
            "x",
            start * H,
            8,
            0,
            [Run(start * H, (start + hours) * H, "h200", 4 * pods, ((domain, pods),))],
        )
        for index, (start, hours, pods, domain) in enumerate(rows)
    ]
    chart = gantt(outcome(jobs), 0.0)
    for one, other in combinations(chart.bars, 2):
        apart = one.end <= other.start or other.end <= one.start
        beside = one.slot + one.slots <= other.slot or other.slot + other.slots <= one.slot
        assert one.domain != other.domain or apart or beside
    for job in jobs:
        assert sum(bar.slots for bar in chart.bars if bar.job == job.name) == job.runs[0].accelerators
    assert all(bar.slot + bar.slots <= chart.lanes[bar.domain] for bar in chart.bars)


def test_an_arrow_leads_from_who_began_to_who_was_stopped() -> None:
    time = 50 * H
    victim = JobOutcome("victim", "x", 0, 8, 0, [Run(48 * H, time, "h200", 8, (("n1", 1),), "InClusterQueue")])
    preemptor = JobOutcome(
        "preemptor", "y", 49 * H, 8, 0, [Run(time + 30, 52 * H, "h200", 8, (("n1", 1),), "finished")]
    )
    others = [
        JobOutcome(f"o{index}", "y", 0, 8, 0, [Run(0, H, "h200", 8, (("n2", 1),), "finished")]) for index in range(3)
    ]
    stop = Stop(time, "victim", "x", "preemptor", "y", "InClusterQueue")
    whole = outcome([victim, preemptor, *others], (stop,))
    assert busiest(whole) == 48 * H
    chart = gantt(whole)
    (arrow,) = chart.arrows
    assert (arrow.preemptor.job, arrow.victim.job, arrow.stop) == ("preemptor", "victim", stop)
    assert chart.lanes == {"n1": 8}


def test_what_is_too_much_is_left_out_and_counted() -> None:
    jobs = [
        JobOutcome(
            f"j{index}", "x", 0, 1, 0, [Run(index * 60.0, index * 60 + 60, "h200", 1, ((f"n{index % 50:02}", 1),))]
        )
        for index in range(1440)
    ]
    chart = gantt(outcome(jobs), 0.0, most_bars=800, most_lanes=40)
    assert len(chart.bars) <= 800
    assert (len(chart.lanes), chart.left_out) == (40, 10)
    assert gantt(outcome([])).bars == []
