"""Handing a recipe to a cluster: by AWS's own launcher, from a checkout of sagemaker-hyperpod-recipes."""

import argparse
import os
import subprocess
from pathlib import Path
from typing import Final

from ...cdk8s_charts.jobs.recipe import LAUNCHER
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..kubernetes.in_vpc import InVpc
from ..kubernetes.kubectl import NO_SCHEDULER
from ..output.console import write_json, write_line, write_note
from ..programs.helm import tool
from .reach import command_for, kubectl_for

_CLONE: Final = (
    "git clone --recursive https://github.com/aws/sagemaker-hyperpod-recipes, install its requirements.txt into the "
    f"python3 of your PATH, and say where it is with --recipes DIR or {LAUNCHER}"
)


def submit_recipe(args: argparse.Namespace, name: str, script: str, environment: Environment) -> int:
    """Run the script of a recipe, whose launcher makes the job on the environment's cluster; say what to type next.

    Raises:
        CommandError: there is no checkout, no way for the launcher to the cluster, or the launcher fails.
    """
    folder = _checkout(args.recipes)
    kubectl = kubectl_for(args, environment)
    if isinstance(kubectl, InVpc):
        hint = f"run `podwright connect {environment.name}` in another window, then this again"
        raise CommandError("the recipes' launcher speaks to Kubernetes itself, which only the VPC leads to", hint)
    if not kubectl.is_real:
        hint = f"`podwright render jobs {environment.name} {name}` prints what would start it"
        raise CommandError(f"{NO_SCHEDULER}, and the recipes' launcher needs one", hint, 2)
    programs = dict.fromkeys(str(tool(program).parent) for program in ("helm", "kubectl"))
    variables = {
        LAUNCHER: str(folder),
        "KUBECONFIG": str(kubectl.kubeconfig),
        # Its own helm and kubectl come last.
        "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), *programs]),
    }
    # Artifacts are made, and nothing is installed.
    options = ["dry_run=true"] if args.dry_run else []
    done = subprocess.run(
        ["bash", "-s", *options], input=script, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    message = (done.stdout + done.stderr).strip()
    if done.returncode:
        last = message.splitlines()[-1] if message else "it says nothing"
        write_note(message)
        raise CommandError(f"the recipes' launcher ended with {done.returncode}: {last}", "what it said stands above")
    following = [command_for(args, "why", environment.name, name), command_for(args, "logs", environment.name, name)]
    if args.json:
        write_note(message)
        write_json({"job": name, "dry_run": args.dry_run, "next": [] if args.dry_run else following})
        return 0
    write_line(message)
    if not args.dry_run:
        write_line(f"Where it stands:  {following[0]}\nIts log:          {following[1]}")
    return 0


def _checkout(specified: Path | None) -> Path:
    """Where the recipes are. Raises CommandError where they are not."""
    folder = specified or (Path(os.environ[LAUNCHER]) if os.environ.get(LAUNCHER) else None)
    if folder is None:
        raise CommandError("AWS's launcher submits recipes, and podwright does not know where it is", _CLONE, 2)
    if not (folder / "main.py").is_file():
        raise CommandError(f"{folder} is not a checkout of sagemaker-hyperpod-recipes: it has no main.py", _CLONE, 2)
    return folder.resolve()
