"""Step times in the logs of jobs: the forms that frameworks write, whose rank a line is, and which rank is slow."""

import pytest

from podwright.operations.jobs.step_times import PodLog, rank_of, rank_times, seconds_of, verdict


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (" iteration 10/ 100 | elapsed time per iteration (ms): 1234.5 | learning rate: 1e-4 |", 1.2345),
        ("step 3: loss 2.1 step_time: 0.85 s", 0.85),
        ('{"step": 3, "step_time": 0.85, "rank": 4}', 0.85),
        ("step_time_ms=850", 0.85),
        ("iter time (ms): 850.0", 0.85),
        ("batch time: 850 ms", 0.85),
        ("12%|█ | 12/100 [00:10<01:20,  1.25s/it]", 1.25),
        ("12%|█ | 12/100 [00:10<01:20,  4.00it/s]", 0.25),
        ("throughput 2 steps/s", 0.5),
        ("850 ms/step", 0.85),
        ("loss 0.85 at step 7", None),
        ("0.00it/s", None),
        ("samples/s: 120", None),
    ],
)
def test_the_time_of_a_step(line: str, seconds: float | None) -> None:
    assert seconds_of(line) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank9]: step", 9),
        ('{"rank": 9}', 9),
        ("rank=9 step", 9),
        ("[default1]:step", 9),
        ("[2026-11-25] step", None),
        ("step", None),
    ],
)
def test_whose_rank_a_line_is(line: str, rank: int | None) -> None:
    assert rank_of(line, 8) == rank


def test_a_warm_up_does_not_count() -> None:
    """The median of the last steps, so that compiling before the first one makes no rank slow."""
    lines = ["step_time: 90 s", *["step_time: 1 s"] * 60]
    (slow, fast) = rank_times([PodLog("a", "n1", 0, ["step_time: 1.2 s"] * 3), PodLog("b", "n2", 8, lines)])
    assert (slow.rank, slow.seconds, fast.rank, fast.seconds, fast.steps) == (0, 1.2, 8, 1.0, 50)


def test_equal_ranks_are_not_accused() -> None:
    logs = [PodLog(f"p{rank}", "n", rank, [f"step_time: {1 + rank / 100}"]) for rank in range(4)]
    assert verdict(rank_times(logs)) == "No rank is slow: the slowest is within 1.5 % of the median of 4 ranks."
    assert "Only one rank" in verdict(rank_times(logs[:1]))
