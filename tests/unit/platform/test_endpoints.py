"""The table of services that private subnets call."""

from pathlib import Path

import pytest

from podwright.config.loading.load import environment_from
from podwright.config.loading.project import Project
from podwright.config.loading.source import parse_source
from podwright.planning.network.endpoints import calls, features, services

TEXT = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
cluster: {}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""


def used(extra: str = "") -> frozenset[str]:
    return features(environment_from(parse_source(TEXT + extra, "test.yaml"), "test").environment)


def test_services_follow_from_the_features_in_use() -> None:
    assert "fsx" not in services(used())
    assert "fsx" in services(used("storage: {lustre: {}}"))
    assert "aps-workspaces" not in services(used())
    assert services({"observability"}) == ["aps-workspaces"]


def test_nodes_alone_need_what_aws_lists_for_private_clusters() -> None:
    """The closed network of AWS's own Terraform module, and what the VPC CNI plugin calls since."""
    expected = "ec2 ec2messages ecr.api ecr.dkr eks-auth logs monitoring s3 sagemaker.api ssm ssmmessages sts"
    assert services({"nodes"}) == expected.split()


def test_a_slurm_cluster_needs_no_endpoint_of_kubernetes() -> None:
    slurm = TEXT.replace("cluster: {}", "cluster: {orchestrator: slurm, slurm: {accounting: {}}}")
    environment = environment_from(parse_source(slurm, "test.yaml"), "test").environment
    expected = "ec2messages ecr.api ecr.dkr logs monitoring s3 sagemaker.api secretsmanager ssm ssmmessages sts"
    assert services(features(environment)) == expected.split()


def test_each_service_is_named_once() -> None:
    named = services({call.feature for call in calls()})
    assert len(named) == len(set(named))
    assert services([]) == []


def test_a_feature_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="no such feature: lustr; known are inference, kubectl, lustre"):
        services({"lustr"})


def test_every_row_says_who_calls_and_where_that_is_written() -> None:
    assert all(call.caller and call.sources for call in calls())
    assert len(calls()) == len({(call.feature, call.service) for call in calls()})


def test_features_of_environments_are_in_the_table() -> None:
    assert used("storage: {lustre: {}}") <= {call.feature for call in calls()}


def test_who_serves_endpoints_reaches_load_balancers() -> None:
    role = "arn:aws:iam::111122223333:role/Inference"
    roles = "".join(f"{name}: {role}, " for name in ("execution_role", "load_balancer_role", "autoscaler_role"))
    inference = (
        f"platform: {{cert_manager: {{}}, inference: {{{roles}s3_driver_role: {role}, tls_bucket: hyperpod-tls}}}}"
    )
    assert "elasticloadbalancing" in services(used(inference))
    assert "elasticloadbalancing" not in services(used("platform: {training_operator: {}}"))


def test_training_jobs_without_a_cluster_need_few_services() -> None:
    queue = "training_job_queues: {q: {capacity: {ml.p5.48xlarge: 1}, quota: {llm: {ml.p5.48xlarge: 1}}}}"
    actual = Project.at(Path(__file__).parents[3]).load("training-jobs-queue").environment
    assert services(features(actual)) == ["fsx", "s3", "sagemaker.api", "sts"]
    assert "kubectl" in used(queue), "a cluster beside the queue has its own"
