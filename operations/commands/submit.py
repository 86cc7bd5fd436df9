"""Hand a job of an environment to its cluster: check it, make its manifest, and apply that.

It goes the way that `podwright connect` makes: directly where the network leads to the API, else through a tunnel that
`podwright connect` holds open in another window, else through the runner inside the VPC. A job that rules refuse is not
handed over.
"""

import argparse
import base64
import gzip
import json
import sys
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ..aws.account import Account, account_of
from ..aws.runner import run_in_vpc
from ..cdk.deployment import load
from ..kubernetes.job_manifests import Manifest, job_manifests, rejection
from ..kubernetes.kubectl import Refused, way
from ..output.console import write_findings, write_line

# CodeBuild takes 5,500 characters of environment variables altogether.
_RUNNER_CHARACTERS: Final = 5000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright submit`."""
    parser.add_argument("environment", metavar="ENV", help="name in environments/, or path of a file")
    parser.add_argument("job", metavar="JOB", help="a key of its `jobs`")
    parser.add_argument("--dry-run", action="store_true", help="let the cluster check it, and run nothing")
    parser.add_argument("--sandbox", action="store_true", help="use the sandbox, whatever account the file names")


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
    account = account_of(environment, args.project, args.sandbox)
    options = ["--dry-run=server"] if args.dry_run else []
    kubectl = way(args.project, environment, account)
    if kubectl is None:
        return _in_vpc(loaded, account, args.job, manifests, ["apply", "--filename=-", *options])
    if args.dry_run and not kubectl.validates:
        raise CommandError(
            "a store of the sandbox has no dry run",
            f"`podwright render jobs {environment.name} {args.job}` shows the job",
            2,
        )
    try:
        message = kubectl.apply(manifests, *options)
    except Refused as refused:
        raise _refused(loaded, args.job, str(refused)) from None
    write_line(message)
    _what_next(manifests[-1], args.dry_run)
    return 0


def _in_vpc(
    loaded: LoadedEnvironment, account: Account, name: str, manifests: list[Manifest], command: list[str]
) -> int:
    """Apply manifests by the runner inside the VPC. Raises CommandError where they are too long for it, or refused."""
    packed = base64.b64encode(gzip.compress(_text(manifests).encode(), mtime=0)).decode()
    if len(packed) > _RUNNER_CHARACTERS:
        raise CommandError(
            f"{name} is too long for the runner inside the VPC: {len(packed)} characters, and it takes "
            f"{_RUNNER_CHARACTERS}",
            f"run `podwright connect {loaded.environment.name}` in another window, then this again",
        )
    message: list[str] = []

    def heard(line: str) -> None:
        message.append(line)
        write_line(line)

    line = f"echo {packed} | base64 --decode | gunzip | kubectl {' '.join(command)}"
    if run_in_vpc(account, loaded.environment, line, heard):
        raise _refused(loaded, name, "\n".join(message))
    _what_next(manifests[-1], "--dry-run=server" in command)
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
