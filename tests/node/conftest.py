"""A folder for a node."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_node import can_mount
from needs import require


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its path is short and plain, as that of a root is. Needs a mount namespace."""
    require(can_mount(), "unshare and the right to make a mount namespace")
    with tempfile.TemporaryDirectory(prefix="podwright-node-") as name:
        yield Path(name)
