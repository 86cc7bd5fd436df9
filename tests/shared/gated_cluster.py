"""A governed cluster of the sandbox that is as the file of gates says, and what tests do to it."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from gate_account import Direct, loaded
from governed_cluster import TOKEN, GovernedCluster, until
from podwright.cdk8s_charts.priority_classes import priority_classes
from podwright.config.catalog.instance_types import environment_types
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import nodes
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import environment_policy

Aws = Callable[[str], Any]
NAME, BUCKET = "gated", "sagemaker-gated"


def gated_cluster(aws: Aws) -> GovernedCluster:
    """Operators, quotas and priorities, and nodes that publish their verdicts."""
    made = GovernedCluster(aws, NAME)
    for addon in ("hyperpod-dependencies", "amazon-sagemaker-hyperpod-training-operator"):
        aws("eks").create_addon(clusterName=NAME, addonName=addon)
    environment = loaded().environment
    for item in priority_classes(environment.governance.priorities):
        made.kubernetes("/apis/scheduling.k8s.io/v1/priorityclasses", item)
    policy = environment_policy(environment, environment_types({}))
    config = scheduler_config(environment.governance, policy)
    aws("sagemaker").create_cluster_scheduler_config(Name="policy", ClusterArn=made.arn, SchedulerConfig=config)
    for team, settings in compute_quotas(environment.governance, policy).items():
        aws("sagemaker").create_compute_quota(Name=team, ClusterArn=made.arn, **settings)
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
        request = urllib.request.Request(f"{endpoint}/podwright/faults", json.dumps(what).encode(), method="PUT")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()

    try:
        yield put
    finally:
        put(**{name: {} for name in broken})


def patch(kubectl: Direct, path: str, body: Any) -> None:
    """Merge a change into an object of the cluster."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/merge-patch+json"}
    request = urllib.request.Request(kubectl.endpoint + path, json.dumps(body).encode(), headers, method="PATCH")
    urllib.request.urlopen(request, context=kubectl.tls).close()
