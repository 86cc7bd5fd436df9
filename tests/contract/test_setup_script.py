"""bin/setup: what it does once, what it re-uses, and what it says where it cannot continue.

pip is a stand-in that notes its arguments, so these runs need no network; CI itself starts from the real one.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from needs import needs_programs

ROOT = Path(__file__).resolve().parents[2]
BASE_PYTHON = Path(sys.base_prefix, "bin", f"python{sysconfig.get_python_version()}")
PIP = """
import os, pathlib, sys, time
root = pathlib.Path(sys.prefix).parent
if sys.argv[1] == "install":
    (root / "pip-ran").open("a").write(" ".join(sys.argv) + "\\n")
    print("  Downloading aws_cdk_lib-2.275.0-py3-none-any.whl (59.8 MB)")
    time.sleep(float(os.environ.get("PIP_SECONDS", 0)))
    sys.exit((root / "pip-fails").exists())
"""


class Checkout:
    """A checkout with the rooms as empty folders and an environment whose pip is the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir(parents=True)
        shutil.copy(ROOT / "bin/setup", root / "bin")
        shutil.copy(ROOT / "pyproject.toml", root)
        subprocess.run([BASE_PYTHON, "-m", "venv", "--without-pip", root / ".venv"], check=True)
        self.packages = next((root / ".venv/lib").glob("python3*/site-packages"))
        (self.packages / "pip").mkdir()
        (self.packages / "pip/__init__.py").touch()
        (self.packages / "pip/__main__.py").write_text(PIP)

    def setup(self, *arguments: str, path: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        environment |= {"PATH": path or os.environ["PATH"], "HOME": str(self.root)}
        return subprocess.run([self.root / "bin/setup", *arguments], env=environment, capture_output=True, text=True)

    @property
    def installed(self) -> list[str]:
        """The last argument of each pip install so far."""
        ran = self.root / "pip-ran"
        return [line.split()[-1] for line in ran.read_text().splitlines()] if ran.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a checkout")


def test_a_second_run_does_nothing(checkout: Checkout) -> None:
    first = checkout.setup("test")
    assert first.returncode == 0, first.stderr
    assert checkout.installed == [".[test]"]
    assert "aws_cdk_lib-2.275.0-py3-none-any.whl (59.8 MB)" in first.stderr
    for part in ("test", "sandbox"):
        again = checkout.setup(part)
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert checkout.setup().stderr == ""
    assert checkout.installed == [".[test]"]


def test_a_part_that_is_missing_is_added(checkout: Checkout) -> None:
    checkout.setup()
    checkout.setup("sandbox")
    assert checkout.installed == [".", ".[sandbox]"]


def test_a_changed_pin_installs_again(checkout: Checkout) -> None:
    checkout.setup()
    pins = checkout.root / "pyproject.toml"
    pins.write_text(pins.read_text().replace("2.275.0", "2.276.0"))
    checkout.setup()
    assert checkout.installed == [".", "."]


def test_a_moved_checkout_gets_new_paths(checkout: Checkout) -> None:
    checkout.setup()
    moved = checkout.root.with_name("elsewhere")
    checkout.root.rename(moved)
    checkout.root = moved
    assert checkout.setup().returncode == 0
    assert checkout.installed == [".", "."]
    assert str(moved) in (moved / ".venv/bin/cdk").read_text()


def test_a_failed_run_is_taken_up_again(checkout: Checkout) -> None:
    broken = checkout.root / "pip-fails"
    broken.touch()
    failed = checkout.setup()
    assert failed.returncode == 1
    assert "pip could not install podwright" in failed.stderr
    broken.unlink()
    assert checkout.setup().returncode == 0
    assert checkout.installed == [".", "."]


@needs_programs("flock", package="util-linux")
def test_of_two_runs_at_once_one_installs(checkout: Checkout) -> None:
    with ThreadPoolExecutor(2) as both:
        runs = list(both.map(lambda _: checkout.setup(PIP_SECONDS="0.5"), range(2)))
    assert [run.returncode for run in runs] == [0, 0]
    assert checkout.installed == ["."]


def test_rooms_are_linked_under_one_name(checkout: Checkout) -> None:
    stale = checkout.packages / "podwright/former_room"
    stale.parent.mkdir()
    stale.symlink_to(checkout.root)
    checkout.setup()
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    expected = {name.removeprefix("podwright.") for name in packages} - {"podwright"} | {"cdk.json", "docs"}
    links = {link.name: link for link in (checkout.packages / "podwright").iterdir()}
    assert set(links) == expected
    assert all(link.resolve() == checkout.root / name for name, link in links.items())


def test_an_unknown_part_is_refused(checkout: Checkout) -> None:
    result = checkout.setup("tests")
    assert result.returncode == 1
    assert "unknown part 'tests'; allowed: sandbox, test" in result.stderr
    assert checkout.installed == []


def commands(folder: Path, **scripts: str) -> str:
    """A PATH with what bash needs and the given Python commands."""
    folder.mkdir()
    for name in ("bash", "cat", "chmod", "dirname", "env", "mkdir", "mv", "rm"):
        (folder / name).symlink_to(shutil.which(name) or name)
    for name, body in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return str(folder)


OLD = 'case "$1" in -V) echo Python 3.9.2;; *) exit 1;; esac'


def test_no_python_that_is_new_enough(checkout: Checkout, tmp_path: Path) -> None:
    shutil.rmtree(checkout.root / ".venv")
    result = checkout.setup(path=commands(tmp_path / "commands", python3=OLD))
    assert result.returncode == 1
    assert "no Python 3.11 or newer on the PATH; python3 is Python 3.9.2" in result.stderr
    assert "apt-get install" in result.stderr


def test_a_newer_python_beside_an_old_one_is_found(checkout: Checkout, tmp_path: Path) -> None:
    shutil.rmtree(checkout.root / ".venv")
    newer = f'case "$*" in "-m pip"*|"-c import ensurepip") exit 1;; *) exec "{BASE_PYTHON}" "$@";; esac'
    path = commands(tmp_path / "commands", **{"python3": OLD, "python3.12": newer})
    result = checkout.setup(path=path)
    assert result.returncode == 1
    assert f"{tmp_path}/commands/python3.12 has neither ensurepip nor pip" in result.stderr
    assert "apt-get install python3-venv" in result.stderr


def test_without_ensurepip_an_installed_pip_fills_the_environment(checkout: Checkout, tmp_path: Path) -> None:
    shutil.rmtree(checkout.root / ".venv")
    path = commands(
        tmp_path / "commands",
        python3=f"""case "$*" in
          "-c import ensurepip") exit 1;;
          "-m pip --version") exit 0;;
          "-m pip "*) echo "$*" >"$HOME/outer-pip"; exit 1;;
          *) exec "{BASE_PYTHON}" "$@";; esac""",
    )
    result = checkout.setup(path=path)
    assert result.returncode == 1
    assert f"--python {checkout.root}/.venv/bin/python install" in (checkout.root / "outer-pip").read_text()
    assert "could not put pip into .venv" in result.stderr


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Checkout, tmp_path: Path) -> None:
    checkout.setup()
    python = checkout.root / ".venv/bin/python"
    python.unlink()
    python.symlink_to(tmp_path / "an uninstalled python")
    result = checkout.setup(path=commands(tmp_path / "commands", python3=OLD))
    assert "no Python 3.11 or newer" in result.stderr
