"""Environments whose gates are run, and a cluster of the sandbox on which they are."""

import json
import ssl
import urllib.parse
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3

from governed_cluster import TOKEN, GovernedCluster, until
from podwright.cdk8s_charts.priority_classes import priority_classes
from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import LoadedEnvironment
from podwright.config.loading.source import parse_source
from podwright.config.settings.environment import Environment
from podwright.config.settings.gates import GateName
from podwright.config.settings.governance.task_governance import ADDON
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import nodes
from podwright.operations.aws.deployed import is_store
from podwright.operations.gates.gate import Context
from podwright.operations.gates.jobs import resource
from podwright.operations.kubernetes.kubectl import Kubectl, Refused
from podwright.planning.delivery.gate_table import gate_table
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import environment_policy
from sandbox_stacks import turn

Aws = Callable[[str], Any]
NAME, BUCKET = "gated", "sagemaker-gated"
FILE = """
name: gated
account: "123456789012"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
storage: {buckets: {lifecycle: sagemaker-gated}}
cluster: {name: gated}
instance_groups:
  h200: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az1}
governance:
  priorities: {inference: 100, training: 70, extra: 10}
  teams: {research: {quota: {h200: 2}}}
jobs:
  grows:
    kind: hyperpod_pytorch
    team: research
    group: h200
    priority: training
    image: registry/elastic:1
    command: [train.py]
    elastic: {min_replicas: 1, max_replicas: 2, step: 1, extra_priority: extra}
platform: {cert_manager: {}, training_operator: {}}
gates: {nccl: {image: "registry/nccl-tests:2"}, canary: {elastic: grows}}
"""


def loaded(text: str = FILE, **more: Any) -> LoadedEnvironment:
    """An environment as its file loads; `more` replaces sections."""
    source = parse_source(text, "gated.yaml")
    environment = Environment.model_validate({**source.data, **more})
    return LoadedEnvironment(environment, source)


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def context(
    name: GateName, account: Any, environment: LoadedEnvironment | None = None, minutes: float = 30, **provided: Any
) -> Context:
    """One run of a gate."""
    return Context(environment or loaded(), account, Path(), gate_table()[name], minutes, **provided)


_POSITIONS = {
    "nodes": "/api/v1/{}nodes",
    "pods": "/api/v1/{}pods",
    "Job.v1.batch": "/apis/batch/v1/{}jobs",
    "MPIJob.v2beta1.kubeflow.org": "/apis/kubeflow.org/v2beta1/{}mpijobs",
    "HyperPodPyTorchJob.v1.sagemaker.amazonaws.com": "/apis/sagemaker.amazonaws.com/v1/{}hyperpodpytorchjobs",
    "clusterqueues.kueue.x-k8s.io": "/apis/kueue.x-k8s.io/v1beta2/{}clusterqueues",
    "localqueues.kueue.x-k8s.io": "/apis/kueue.x-k8s.io/v1beta2/{}localqueues",
}


class Direct(Kubectl):
    """kubectl without its process: the same requests to the API."""

    def __init__(self, description: dict[str, Any]) -> None:
        object.__setattr__(self, "kubeconfig", Path())
        object.__setattr__(self, "is_real", not is_store(description))
        self.endpoint = description["endpoint"]
        authority = b64decode(description["certificateAuthority"]["data"]).decode()
        # It keeps the connection: a handshake for each request costs both sides more than the request.
        self.pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=authority))

    __setattr__ = object.__setattr__

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """One request."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        answer = self.pool.request(method, self.endpoint + path, body=data, headers=headers)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise Refused(answer.json()["message"])
        return answer.data.decode() if "text/plain" in answer.headers["Content-Type"] else answer.json()

    def items(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
        names = {"selector": "labelSelector", "field-selector": "fieldSelector"}
        query = urllib.parse.urlencode({names[key]: value for key, value in options.items() if key in names})
        return self.ask("GET", f"{_path(kind, options.get('namespace'))}?{query}")["items"]

    def apply(self, manifests: list[dict[str, Any]], *arguments: str) -> str:
        for item in manifests:
            self.ask("POST", _path(resource(item), item["metadata"]["namespace"]), item)
        return ""

    def run(self, *arguments: str, specified: str = "", repeatable: bool = True) -> str:
        if arguments[0] == "logs":
            namespace = next(item.partition("=")[2] for item in arguments if item.startswith("--namespace"))
            return self.ask("GET", f"{_path('pods', namespace)}/{arguments[1]}/log")
        assert arguments[0] == "delete", arguments
        for item in json.loads(specified)["items"]:
            # It ignores what is not there, as the gates ask it to.
            path = f"{_path(resource(item), item['metadata']['namespace'])}/{item['metadata']['name']}"
            with suppress(Refused):
                self.ask("DELETE", f"{path}?propagationPolicy=Background")
        return ""


def _path(kind: str, namespace: str | None) -> str:
    return _POSITIONS[kind].format(f"namespaces/{namespace}/" if namespace else "")


def on(account: Account, eks: dict[str, Any]) -> Callable[..., Context]:
    """Runs of gates on a cluster of the sandbox, with kubectl that starts no processes."""
    kubectl = Direct(eks)

    def make(name: GateName, environment: LoadedEnvironment | None = None, seconds: float = 20) -> Context:
        made = context(name, account, environment, seconds / 60)
        made.poll = 0.3 if kubectl.is_real else 0.05
        made.__dict__["kubectl"] = kubectl
        return made

    return make


def gated_cluster(aws: Aws) -> GovernedCluster:
    """Operators, quotas and priorities, and nodes that publish their verdicts."""
    made = GovernedCluster(aws, NAME, addon=False)
    # Kueue last: each operator that comes after it restarts it.
    for addon in ("hyperpod-dependencies", "amazon-sagemaker-hyperpod-training-operator", ADDON):
        aws("eks").create_addon(clusterName=NAME, addonName=addon)
    environment = loaded().environment
    for item in priority_classes(environment.governance.priorities):
        made.kubernetes("/apis/scheduling.k8s.io/v1/priorityclasses", item)
    policy = environment_policy(environment, environment_types({}))
    config = scheduler_config(environment.governance, policy)
    aws("sagemaker").create_cluster_scheduler_config(Name="policy", ClusterArn=made.arn, SchedulerConfig=config)
    for settings in compute_quotas(environment.governance, policy).values():
        aws("sagemaker").create_compute_quota(ClusterArn=made.arn, **settings)
    aws("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    groups = aws("sagemaker").describe_cluster(ClusterName=NAME)["InstanceGroups"]
    scripts = groups[0]["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").partition("/")
    facts = {
        "groups": {"h200": {"benchmarks": "report"}},
        "benchmarks": {"mode": "quick", "results_uri": f"s3://{BUCKET}/{NAME}/benchmarks"},
    }
    aws("s3").put_object(Bucket=scripts[0], Key=f"{scripts[2]}node.json", Body=json.dumps(facts).encode())
    until(lambda: [node.status for node in nodes(SimpleNamespace(client=aws), NAME)] == ["Running"] * 2)
    return made


@dataclass(frozen=True)
class Caller(Account):
    """An account whose calls are counted."""

    called: set[str] = field(default_factory=set, init=False)
    """IAM actions of the calls that were made."""

    def client(self, service: str) -> Any:
        made = super().client(service)
        made.meta.events.register("before-call", self._note)
        return made

    def _note(self, model: Any, **_: Any) -> None:
        self.called.add(f"{model.service_model.signing_name}:{model.name}")


@contextmanager
def breaking(endpoint: str) -> Iterator[Callable[..., None]]:
    """Breaks something of a sandbox until the end."""
    broken = set[str]()

    def put(**what: Any) -> None:
        broken.update(what)
        turn(endpoint, "faults", what)

    try:
        yield put
    finally:
        put(**{name: {} for name in broken})


def patch(kubectl: Direct, path: str, body: Any) -> None:
    """Merge a change into an object of the cluster."""
    kubectl.ask("PATCH", path, body, "application/merge-patch+json")
