"""Real parts that tests are about, such as promtool: skipped without one on a workstation, and a failure in CI.

`.ci/run` installs every part and sets `CI`. What it cannot have, a GPU and an AWS account, are marks of their own.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def require(existing: object, what: str) -> None:
    """Continue where a part is there; without it fail where `CI` is set, and skip elsewhere."""
    if existing:
        return
    if os.environ.get("CI"):
        pytest.fail(f"needs {what}; in CI a missing part is no reason to skip", pytrace=False)
    pytest.skip(f"needs {what}")


def needs(existing: object, what: str) -> pytest.MarkDecorator:
    """A mark for tests and modules that does the same before their fixtures are made (see conftest.py)."""
    return pytest.mark.needs(bool(existing), what)


def needs_programs(*names: str, package: str) -> pytest.MarkDecorator:
    """The same for programs on PATH, which a Debian package brings."""
    absent = [name for name in names if shutil.which(name) is None]
    return needs(not absent, f"{', '.join(absent)} of Debian's {package}")


def python_39() -> str:
    """The Python that Amazon Linux 2023 calls python3. No registry has it; where it is missing, vermin alone judges."""
    installed = [shutil.which("python3.9"), *Path.home().glob(".pyenv/versions/3.9.*/bin/python3.9")]
    working = (
        str(python)
        for python in filter(None, installed)
        if subprocess.run([python, "--version"], capture_output=True).returncode == 0
    )
    actual = next(working, "")
    if not actual:
        pytest.skip("needs Python 3.9, which Amazon Linux 2023 has")
    return actual
