"""One empty stack for the tests of single constructs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podwright.stacks.feature_flags import FEATURE_FLAGS

if TYPE_CHECKING:
    import aws_cdk as cdk


@pytest.fixture
def stack(tmp_path: Path) -> "cdk.Stack":
    """A stack in 111122223333/us-west-2, with the feature flags that our templates are made with."""
    # This file is read before tests/conftest.py has set up the Node that this import starts.
    import aws_cdk as cdk

    app = cdk.App(outdir=str(tmp_path), context=FEATURE_FLAGS)
    return cdk.Stack(app, "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
