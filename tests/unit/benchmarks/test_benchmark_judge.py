"""What follows from measurements. There are no recordings of real GPUs behind this: clean nodes are simulated."""

import json
import random
from typing import Any

import pytest

from podwright.lifecycle_scripts.podwright_benchmarks.judge import THRESHOLDS, judge, verdict
from podwright.lifecycle_scripts.podwright_benchmarks.measured import Measured
from podwright.planning.node.benchmark_results import BenchmarkResults

H200 = "ml.p5en.48xlarge"
# What a healthy H200 may reach; 0.7 % between clean GPUs is what thresholds.json assumes and no measurement of ours.
CLEAN = {"gemm_bf16": 760.0, "gemm_fp8": 1400.0, "hbm_read": 4350.0, "hbm_copy": 4200.0, "hbm_triad": 4250.0}
NOISE = 0.007


def node(seed: int, *, slow: int | None = None, factor: float = 0.95) -> list[Measured]:
    """Eight GPUs with noise; one of them slower by a factor in everything."""
    chance = random.Random(seed)
    return [
        Measured(
            name,
            (gpu,),
            rate * chance.gauss(1, NOISE) * (factor if gpu == slow else 1),
            "TFLOPS" if "gemm" in name else "GB/s",
        )
        for name, rate in CLEAN.items()
        for gpu in range(8)
    ]


def one(name: str, value: float | None, unit: str = "TFLOPS", *, kind: str = H200, nodes: int = 1, **rest: Any) -> dict:
    (result,) = judge([Measured(name, (0,), value, unit, **rest)], kind, nodes=nodes, accelerators=8)
    return result


def test_clean_nodes_raise_no_alarm():
    alarms = [
        (seed, result["name"], result["reason"])
        for seed in range(50)
        for result in judge(node(seed), H200)
        if result["outcome"] != "pass"
    ]
    assert alarms == []


@pytest.mark.parametrize("slow", range(8))
def test_one_gpu_that_is_5_percent_slower_is_found(slow):
    results = [result for result in judge(node(1000 + slow, slow=slow), H200) if result["outcome"] != "pass"]
    assert results
    assert {result["devices"][0] for result in results} == {slow}
    assert all(result["outcome"] == "warn" and "median" in result["reason"] for result in results)


def test_how_often_a_slow_gpu_is_found():
    actual = [
        any(result["outcome"] != "pass" for result in judge(node(seed, slow=seed % 8), H200))
        for seed in range(2000, 2200)
    ]
    assert sum(actual) == len(actual)


def test_a_slow_gpu_below_the_line_fails():
    outcomes = {
        tuple(r["devices"]): r["outcome"] for r in judge(node(1, slow=3, factor=0.8), H200) if r["name"] == "gemm_bf16"
    }
    assert outcomes[(3,)] == "fail"
    assert set(outcomes.values()) == {"pass", "fail"}


@pytest.mark.parametrize(
    ("name", "value", "unit", "outcome"),
    [
        ("gemm_bf16", 780.0, "TFLOPS", "pass"),
        ("gemm_bf16", 690.0, "TFLOPS", "warn"),
        ("gemm_bf16", 600.0, "TFLOPS", "fail"),
        ("hbm_copy", 1000.0, "GB/s", "warn"),
        ("gemm_bf16_wrong", 0.0, "errors", "pass"),
        ("gemm_bf16_wrong", 1.0, "errors", "fail"),
        ("memory_wrong", 1.0, "errors", "fail"),
        ("gpus", 8.0, "GPUs", "pass"),
        ("gpus", 7.0, "GPUs", "fail"),
        ("gemm_tf32", 1.0, "TFLOPS", "pass"),
        ("host_latency", 1e6, "us", "pass"),
        ("lustre_write", 0.001, "GB/s", "pass"),
    ],
)
def test_outcomes(name, value, unit, outcome):
    result = one(name, value, unit)
    assert result["outcome"] == outcome
    assert bool(result["reason"]) == (outcome != "pass")


def test_a_missing_value_fails_only_by_the_hardware():
    assert one("gemm", None, "", reason="no driver")["outcome"] == "skip"
    assert one("gemm", None, "", reason="it hangs", failed=True) | {"outcome": "fail", "reason": "it hangs"} == one(
        "gemm", None, "", reason="it hangs", failed=True
    )


def test_several_nodes_have_lines_of_their_own():
    assert one("all_reduce", 340, "GB/s", nodes=2)["outcome"] == "fail"
    four = one("all_reduce", 100, "GB/s", nodes=4)
    # 430 of 750 possible on two nodes is 296 of 517 on four, which nobody has published: no failure.
    assert (four["outcome"], four["warn_below"], four["fail_below"]) == ("warn", pytest.approx(296.2, abs=0.1), None)
    assert one("all_reduce", 300, "GB/s", nodes=4, kind="ml.p6-b200.48xlarge")["outcome"] == "fail"
    assert one("all_gather", 10, "GB/s", nodes=2)["outcome"] == "pass"


def test_the_verdict_is_the_worst_outcome():
    assert verdict([]) == "skip"
    assert verdict([one("gpus", 8, "GPUs"), one("gemm", None, "")]) == "pass"
    assert verdict([one("gpus", 8, "GPUs"), one("hbm_copy", 1, "GB/s")]) == "warn"
    assert verdict([one("gpus", 7, "GPUs"), one("hbm_copy", 1, "GB/s")]) == "fail"


def test_results_are_those_of_the_published_schema():
    results = judge(node(0, slow=1), H200)
    record = {
        "version": 1,
        "cluster": "prod",
        "group": "h200",
        "instance_id": None,
        "instance_type": H200,
        "started": "2026-11-21T10:00:00.000+00:00",
        "seconds": 41.5,
        "mode": "quick",
        "thresholds_version": THRESHOLDS["version"],
        "results": results,
        "verdict": verdict(results),
    }
    assert BenchmarkResults.model_validate_json(json.dumps(record)).verdict == "warn"
