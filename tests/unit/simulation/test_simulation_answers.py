"""The smallest amount is enough, the one below is not, and few are tried; and environments with one number changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import InvalidValue
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.answers.changes import changed, present
from podwright.planning.simulation.answers.smallest import Tried, smallest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def prod() -> Environment:
    return Project.at(ROOT).load("prod").environment


@given(st.integers(0, 500), st.integers(0, 500), st.integers(-10, 600))
def test_the_smallest_amount_that_is_enough(low: int, more: int, needed: int) -> None:
    asked = list[int]()
    notices = list[Tried]()

    def wait(amount: int) -> float:
        asked.append(amount)
        return 10.0 if amount >= needed else 100.0

    answer = smallest(low, low + more, wait, 60.0, notices.append)
    assert answer.amount == (max(low, needed) if needed <= low + more else None)
    assert len(asked) == len(set(asked)) <= 2 + max(more, 1).bit_length()
    assert [each.amount for each in answer.tried] == asked
    assert list(answer.tried) == notices


def test_what_gets_worse_with_more_is_still_enough() -> None:
    answer = smallest(0, 16, lambda amount: 100.0 if amount in (0, 1, 2, 8) else 10.0, 60.0)
    assert answer.amount is not None
    assert [each.enough for each in answer.tried if each.amount == answer.amount] == [True]
    assert answer.amount - 1 in {each.amount for each in answer.tried if not each.enough}


def test_one_number_of_an_environment_is_another(prod: Environment) -> None:
    types = environment_types(prod.instance_types)
    assert [present(prod, control, "research", "h200") for control in ("quota", "borrow", "nodes")] == [10, 100, 16]
    guaranteed = environment_policy(changed(prod, "quota", "research", "h200", 12), types).teams["research"].shares
    assert guaranteed["ml.p5en.48xlarge"]["nvidia.com/gpu"].nominal == 96
    borrowed = environment_policy(changed(prod, "borrow", "research", "h200", 50), types).teams["research"].shares
    assert borrowed["ml.p5en.48xlarge"]["nvidia.com/gpu"].borrowable == 40
    more = environment_policy(changed(prod, "nodes", "research", "h200", 20), types)
    assert more.flavors["ml.p5en.48xlarge"].capacity["nvidia.com/gpu"] == 160
    assert environment_policy(prod, types).flavors["ml.p5en.48xlarge"].capacity["nvidia.com/gpu"] == 128


def test_what_is_not_there_is_named(prod: Environment) -> None:
    with pytest.raises(InvalidValue, match="no team nobody; it has product, research"):
        present(prod, "quota", "nobody", "h200")
    with pytest.raises(InvalidValue, match="no group h100"):
        present(prod, "nodes", "research", "h100")
