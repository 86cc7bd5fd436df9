"""The simulator beside cases of Kueue's own tests, in the folder that PODWRIGHT_KUEUE_CASES names."""

import os
from pathlib import Path

import pytest

from run import Result, results

CASES = Path(os.environ["PODWRIGHT_KUEUE_CASES"])


@pytest.mark.parametrize("result", list(results(CASES)), ids=lambda result: f"{result.suite}-{result.name}")
def test_decides_as_kueue_does(result: Result) -> None:
    if result.unsupported:
        pytest.skip(result.unsupported)
    assert result.difference == ""
