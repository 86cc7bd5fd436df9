"""A folder for a node."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_node import can_mount


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its path is short and plain, as that of a root is. Skips where no mount namespace can be made."""
    if not can_mount():
        pytest.skip("needs unshare and the right to make a mount namespace")
    with tempfile.TemporaryDirectory(prefix="podwright-node-") as name:
        yield Path(name)
