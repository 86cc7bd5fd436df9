"""What the sandbox's nodes say that they measured: as realistic as published figures, and judged as nodes judge."""

import re

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.lifecycle_scripts.podwright_benchmarks.judge import THRESHOLDS, judge
from podwright.lifecycle_scripts.podwright_benchmarks.measured import Measured
from podwright.operations.benchmarks.picture import picture
from podwright.planning.node.benchmark_results import BenchmarkResults
from podwright.sandbox.hyperpod.made_up_benchmarks import measurements

TYPES = sorted(
    {name for line in THRESHOLDS["lines"] if "gemm_bf16" in line["names"] for name in line["instance_types"]}
)


@pytest.mark.parametrize("verdict", ["pass", "warn", "fail"])
@pytest.mark.parametrize("instance_type", TYPES)
def test_a_nodes_own_judge_would_say_the_same(instance_type: str, verdict: str) -> None:
    row = catalog().find(instance_type)
    assert row
    for number in range(20):
        results = measurements(instance_type, row.accelerator_count, f"i-{number:017x}", verdict)
        judged = judge(
            [Measured(one["name"], tuple(one["devices"]), one["value"], one["unit"]) for one in results], instance_type
        )
        assert [one["outcome"] for one in judged] == [one["outcome"] for one in results]
        bad = [one for one in results if one["outcome"] != "pass"]
        # One device of one node, as hardware fails.
        assert [(one["outcome"], len(one["devices"])) for one in bad] == ([] if verdict == "pass" else [(verdict, 1)])
        assert all(one["value"] <= one["bound"] for one in results)


def test_the_same_node_measures_the_same() -> None:
    assert measurements("ml.p5en.48xlarge", 8, "i-1", "pass") == measurements("ml.p5en.48xlarge", 8, "i-1", "pass")
    assert measurements("ml.p5en.48xlarge", 8, "i-1", "pass") != measurements("ml.p5en.48xlarge", 8, "i-2", "pass")


def test_a_type_without_published_figures_says_a_percentage() -> None:
    (one,) = measurements("ml.g5.12xlarge", 4, "i-1", "fail")
    assert (one["name"], one["unit"], one["reason"]) == ("simulated", "percent", "40 percent is below 80")
    (skipped,) = measurements("ml.p5en.48xlarge", 8, "i-1", "skip")
    assert (skipped["value"], skipped["outcome"]) == (None, "skip")


def run(number: int, verdict: str) -> BenchmarkResults:
    return BenchmarkResults.model_validate(
        {
            "version": 1,
            "cluster": "prod",
            "group": "h200",
            "instance_id": f"i-{number}",
            "verdict": verdict,
            "instance_type": "ml.p5en.48xlarge",
            "started": "2026-11-26T12:00:00+00:00",
            "seconds": 0.0,
            "mode": "quick",
            "thresholds_version": "1",
            "decision": {"policy": "gate", "action": "keep", "reason": ""},
            "results": measurements("ml.p5en.48xlarge", 8, f"i-{number}", verdict),
        }
    )


@pytest.mark.parametrize("verdicts", [("pass", "pass"), ("pass", "warn", "fail")])
def test_the_legend_shows_the_dots_as_they_are_and_no_others(verdicts: tuple[str, ...]) -> None:
    drawn, _, legend = picture(list(map(run, range(4), verdicts))).rpartition("<g transform")
    dots, named = (set(re.findall(r'<circle [^>]*(r="[^>]*?"[^>/]*?)/?>', part)) for part in (drawn, legend))
    assert dots == named
    assert len(dots) == len(set(verdicts))
