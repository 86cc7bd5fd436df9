"""A plugin of pytest that leaves out the tests listed in `$PODWRIGHT_DESELECTED`, a file with a node id on each line.

`bin/test --changed` names the tests that do not run instead of those that do: a test that is new runs, and one that no
longer exists is no error.
"""

import os
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the listed tests."""
    listed = {*Path(os.environ["PODWRIGHT_DESELECTED"]).read_text(encoding="utf-8").split("\n")}
    left_out = [item for item in items if item.nodeid in listed]
    if left_out:
        items[:] = [item for item in items if item.nodeid not in listed]
        config.hook.pytest_deselected(items=left_out)
