"""A project whose kubectl answers from a recorded cluster."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.operations.kubernetes import kubectl as kubectl_module

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a project with the file of an environment and the record of its cluster, and returns its folder."""

    def made(environment: str) -> Path:
        (tmp_path / "environments").mkdir()
        shutil.copy(ROOT / f"environments/{environment}.yaml", tmp_path / "environments")
        shutil.copy(HERE / f"{environment.replace('-', '_')}.json", tmp_path / "cluster.json")
        (tmp_path / "forbidden").touch()
        (tmp_path / "logs").mkdir()
        program = tmp_path / "kubectl"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {HERE}/fake_kubectl.py {tmp_path} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setattr(kubectl_module, "tool", lambda _: str(program))
        monkeypatch.setenv("COLUMNS", "120")
        return tmp_path

    return made
