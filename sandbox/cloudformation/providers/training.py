"""AWS::SageMaker::Cluster, made through the SageMaker API of the sandbox."""

import time

from ...protocol.json_objects import JsonObject
from .api import call, retag
from .base import HandlerError, Outcome, Provider, Request

_POLL_SECONDS = 0.2


class HyperPodCluster:
    """Creates the cluster and waits as CloudFormation does: until it is InService, or Failed."""

    def create(self, request: Request) -> Outcome:
        """Create the cluster; a failed one stays behind for the rollback to delete."""
        values = {"ClusterName": request.name(63), **request.properties}
        arn = call(request, "sagemaker", "create_cluster", values)["ClusterArn"]
        return self._wait(request, arn)

    def update(self, request: Request) -> Outcome:
        """Scale, add and remove groups; a new image version also updates the software of its group."""
        before, after = _groups(request.previous), _groups(request.properties)
        removed = sorted(set(before) - set(after))
        call(
            request,
            "sagemaker",
            "update_cluster",
            {
                **request.properties,
                "ClusterName": request.physical_id,
                **({"InstanceGroupsToDelete": removed} if removed else {}),
            },
        )
        retag(request, request.physical_id)
        outcome = self._wait(request, request.physical_id)
        patched = [
            name
            for name, group in after.items()
            if name in before and group.get("ImageReleaseVersion") != before[name].get("ImageReleaseVersion")
        ]
        if patched:
            request.client("sagemaker").update_cluster_software(
                ClusterName=request.physical_id, InstanceGroups=[_software(after[name]) for name in patched]
            )
            outcome = self._wait(request, request.physical_id)
        return outcome

    def delete(self, request: Request) -> None:
        """Delete the cluster and wait until it is gone."""
        sagemaker = request.client("sagemaker")
        try:
            sagemaker.delete_cluster(ClusterName=request.physical_id)
            while True:
                sagemaker.describe_cluster(ClusterName=request.physical_id)
                time.sleep(_POLL_SECONDS)
        except sagemaker.exceptions.ResourceNotFound:
            return

    def _wait(self, request: Request, arn: str) -> Outcome:
        """Wait until a cluster is in service. Raises HandlerError with the failure message otherwise."""
        while True:
            cluster = request.client("sagemaker").describe_cluster(ClusterName=arn)
            if cluster["ClusterStatus"] in ("InService", "Failed"):
                break
            time.sleep(_POLL_SECONDS)
        if cluster["ClusterStatus"] == "Failed" or cluster.get("FailureMessage"):
            raise HandlerError.saying(cluster.get("FailureMessage", "The cluster failed"), "NotStabilized", arn)
        return Outcome(
            arn,
            {
                "ClusterArn": arn,
                "ClusterStatus": cluster["ClusterStatus"],
                "CreationTime": cluster["CreationTime"].isoformat(),
                "FailureMessage": "",
            },
        )


def _software(group: JsonObject) -> JsonObject:
    release = group.get("ImageReleaseVersion")
    named = {"InstanceGroupName": group["InstanceGroupName"]}
    return named | ({"ImageReleaseVersion": release} if release else {})


def _groups(properties: JsonObject) -> dict[str, JsonObject]:
    return {
        group["InstanceGroupName"]: group
        for key in ("InstanceGroups", "RestrictedInstanceGroups")
        for group in properties.get(key, [])
    }


TRAINING: dict[str, Provider] = {"AWS::SageMaker::Cluster": HyperPodCluster()}
