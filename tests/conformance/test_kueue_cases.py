"""The simulator beside cases of Kueue's own tests, in the folder that PODWRIGHT_KUEUE_CASES names."""

import os
from pathlib import Path

import pytest

from run import Result, results

CASES = Path(os.environ["PODWRIGHT_KUEUE_CASES"])


@pytest.mark.parametrize(
    "result",
    [each for each in results(CASES) if not each.unsupported],
    ids=lambda result: f"{result.suite}-{result.name}",
)
def test_decides_as_kueue_does(result: Result) -> None:
    assert result.difference == ""
