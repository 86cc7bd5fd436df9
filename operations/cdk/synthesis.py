"""The cloud assembly of one environment: taken from the store, or synthesized by the app into it."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ..output.console import from_here
from ..output.moving import under_way
from .app import synthesize
from .inputs import SynthesisInputs
from .progress import Progress
from .store import VALIDATION_REPORT, AssemblyStore, StoredAssembly

_VALIDATION: Final = "CDK_VALIDATION"
"""The variable by which aws-cdk-lib leaves its validator out, if it is `false`."""
_ERROR: Final = "aws:cdk:error"
_PASSING: Final = ("warning", "info")
"""Severities of violations with which templates can be deployed."""


@contextmanager
def assembly_of(
    inputs: SynthesisInputs, progress: Progress, *, validated: bool = False, log: Path | None = None
) -> Iterator[StoredAssembly]:
    """Give the assembly of `inputs`, and say how long its synthesis took, or that none was necessary.

    Args:
        inputs: What the synthesis reads.
        progress: Prints the duration of the synthesis, or that none was necessary.
        validated: CDK's validator has to accept the templates, now or in an earlier run. It takes 40 % of a synthesis.
            CDK_VALIDATION=false turns it off.
        log: File to which the app's output is added.

    Raises:
        CommandError: the app failed, or the validator refused a template; with the app's last lines.
    """
    validated = validated and os.environ.get(_VALIDATION) != "false"

    def write(folder: Path) -> None:
        under_way("synthesizing and validating" if validated else "synthesizing")
        started = time.monotonic()
        variables = None if validated else {_VALIDATION: "false"}
        problem = synthesize(inputs.project, inputs.context, folder, variables=variables, log=log)
        if problem is not None:
            hint = f"the whole output is in {from_here(log)}" if log else "`cdk synth` shows the whole output"
            raise CommandError(f"the app failed:\n{problem}", hint)
        if validated and (problems := refusals(folder)):
            raise refused(problems)
        progress.say("synthesis", f"{time.monotonic() - started:.1f} s{', validated' if validated else ''}")

    with AssemblyStore(inputs.project).open(inputs, write, validated=validated) as stored:
        if stored.reused:
            progress.say("synthesis", "reused: no input has changed")
        yield stored


def refusals(assembly: Path) -> list[str]:
    """Returns the violations that fail the validation report of an assembly, each with its constructs.

    A validator that could not run fails the report without a violation; its own error takes the place of one.
    """
    file = assembly / VALIDATION_REPORT
    reports = json.loads(file.read_text(encoding="utf-8"))["pluginReports"] if file.is_file() else []
    return [problem for report in reports if report["conclusion"] == "failure" for problem in _problems(report)]


def _problems(report: Mapping[str, Any]) -> list[str]:
    """Returns the errors in the failed report of one validator, without its warnings."""
    errors = [
        f"{construct['constructPath']}: {item['description']}"
        for item in report["violations"]
        if item["severity"] not in _PASSING
        # A violation of no construct is shown under the validator's name.
        for construct in item["violatingConstructs"] or [{"constructPath": report["pluginName"]}]
    ]
    reason = report.get("metadata", {}).get("error", "it gives no reason")
    return errors or [f"{report['pluginName']} failed: {reason}"]


def annotated_errors(assembly: Path) -> list[str]:
    """Returns the errors that constructs attached to themselves, which the CDK CLI refuses to deploy."""
    files = sorted([*assembly.glob("*.metadata.json"), *assembly.glob("assembly-*/*.metadata.json")])
    metadata = [item for file in files for item in json.loads(file.read_text(encoding="utf-8")).items()]
    return [
        f"{path.strip('/')}: {entry['data']}"
        for path, entries in metadata
        for entry in entries
        if entry["type"] == _ERROR
    ]


def refused(problems: list[str]) -> CommandError:
    """The error of an assembly that must not be deployed."""
    listed = "\n".join(f"    {problem}" for problem in problems)
    return CommandError(f"the templates cannot be deployed:\n{listed}", "correct these, then run the command again")
