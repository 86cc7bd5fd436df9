"""Task governance in the sandbox: quotas by CloudFormation and by the API, and what they become in Kubernetes."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from governed_cluster import GovernedCluster, quota, until
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
QUEUES = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module")
def governed(aws: Aws) -> GovernedCluster:
    return GovernedCluster(aws, "governed")


def policy(cluster: GovernedCluster, **classes: int) -> dict[str, Any]:
    settings = {"FairShare": "Enabled", "PriorityClasses": [{"Name": n, "Weight": w} for n, w in classes.items()]}
    properties = {"Name": "policy", "ClusterArn": cluster.arn, "SchedulerConfig": settings}
    return {"Type": "AWS::SageMaker::ClusterSchedulerConfig", "Properties": properties}


def resource(cluster: GovernedCluster, team: str, count: int = 1, **more: Any) -> dict[str, Any]:
    properties = {"Name": team, "ClusterArn": cluster.arn, **quota(team, count, **more)}
    return {"Type": "AWS::SageMaker::ComputeQuota", "Properties": properties, "DependsOn": "Policy"}


def test_quotas_come_change_and_go_with_their_stack(aws: Aws, governed: GovernedCluster, stack: StackUnderTest) -> None:
    lend = {"ResourceSharingConfig": {"Strategy": "Lend"}, "PreemptTeamTasks": "Never"}
    made = {
        "Policy": policy(governed, inference=100, training=70),
        "Llm": resource(governed, "llm"),
        "Vision": resource(governed, "vision", **lend),
    }
    outputs = {"Id": {"Value": {"Fn::GetAtt": ["Llm", "ComputeQuotaId"]}}}
    assert stack.create(made, Outputs=outputs) == "CREATE_COMPLETE", stack.log()
    identifier = stack.describe()["Outputs"][0]["OutputValue"]
    compute_quota = aws("sagemaker").describe_compute_quota(ComputeQuotaId=identifier)
    assert (compute_quota["Name"], compute_quota["Status"], compute_quota["ComputeQuotaVersion"]) == (
        "llm",
        "Created",
        1,
    )

    assert {"hyperpod-ns-llm", "hyperpod-ns-vision"} <= governed.names("namespaces", "v1")
    assert governed.names("workloadpriorityclasses") == {"inference-priority", "training-priority"}
    queue = governed.kubernetes(f"{QUEUES}/clusterqueues/hyperpod-ns-vision-clusterqueue")
    [flavor] = queue["spec"]["resourceGroups"][0]["flavors"]
    gpus = next(item for item in flavor["resources"] if item["name"] == "nvidia.com/gpu")
    assert (flavor["name"], gpus["nominalQuota"], gpus["borrowingLimit"]) == ("ml.p5en.48xlarge", "8", "0")
    assert queue["spec"]["preemption"]["withinClusterQueue"] == "Never"
    assert "podwright/simulated" in queue["metadata"]["annotations"]

    changed = {
        "Policy": policy(governed, inference=90),
        "Llm": resource(governed, "llm", 2),
        "Robots": resource(governed, "robots", 0),
    }
    assert stack.update(changed) == "UPDATE_COMPLETE", stack.log()
    assert aws("sagemaker").describe_compute_quota(ComputeQuotaId=identifier)["ComputeQuotaVersion"] == 2
    assert governed.names("clusterqueues") == {"hyperpod-ns-llm-clusterqueue", "hyperpod-ns-robots-clusterqueue"}
    assert governed.names("workloadpriorityclasses") == {"inference-priority"}
    queue = governed.kubernetes(f"{QUEUES}/namespaces/hyperpod-ns-llm/localqueues/hyperpod-ns-llm-localqueue")
    assert queue["spec"]["clusterQueue"] == "hyperpod-ns-llm-clusterqueue"

    stack.delete()
    assert aws("sagemaker").list_compute_quotas(ClusterArn=governed.arn)["ComputeQuotaSummaries"] == []
    assert governed.names("clusterqueues") == set()


def test_what_the_api_refuses(aws: Aws, governed: GovernedCluster) -> None:
    sagemaker = aws("sagemaker")
    made = sagemaker.create_compute_quota(Name="one", ClusterArn=governed.arn, **quota("one"))["ComputeQuotaId"]
    with pytest.raises(ClientError, match=r"ConflictException.*already exists"):
        sagemaker.create_compute_quota(Name="one", ClusterArn=governed.arn, **quota("two"))
    with pytest.raises(ClientError, match=r"ConflictException.*team one"):
        sagemaker.create_compute_quota(Name="other", ClusterArn=governed.arn, **quota("one"))
    until(lambda: sagemaker.describe_compute_quota(ComputeQuotaId=made)["Status"] == "Created")
    with pytest.raises(ClientError, match=r"ConflictException.*version 1, and the request is about version 2"):
        sagemaker.update_compute_quota(ComputeQuotaId=made, TargetVersion=2, **quota("one", 2))
    sagemaker.delete_compute_quota(ComputeQuotaId=made)
    until(lambda: not sagemaker.list_compute_quotas(NameContains="one")["ComputeQuotaSummaries"])
    with pytest.raises(ClientError, match="ResourceNotFound"):
        sagemaker.describe_compute_quota(ComputeQuotaId=made)


def test_quotas_need_the_add_on(aws: Aws) -> None:
    bare = GovernedCluster(aws, "without-the-addon", addon=False)
    with pytest.raises(ClientError, match="task governance add-on is not installed"):
        aws("sagemaker").create_compute_quota(Name="one", ClusterArn=bare.arn, **quota("one"))
    assert bare.kubernetes("/api/v1/namespaces/kueue-system") is None
