"""Commands of podwright in the test's own process, with CloudFormation's API in place of the CDK CLI.

A run of the CLI takes 1 to 2 CPU seconds, and the app that it starts takes 5. Tests of the CLI itself start it.
"""

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aws_cdk as cdk

from cloudformation_cli import CloudFormationCdk
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.artifacts.resolved import resolved_in
from podwright.operations.cdk import deployment, store, synthesis
from podwright.operations.cdk.app import environment_context
from podwright.operations.cdk.inputs import SynthesisInputs
from podwright.operations.cdk.progress import Progress
from podwright.planning.delivery.deployed_environment import deployed_environment
from podwright.stacks.feature_flags import FEATURE_FLAGS
from podwright.stacks.stage import TrainingStage


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> Any:
        """The JSON that it printed."""
        assert self.output, self.errors
        return json.loads(self.output)


def podwright(project: Path, *arguments: str, code: int | None = 0) -> Answer:
    """Run a command in the project's folder; the test fails if the exit code is not `code`, unless that is None."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        _shared_store(project),
        redirect_stdout(output),
        redirect_stderr(errors),
        patch.object(deployment, "Cdk", CloudFormationCdk),
    ):
        try:
            actual = cli.main(arguments)
        except SystemExit as end:
            # How argparse refuses a command line.
            actual = end.code if isinstance(end.code, int) else 1
    answer = Answer(actual, output.getvalue(), errors.getvalue())
    assert code in (None, answer.code), answer.output + answer.errors
    return answer


def stored_assembly(project: Path, name: str) -> Path:
    """Return the cloud assembly of an environment as `podwright` synthesizes it for the sandbox."""
    with _shared_store(project):
        loaded = Project.at(Path()).load(name)
        context = environment_context(Path(), name, loaded.environment) | {"chart": "stand-in"}
        inputs = SynthesisInputs.of(Path(), loaded, context)
        with synthesis.assembly_of(inputs, Progress(io.StringIO())) as stored:
            return stored.folder


@contextmanager
def _shared_store(project: Path) -> Iterator[None]:
    """Synthesize in this process, into the store that all tests of a run share."""
    shared = Path(os.environ["PODWRIGHT_TEST_ASSEMBLIES"], "store")
    with chdir(project), patch.object(synthesis, "synthesize", write_assembly), patch.object(store, "FOLDER", shared):
        yield


def write_assembly(project: Path, context: Mapping[str, str], folder: Path, **_: Any) -> None:
    """Write the assembly as `bin/app.py` does, in this process."""
    file = Project.at(project).load(context["environment"]).environment
    environment = deployed_environment(file, context.get("counts"), context.get("at"))
    resolved = resolved_in(project, environment, sandboxed=context.get("chart") == "stand-in")
    app = cdk.App(outdir=str(folder), context=FEATURE_FLAGS)
    TrainingStage(app, environment.name, resolved=resolved)
    app.synth()
