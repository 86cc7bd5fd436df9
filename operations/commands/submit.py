"""Hand a job of an environment to its cluster: check it, make its manifest, and apply that.

It goes the way that `podwright connect` makes: directly where the network leads to the API, else through a tunnel that
`podwright connect` holds open in another window, else through the runner inside the VPC. A job that rules refuse is not
handed over. With --manager a manager of MultiKueue gets it, which gives it to the first of its workers with room.
"""

import argparse
import base64
import gzip
import json
import sys
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.links import links, worker_of
from ..arguments import account_for, add_name, add_sandbox, load
from ..aws.account import Account
from ..aws.runner import run_in_vpc
from ..kubernetes.job_manifests import Manifest, job_manifests, rejection
from ..kubernetes.kubectl import NO_SCHEDULER, REAL_KUBERNETES, Refused, way
from ..output.console import write_findings, write_line

# CodeBuild takes 5,500 characters of environment variables altogether.
_RUNNER_CHARACTERS: Final = 5000
_DRY_RUN: Final = "--dry-run=server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright submit`."""
    add_name(parser)
    parser.add_argument("job", metavar="JOB", help="a key of its `jobs`")
    parser.add_argument(
        "--manager", metavar="ENV", help="hand it to this manager of MultiKueue, which finds it a worker"
    )
    parser.add_argument("--dry-run", action="store_true", help="let the cluster check it, and run nothing")
    add_sandbox(parser)


def run(args: argparse.Namespace) -> int:
    """Apply the manifests of one job."""
    loaded = load(args)
    environment = loaded.environment
    manifests = job_manifests(loaded, [args.job]).get(args.job)
    if manifests is None:
        raise CommandError(
            f"{args.job} is a recipe, and the launcher of sagemaker-hyperpod-recipes submits it",
            f"`podwright render jobs {environment.name} {args.job} --out DIR` writes the script that starts it",
            2,
        )
    target = _manager(args, environment) if args.manager else environment
    account = account_for(args, target)
    options = [_DRY_RUN] if args.dry_run else []
    # Of several objects kubectl makes those that the cluster takes, also where it refuses another.
    asks_first = len(manifests) > 1 and not args.dry_run
    kubectl = way(args.project, target, account)
    if kubectl is None:
        runs = [[_DRY_RUN, ">/dev/null"], options] if asks_first else [options]
        return _in_vpc(loaded, target, account, args.job, manifests, runs)
    if args.dry_run and not kubectl.is_real:
        hint = f"`podwright render jobs {environment.name} {args.job}` shows the job"
        raise CommandError("a store of the sandbox has no dry run", hint, 2)
    try:
        if asks_first and kubectl.is_real:
            kubectl.apply(manifests, _DRY_RUN)
        message = kubectl.apply(manifests, *options)
    except Refused as refused:
        raise _refused(loaded, args.job, str(refused)) from None
    write_line(message)
    if kubectl.is_real:
        _what_next(manifests[-1], args.dry_run)
    else:
        write_line(f"It stays as it is: {NO_SCHEDULER}. {REAL_KUBERNETES}.")
    return 0


def _manager(args: argparse.Namespace, worker: Environment) -> Environment:
    """The manager that hands work to an environment. Raises CommandError for another."""
    manager = Project.at(args.project).load(args.manager).environment
    if any(worker_of(link, {worker.name: worker}) for link in links({manager.name: manager})):
        return manager
    raise CommandError(
        f"{manager.name} hands no work to {worker.name}",
        f"`podwright project` lists who does; its file names `environment: {worker.name}` beside a worker's secret",
        2,
    )


def _in_vpc(
    loaded: LoadedEnvironment,
    target: Environment,
    account: Account,
    name: str,
    manifests: list[Manifest],
    runs: list[list[str]],
) -> int:
    """Apply manifests by the runner inside the VPC, once for each list of options, until one fails.

    Raises:
        CommandError: They are too long for it, or refused.
    """
    packed = base64.b64encode(gzip.compress(_text(manifests).encode(), mtime=0)).decode()
    if len(packed) > _RUNNER_CHARACTERS:
        raise CommandError(
            f"{name} is too long for the runner inside the VPC: {len(packed)} characters, and it takes "
            f"{_RUNNER_CHARACTERS}",
            f"run `podwright connect {target.name}` in another window, then this again",
        )
    message: list[str] = []

    def heard(line: str) -> None:
        message.append(line)
        write_line(line)

    applied = ['printf %s "$job" | ' + " ".join(["kubectl apply --filename=-", *options]) for options in runs]
    line = " && ".join([f"job=$(echo {packed} | base64 --decode | gunzip)", *applied])
    if run_in_vpc(account, target, line, heard):
        raise _refused(loaded, name, "\n".join(message))
    _what_next(manifests[-1], _DRY_RUN in runs[-1])
    return 0


def _text(manifests: list[Manifest]) -> str:
    """Manifests as kubectl reads them: a list in JSON, which keeps them in order."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


def _refused(loaded: LoadedEnvironment, name: str, message: str) -> CommandError:
    findings = rejection(loaded, name, message)
    write_findings(findings, sys.stderr)
    hint = "fix the settings above" if findings else "`podwright render jobs` prints what was handed over"
    return CommandError(f"the cluster refuses {name}: {message}", hint)


def _what_next(job: dict[str, Any], dry_run: bool) -> None:
    if dry_run:
        write_line("The cluster would take it; nothing runs.")
        return
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    write_line(f"Follow it with: kubectl --namespace {namespace} get {job['kind'].lower()}/{name}")
    if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]:
        write_line(f"While it waits:  kubectl --namespace {namespace} get workloads")
