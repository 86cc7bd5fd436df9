"""A HyperPod cluster on EKS in the sandbox, on which quotas can be made."""

import base64
import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import urllib3

from podwright.config.settings.governance.task_governance import ADDON
from sandbox_network import eks_cluster, surroundings
from waiting import until

Aws = Callable[[str], Any]
_URL = "https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Credential=sandbox%2F20260101"
TOKEN = "k8s-aws-v1." + base64.urlsafe_b64encode(_URL.encode()).decode().rstrip("=")
_DEPENDENCY = ("aws-hyperpod", "deep-health-check-service-account")


class GovernedCluster:
    """The cluster; `addon` says whether task governance is on it from the beginning."""

    def __init__(self, aws: Aws, name: str, *, addon: bool = True) -> None:
        self.around = around = surroundings(aws)
        eks_cluster(aws, around, name)
        until(lambda: aws("eks").describe_cluster(name=name)["cluster"]["status"] == "ACTIVE", f"{name} is active")
        self.name, self._description = name, aws("eks").describe_cluster(name=name)["cluster"]
        authority = base64.b64decode(self._description["certificateAuthority"]["data"]).decode()
        # It keeps the connection: a handshake for each request costs both sides more than the request.
        self._pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=authority))
        namespace, account = _DEPENDENCY
        self.kubernetes("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": namespace}})
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.kubernetes(accounts, {"kind": "ServiceAccount", "metadata": {"name": account}})
        if addon:
            aws("eks").create_addon(clusterName=name, addonName=ADDON)
        self.arn = aws("sagemaker").create_cluster(
            ClusterName=name,
            VpcConfig={"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]},
            Orchestrator={"Eks": {"ClusterArn": self._description["arn"]}},
            InstanceGroups=[
                {
                    "InstanceGroupName": "h200",
                    "InstanceType": "ml.p5en.48xlarge",
                    "InstanceCount": 2,
                    "ExecutionRole": around.role,
                    "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
                }
            ],
        )["ClusterArn"]

    def kubernetes(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """What its Kubernetes API answers to a GET, or to a POST of `body`; None when there is no such object."""
        content = json.dumps({"apiVersion": "v1", **body}).encode() if body else None
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        url = self._description["endpoint"] + path
        answer = self._pool.request("POST" if body else "GET", url, body=content, headers=headers)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        assert answer.status < HTTPStatus.BAD_REQUEST, answer.data.decode()
        return answer.json()

    def names(self, kind: str, group: str = "kueue.x-k8s.io/v1beta2") -> set[str]:
        """The names of all objects of a kind."""
        actual = self.kubernetes(f"/apis/{group}/{kind}" if group != "v1" else f"/api/v1/{kind}")
        return {item["metadata"]["name"] for item in actual["items"]}


def quota(team: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """The settings of a team's quota: whole instances, and what else its configuration says."""
    resources = [{"InstanceType": "ml.p5en.48xlarge", "Count": count}]
    return {
        "ComputeQuotaConfig": {"ComputeQuotaResources": resources, **more},
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 10},
    }
