"""Whatever goes wrong while a training plan is bought, it is bought once, and every report is true when it is made.

Every call of a purchase is lost, refused, late or the last of its buyer, before and after it took place, while a second
buyer comes at every point, lists are stale, and the service refuses a second plan of one name or sells it. What that
does not reach, chance does: more buyers, more faults each, any order of steps.
"""

import pytest

from podwright.planning.purchase import run as plan_run
from purchase_aws import Flow
from purchase_cases import FLOWS, MUTATIONS, RANDOM_SCHEDULES, SHARDS, VARIANTS, every_case, random_case, violations

STRIDE, STRIDE_WITH_ALL = 40, 8
"""A run takes every STRIDE-th of the random schedules, more with `--all`, and all ten thousand with `--every-point`."""


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("flow", FLOWS)
def test_every_fault_at_every_call(flow: Flow, variant: str) -> None:
    cases = list(every_case(flow, variant))
    assert len(cases) > 1000
    assert next(violations(iter(cases)), None) is None


@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_schedule(shard: int, request: pytest.FixtureRequest) -> None:
    seeds = range(shard, RANDOM_SCHEDULES, SHARDS)
    if not request.config.getoption("--every-point"):
        seeds = seeds[:: STRIDE_WITH_ALL if request.config.getoption("--all") else STRIDE]
    assert next(violations(random_case(seed) for seed in seeds), None) is None


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("name", MUTATIONS)
def test_without_the_lock_or_the_look_up_it_fails(monkeypatch: pytest.MonkeyPatch, name: str, flow: Flow) -> None:
    monkeypatch.setattr(plan_run, name, MUTATIONS[name])
    for variant in VARIANTS:
        assert next(violations(every_case(flow, variant)), None), f"nobody noticed: {flow}, {variant}"
