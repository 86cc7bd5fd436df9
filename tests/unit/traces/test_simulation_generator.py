"""Work that is made up has the load, sizes and durations that it says, and is the same each time."""

from statistics import median

import pytest

from podwright.config.errors import InvalidValue
from podwright.planning.simulation.traces.generator import SIZES, Demand, Made, generated

DEMANDS = [Demand("research", 512, 512, 8, "h200"), Demand("product", 128, 256, 8)]
MADE = Made(days=60, seed=1)


def test_a_seed_makes_the_same_work_again() -> None:
    assert generated(DEMANDS, MADE) == generated(DEMANDS, MADE)
    assert generated(DEMANDS, MADE) != generated(DEMANDS, MADE._replace(seed=2))


def test_a_teams_work_does_not_depend_on_the_other_teams() -> None:
    both, alone = generated(DEMANDS, MADE), generated(DEMANDS[1:], MADE)
    mixed = [(job.name, job.submitted, job.seconds) for job in both.jobs if job.team == "product"]
    assert mixed == [(job.name, job.submitted, job.seconds) for job in alone.jobs]


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_the_work_has_its_load_and_its_median(load: float) -> None:
    jobs = generated(DEMANDS, MADE._replace(load=load, median_seconds=3600.0, days=120)).jobs
    asked = sum(job.pods * job.accelerators * job.seconds for job in jobs)
    assert asked / (640 * 120 * 86400) == pytest.approx(load, rel=0.1)
    assert median(job.seconds for job in jobs) == pytest.approx(3600, rel=0.05)


def test_jobs_have_the_sizes_that_their_team_can_hold() -> None:
    jobs = generated(DEMANDS, MADE).jobs
    sizes = {
        team: {job.pods * job.accelerators for job in jobs if job.team == team} for team in ("research", "product")
    }
    assert sizes == {"research": set(SIZES), "product": set(SIZES)}
    small = generated([Demand("a", 4, 4, 8), Demand("b", 6, 6, 8)], MADE)
    assert {job.accelerators for job in small.jobs} == {1}
    odd = generated([Demand("a", 4, 4, 8)], MADE._replace(sizes={8: 1.0}))
    assert {job.accelerators for job in odd.jobs} == {4}


def test_jobs_come_in_order_and_within_the_days() -> None:
    trace = generated(DEMANDS, MADE._replace(priorities=("high", "low")))
    times = [job.submitted for job in trace.jobs]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] < 60 * 86400
    assert {job.priority for job in trace.jobs} == {"high", "low"}
    assert {job.group for job in trace.jobs} == {"h200", ""}
    assert len({job.name for job in trace.jobs}) == len(trace.jobs)
    assert "seed 1" in trace.assumptions[0]


@pytest.mark.parametrize("change", [{"days": 0}, {"load": -1}, {"median_seconds": 0}])
def test_work_that_cannot_be_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="more than 0"):
        generated(DEMANDS, MADE._replace(**change))  # pyrefly: ignore[bad-argument-type]
    with pytest.raises(InvalidValue, match="no team has a quota"):
        generated([Demand("a", 0, 8, 8)], MADE)
