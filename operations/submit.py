"""Hand a job of an environment to its cluster: check it, make its manifest, and apply that.

It goes the way that `podwright connect` makes: directly where the network leads to the API, else through a tunnel that
`podwright connect` holds open in another window, else through the runner inside the VPC. A job that rules refuse is not
handed over.
"""

import argparse
import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ..config.load import LoadedEnvironment
from .account import Account, account_of
from .connect import reachable, write_kubeconfig
from .deployed import eks_cluster_name
from .deployment import load
from .helm import tool
from .job_manifests import Manifest, job_manifests, rejection
from .output import Stop, write_findings, write_line
from .runner import run_in_vpc

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
        raise Stop(
            f"{args.job} is a recipe, and the launcher of sagemaker-hyperpod-recipes submits it",
            f"`podwright render jobs {environment.name} {args.job} --out DIR` writes the script that starts it",
            2,
        )
    account = account_of(environment, args.project, args.sandbox)
    if account.endpoint and args.dry_run:
        raise Stop(
            "the sandbox has no dry run", f"`podwright render jobs {environment.name} {args.job}` shows the job", 2
        )
    command = ["apply", "--filename=-", *(["--dry-run=server"] if args.dry_run else [])]
    if account.endpoint:
        # The double refuses unknown fields itself, and publishes no OpenAPI for kubectl to do it.
        command.append("--validate=false")
    kubeconfig = _way(args.project, loaded, account)
    if kubeconfig is None:
        return _in_vpc(loaded, account, args.job, manifests, command)
    done = subprocess.run(
        [tool("kubectl"), "--kubeconfig", str(kubeconfig), *command],
        input=_text(manifests),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _refused(loaded, args.job, done.stderr.strip())
    write_line(done.stdout.strip())
    _what_next(manifests[-1], args.dry_run)
    return 0


def _way(project: Path, loaded: LoadedEnvironment, account: Account) -> Path | None:
    """The kubeconfig that leads to the API; None where only the VPC does."""
    environment = loaded.environment
    cluster = account.client("eks").describe_cluster(name=eks_cluster_name(account, environment))["cluster"]
    endpoint = urlsplit(cluster["endpoint"])
    if reachable(endpoint.hostname or "", endpoint.port or 443):
        return write_kubeconfig(project, environment, account, cluster, cluster["endpoint"])
    written = project / ".podwright" / "kubeconfig" / environment.name
    if written.is_file():
        server = urlsplit(json.loads(written.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"])
        if server.hostname == "127.0.0.1" and reachable("127.0.0.1", server.port or 443):
            return written
    return None


def _in_vpc(
    loaded: LoadedEnvironment, account: Account, name: str, manifests: list[Manifest], command: list[str]
) -> int:
    packed = base64.b64encode(gzip.compress(_text(manifests).encode(), mtime=0)).decode()
    if len(packed) > _RUNNER_CHARACTERS:
        raise Stop(
            f"{name} is too long for the runner inside the VPC: {len(packed)} characters, and it takes "
            f"{_RUNNER_CHARACTERS}",
            f"run `podwright connect {loaded.environment.name}` in another window, then this again",
        )
    said: list[str] = []

    def heard(line: str) -> None:
        said.append(line)
        write_line(line)

    line = f"echo {packed} | base64 --decode | gunzip | kubectl {' '.join(command)}"
    if run_in_vpc(account, loaded.environment, line, heard):
        raise _refused(loaded, name, "\n".join(said))
    _what_next(manifests[-1], "--dry-run=server" in command)
    return 0


def _text(manifests: list[Manifest]) -> str:
    """Manifests as kubectl reads them: a list in JSON, which keeps them in order."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


def _refused(loaded: LoadedEnvironment, name: str, said: str) -> Stop:
    found = rejection(loaded, name, said)
    write_findings(found, sys.stderr)
    hint = "mend the settings above" if found else "`podwright render jobs` prints what was handed over"
    return Stop(f"the cluster refuses {name}: {said}", hint)


def _what_next(job: dict[str, Any], dry_run: bool) -> None:
    if dry_run:
        write_line("The cluster would take it; nothing runs.")
        return
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    write_line(f"Follow it with: kubectl --namespace {namespace} get {job['kind'].lower()}/{name}")
    if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]:
        write_line(f"While it waits:  kubectl --namespace {namespace} get workloads")
