"""Collecting what Kubernetes says: directly where its API can be reached, else from the runner inside the VPC."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.runner import run_in_vpc
from ..kubernetes.kubectl import Kubectl, Refused, way
from ..output.moving import under_way
from .bundle import SOURCES
from .pods import Pod, pods_of

if TYPE_CHECKING:
    from .collection import Collection

_KINDS: Final = {
    "kubernetes_nodes": "nodes",
    "pods": "pods",
    "kubernetes_events": "events",
    "workloads": "workloads.kueue.x-k8s.io",
}
_MOST_LOGS: Final = 30
_LOG_LINES: Final = 400
_BEGIN: Final = "podwright-begin "
# What pods are given as variables, and copies of manifests, do not leave the VPC's runner: its output is kept in a log.
_STRIP: Final = (
    "import json,sys\n"
    "d=json.load(sys.stdin)\n"
    "for i in d['items']:\n"
    "  a=i['metadata'].get('annotations',{})\n"
    "  i['metadata']['annotations']={k:v for k,v in a.items() if k.startswith('sagemaker.amazonaws.com/')}\n"
    "  s=i.get('spec',{})\n"
    "  for c in s.get('containers',[])+s.get('initContainers',[]):\n"
    "    c.pop('env',None)\n"
    "json.dump(d,sys.stdout)\n"
)


def collect_kubernetes(
    collection: "Collection", environment: Environment, account: Account, project: Path, *, runner: bool
) -> None:
    """Add nodes, pods, events and workloads, and the logs of pods that do not do what they should."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        kubectl = way(project, environment, account)
        if kubectl:
            _directly(collection, kubectl)
        elif runner and account.endpoint is None:
            _by_runner(collection, environment, account)
        else:
            _name_unseen(collection, "the Kubernetes API cannot be reached from here")
    except (CommandError, ClientError, BotoCoreError) as error:
        _name_unseen(collection, " ".join(str(error).split()))


def _name_unseen(collection: "Collection", reason: str) -> None:
    for source in (*_KINDS, "pod_logs"):
        if SOURCES[source].file not in collection.files:
            collection.unseen[source] = reason


def _directly(collection: "Collection", kubectl: Kubectl) -> None:
    """Take objects of all kinds that the cluster has, and logs of pods that matter."""
    for source, kind in _KINDS.items():
        under_way(f"reading Kubernetes: {kind}")
        try:
            items = kubectl.items(kind, "--all-namespaces")
        except Refused as refused:
            if "the server doesn't have a resource type" not in str(refused):
                collection.unseen[source] = str(refused).splitlines()[-1]
            continue
        collection.files[SOURCES[source].file] = json.dumps({"items": items}, indent=1)
    under_way("reading logs of pods")
    for pod, container, previous in _wanted_logs(collection):
        name = f"{pod.namespace}/{pod.name}/{container}{'.previous' if previous else ''}.log"
        arguments = ("logs", pod.name, f"--namespace={pod.namespace}", f"--container={container}", "--timestamps")
        more = ("--previous",) if previous else ()
        try:
            text = kubectl.run(*arguments, f"--tail={_LOG_LINES}", *more)
        except Refused as refused:
            # A container that never started has no log.
            if "Forbidden" in str(refused) or "forbidden" in str(refused):
                collection.unseen["pod_logs"] = str(refused).splitlines()[-1]
            continue
        collection.files[f"{SOURCES['pod_logs'].file}{name}"] = text + "\n"


def _by_runner(collection: "Collection", environment: Environment, account: Account) -> None:
    """Take objects by one command in the runner, packed there because its output is a log; it reads no logs of pods."""
    under_way("reading Kubernetes from inside the VPC")
    strip = base64.b64encode(_STRIP.encode()).decode()
    loop = " ".join(_KINDS.values())
    command = (
        f"for kind in {loop}; do echo {_BEGIN}$kind; kubectl get $kind --all-namespaces --output=json 2>/dev/null "
        f'| python3 -c "$(echo {strip} | base64 -d)" 2>/dev/null | gzip -9 | base64 -w 2000 || true; done'
    )
    lines: list[str] = []
    if run_in_vpc(account, environment, command, lines.append):
        raise CommandError("kubectl failed in the runner inside the VPC")
    result = dict(_packed(lines))
    for source, kind in _KINDS.items():
        if items := result.get(kind):
            collection.files[SOURCES[source].file] = json.dumps(items, indent=1)
        elif source != "workloads":
            collection.unseen[source] = f"kubectl get {kind} said nothing in the runner inside the VPC"
    collection.unseen["pod_logs"] = (
        "the runner inside the VPC does not read logs of pods; open `podwright connect` first"
    )


def _packed(lines: list[str]) -> Iterator[tuple[str, Any]]:
    """The answers in the runner's output, by kind."""
    kind, packed = "", ""
    for line in (*lines, _BEGIN):
        if line.startswith(_BEGIN):
            text = gzip.decompress(base64.b64decode(packed)).decode() if packed else ""
            if kind and text.strip():
                yield kind, json.loads(text)
            kind, packed = line.removeprefix(_BEGIN).strip(), ""
        elif kind:
            packed += line.strip()


class _Log(NamedTuple):
    pod: Pod
    container: str
    previous: bool
    """Whether the container's run before is meant."""


def _wanted_logs(collection: "Collection") -> Iterator[_Log]:
    """Those of pods that stand still, and of jobs that use EFA."""
    text = collection.files.get(SOURCES["pods"].file)
    pods = pods_of(json.loads(text)["items"], collection.now) if text else []
    jobs = {pod.subject: pod for pod in pods if pod.phase == "Running" and pod.asks_for("vpc.amazonaws.com/efa")}
    desired = [pod for pod in pods if pod.stands_still and pod.node][:_MOST_LOGS]
    for pod in (*desired, *list(jobs.values())[: _MOST_LOGS - len(desired)]):
        for status in pod.containers:
            yield _Log(pod, status["name"], previous=False)
            if status.get("restartCount"):
                yield _Log(pod, status["name"], previous=True)
