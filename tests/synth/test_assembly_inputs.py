"""What a synthesis reads is what names its assembly, and a stored assembly is the one that would be made again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.cdk import inputs as inputs_module
from podwright.operations.cdk.app import environment_context, synthesize
from podwright.operations.cdk.inputs import SynthesisInputs
from podwright.operations.cdk.progress import Progress
from podwright.operations.cdk.synthesis import assembly_of
from podwright.operations.programs.node import cdk_command

BASE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
cluster: {zones: [usw2-az1, usw2-az2]}
"""
FILE = """
extends: base.yaml
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
# Records every file that Python opens, and then becomes the app.
RECORDED = """
import os, runpy, sys

opened = set()

def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        # Names relative to an open folder are those of copies that the app makes and removes.
        if os.path.isfile(arguments[0]):
            opened.add(os.path.realpath(arguments[0]))

sys.addaudithook(hook)
try:
    runpy.run_module("podwright.bin.app", run_name="__main__")
finally:
    with open(os.path.join(os.path.dirname(__file__), "opened"), "w") as file:
        file.write("\\n".join(sorted(opened)))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as `podwright init` begins one, with an environment that extends another file."""
    root = tmp_path / "project"
    cli.main(["init", str(root)])
    (root / "environments/base.yaml").write_text(BASE)
    (root / "environments/dev.yaml").write_text(FILE)
    (root / "podwright.yaml").write_text("environments: [dev]\n")
    return root


def inputs_of(project: Path) -> SynthesisInputs:
    loaded = Project.at(project).load("dev")
    return SynthesisInputs.of(
        project, loaded, environment_context(project, "dev", loaded.environment) | {"chart": "stand-in"}
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of an assembly."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """The program of an app that also lists the files it opens, in `opened` next to the program."""
    program = tmp_path / "recorder.py"
    program.write_text(RECORDED)
    return program


def test_a_stored_assembly_is_what_the_cdk_cli_would_have_the_app_write(
    project: Path, tmp_path: Path, recorder: Path
) -> None:
    with assembly_of(inputs_of(project), Progress()) as first:
        assert not first.reused
    with assembly_of(inputs_of(project), Progress()) as second:
        assert second.reused
        stored = contents(second.folder)
    assert stored == contents(written_by_the_cli(project, tmp_path / "out", "--app", f"{sys.executable} -P {recorder}"))
    assert "assembly-dev/manifest.json" in stored
    files = {Path(line) for line in recorder.with_name("opened").read_text().splitlines()}
    check_that_the_inputs_name_them(files, project, tmp_path / "out")


def check_that_the_inputs_name_them(files: set[Path], project: Path, outdir: Path) -> None:
    """Fail if the app opened a file of the project or of podwright that is no input of its assembly."""
    known = {file.resolve() for file in inputs_of(project).files.values()}
    of_project = {file for file in files if file.is_relative_to(project.resolve())}
    assert known <= of_project
    assert of_project - known == {project / "podwright.yaml"}
    package = inputs_module._PACKAGE
    folders = [package / name for name in inputs_module._FOLDERS] + [package / "cdk.json"]
    of_package = {file for file in files if file.is_relative_to(package) and ".venv" not in file.parts}
    assert not [file for file in of_package if not any(file.is_relative_to(folder) for folder in folders)]
    # The rest belongs to Python, Node and installed packages, and to processes themselves.
    installed = [Path(folder).resolve() for folder in {*sys.path, sys.prefix, sys.base_prefix} if folder]
    others = files - of_project - of_package
    allowed = [*installed, Path("/dev"), Path("/proc"), Path("/etc"), Path("/usr"), outdir]
    strange = [file for file in others if not any(file.is_relative_to(folder) for folder in allowed)]
    # jsii unpacks its own program into a temporary folder.
    assert not [file for file in strange if "jsii" not in str(file) and not file.name.endswith((".js", ".tgz"))]


def test_the_app_gets_the_context_that_the_cdk_cli_derives_from_settings(project: Path, tmp_path: Path) -> None:
    """`cdk synth` adds to the context what it derives from cdk.json; `app_context` derives the same."""
    settings = json.loads((project / "cdk.json").read_text())
    other = {"versionReporting": True, "assetMetadata": True, "pathMetadata": False}
    (project / "cdk.json").write_text(json.dumps(settings | other))
    assert synthesize(project, inputs_of(project).context, tmp_path / "ours") is None
    assert contents(tmp_path / "ours") == contents(written_by_the_cli(project, tmp_path / "theirs"))


def written_by_the_cli(project: Path, folder: Path, *options: str) -> Path:
    """The assembly of `cdk synth`."""
    context = inputs_of(project).context
    words = [word for key, value in context.items() for word in ("--context", f"{key}={value}")]
    command = cdk_command("synth", "--quiet", "--no-notices", "--output", str(folder), *options, *words)
    variables = os.environ | {"PODWRIGHT_PYTHON": sys.executable}
    subprocess.run(command, cwd=project, env=variables, check=True, capture_output=True)
    return folder
