"""Figures of an outcome: waits, accelerator-hours, preemptions and fairness come out as counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.planning.simulation.summary.figures import figures, percentile, waits
from podwright.planning.simulation.summary.outcome import JobOutcome, Outcome, Run, Stop

H = 3600.0
QUOTAS = {"research": {"h200": 8}, "product": {"h200": 8}}
FINISHED = "finished"


def outcome(*jobs: JobOutcome, stops: tuple[Stop, ...] = (), hours: float = 10) -> Outcome:
    return Outcome("prod", 0, hours * H, jobs, stops, QUOTAS, {"h200": 16}, {"research": 1.0, "product": 3.0})


def job(team: str, submitted: float, *runs: Run, finished: float | None = None, size: int = 8) -> JobOutcome:
    return JobOutcome(f"{team}-{submitted:g}", team, submitted, size, 0, list(runs), finished)


BORROWER = job(
    "research", 0, Run(1 * H, 5 * H, "h200", 16, (), "InCohortReclamation"), Run(8 * H, 10 * H, "h200", 16), size=16
)
OWNER = job("product", 5 * H, Run(5 * H, 8 * H, "h200", 8, (), FINISHED), finished=8 * H)
STARVED = job("product", 9 * H)
STOP = Stop(5 * H, "research-0", "research", "product-18000", "product", "InCohortReclamation")


def test_hours_are_counted_by_what_they_are() -> None:
    result = figures(outcome(BORROWER, OWNER, STARVED, stops=(STOP,)), slices=10)
    teams = {team.team: team for team in result.teams}
    research, product = teams["research"].hours, teams["product"].hours
    # Six hours held 8 of its own and 8 borrowed; four it waited with all 16, and its own 8 were idle.
    assert research == pytest.approx((48, 48, 64, 32))
    assert product == pytest.approx((24, 0, 8, 56))
    assert result.used == pytest.approx((96 + 24) / 160)
    assert teams["research"].lost_hours == pytest.approx(64)
    assert (teams["research"].stopped, teams["research"].stops, teams["product"].stops) == (1, 0, 1)
    assert [tuple(stop) for stop in result.stops] == [("product", "research", "InCohortReclamation", 1)]


def test_a_timeline_has_each_hour_where_it_was() -> None:
    timeline = figures(outcome(BORROWER, OWNER, STARVED), slices=5).timeline
    assert [tuple(hours) for hours in timeline.teams["product"]] == [
        pytest.approx(row) for row in [(0, 0, 0, 16), (0, 0, 0, 16), (8, 0, 0, 8), (16, 0, 0, 0), (0, 0, 8, 16)]
    ]
    assert timeline.fairness[1] == 1.0
    # The first slice: research waits one hour of two with a guarantee of 8, and holds it for the other.
    assert timeline.fairness[3] == pytest.approx(0.5)
    assert timeline.shares["research"][1] == pytest.approx(50 * 2)
    assert set(timeline.shares["product"]) == {0.0}


def test_waits_count_who_still_waits() -> None:
    result = waits([BORROWER, OWNER, STARVED], 10 * H)
    assert (result.jobs, result.started, result.finished) == (3, 2, 1)
    assert result[3:] == (pytest.approx(2 / 3 * H), H, H, H)
    assert waits([], 0).jobs == 0


@given(st.lists(st.integers(0, 100), min_size=1, max_size=200), st.sampled_from([1, 50, 90, 100]))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[int], percent: int) -> None:
    ordered = sorted(values)
    value = percentile(ordered, percent)
    assert sum(1 for each in ordered if each <= value) * 100 >= percent * len(ordered)
    assert sum(1 for each in ordered if each < value) * 100 < percent * len(ordered)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["research", "product"]),
            st.floats(0, 9),
            st.floats(0, 5),
            st.floats(0, 5),
            st.integers(1, 16),
        ),
        max_size=20,
    ),
    st.integers(1, 40),
)
def test_no_hour_is_lost_or_counted_twice(rows: list[tuple[str, float, float, float, int]], slices: int) -> None:
    jobs = []
    for team, submitted, waited, ran, size in rows:
        start, end = min((submitted + waited) * H, 10 * H), min((submitted + waited + ran) * H, 10 * H)
        jobs.append(job(team, submitted * H, Run(start, end, "h200", size, (), FINISHED), finished=end, size=size))
    result = figures(outcome(*jobs), slices)
    held = sum((each.runs[0].end - each.runs[0].start) * each.accelerators for each in jobs) / H
    waited = sum((each.runs[0].start - each.submitted) * each.accelerators for each in jobs) / H
    hours = [team.hours for team in result.teams]
    assert sum(each.in_quota + each.borrowed for each in hours) == pytest.approx(held, abs=1e-6)
    assert sum(each.waiting for each in hours) == pytest.approx(waited, abs=1e-6)
    assert sum(each.in_quota + each.idle for each in hours) == pytest.approx(160)
