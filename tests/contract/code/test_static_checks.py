"""Ruff, shellcheck and shfmt have nothing to say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "--no-cache", "--output-format=concise", "."), ("ruff", "format", "--check", "--no-cache", ".")],
    ids=lambda command: " ".join(command[:2]),
)
def test_python(command: tuple[str, ...]) -> None:
    result = subprocess.run([TOOLS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def is_bash(file: Path) -> bool:
    if not file.is_file() or file.suffix in (".pyc", ".png"):
        return False
    with file.open("rb") as opened:
        return opened.readline().startswith((b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh"))


def scripts() -> list[Path]:
    return [
        file
        for folder in ("bin", ".ci", "lifecycle_scripts", "constructs")
        for file in (ROOT / folder).rglob("*")
        if is_bash(file)
    ]


def test_bash() -> None:
    assert ROOT / "bin/setup" in scripts()
    result = subprocess.run([TOOLS / "shellcheck", *scripts()], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_bash_format() -> None:
    result = subprocess.run([TOOLS / "shfmt", "-i", "2", "-ci", "-d", *scripts()], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_script_stops_at_the_first_failure() -> None:
    """Also in a pipe and for a misspelt variable. Sourced files start with a comment instead of `#!`."""
    lax = [script for script in scripts() if "\nset -euo pipefail\n" not in script.read_text()]
    assert lax == []
