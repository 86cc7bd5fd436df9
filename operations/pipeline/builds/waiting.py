"""Wait until earlier promotions end, if this one changes the pipeline itself.

CodePipeline cancels running executions of a pipeline that is updated. The command compares the deployed pipeline with
the one in cdk.out. If both are equal, it returns at once.
"""

import argparse
import json
import time
from typing import Final

from ....config.errors import CommandError
from ....config.loading.project import Project
from ....planning.delivery.pipeline_steps import ASSEMBLY
from ...arguments import as_time
from ...aws.account import Account
from ...aws.calls import pages
from ...aws.stacks import template
from ...output.console import write_line
from ..cache import pipeline_account

_POLL_SECONDS: Final = 60.0
_SECONDS: Final = 7 * 3600.0
_UNDER_WAY: Final = ("InProgress", "Stopping")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline wait`."""
    parser.add_argument("--execution", required=True, metavar="ID", help="id of the execution that waits")
    parser.add_argument(
        "--timeout", type=as_time, default=_SECONDS, metavar="TIME", help="give up after this time (default: 7h)"
    )


def run(args: argparse.Namespace) -> int:
    """Return when the pipeline may change, or does not."""
    project = Project.at(args.project)
    account, name = pipeline_account(project)
    file = args.project / ASSEMBLY / "pipeline.template.json"
    if not file.is_file():
        raise CommandError(f"{file} is not there", "`podwright pipeline synth` writes it")
    if template(account, f"{name}-pipeline") == json.loads(file.read_text(encoding="utf-8")):
        write_line("the pipeline stays as it is")
        return 0
    end = time.monotonic() + args.timeout
    while earlier := _earlier(account, name, args.execution):
        if time.monotonic() >= end:
            raise CommandError(
                f"this commit changes the pipeline, and promotion {earlier[0]} is still under way in it",
                "retry the stage Build when that one is through; a change in between would cancel it",
            )
        write_line(f"this commit changes the pipeline; waiting for {', '.join(earlier)}")
        time.sleep(_POLL_SECONDS)
    write_line("the pipeline changes now; no earlier promotion is under way")
    return 0


def _earlier(account: Account, pipeline: str, execution: str) -> list[str]:
    """Ids of the executions under way that began before `execution`; CodePipeline lists the newest first."""
    operation, key = "list_pipeline_executions", "pipelineExecutionSummaries"
    result = pages(account, "codepipeline", operation, key, pipelineName=pipeline)
    ids = [item["pipelineExecutionId"] for item in result]
    if execution not in ids:
        raise CommandError(
            f"pipeline {pipeline} has no execution {execution}", "give the id that CodePipeline shows", 2
        )
    return [item["pipelineExecutionId"] for item in result[ids.index(execution) + 1 :] if item["status"] in _UNDER_WAY]
