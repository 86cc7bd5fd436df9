"""An environment in a network and on an EKS cluster that exist."""

import pytest

from synthesis import environment_of, synthesize

ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network:
  zones: [usw2-az1, usw2-az2]
  vpc:
    id: vpc-0123456789abcdef0
    cidr: 10.0.0.0/16
    subnets:
      usw2-az1: {nodes: subnet-0123456789abcdef0, nodes_cidr: 10.0.0.0/18%s}
      usw2-az2: {nodes: subnet-0123456789abcdef1, nodes_cidr: 10.0.64.0/18}
cluster:
  eks:
    existing:
      name: old
      security_group: sg-0123456789abcdef1
      kubectl_role: arn:aws:iam::111122223333:role/Kubectl
      dependencies_installed: %s
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""
NODES = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
OWN = "subnet-0123456789abcdef2"


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", NODES), (f", control_plane: {OWN}", [OWN])],
    ids=["beside the nodes", "subnets of their own"],
)
def test_helpers_find_a_subnet(more: str, expected: list[str]) -> None:
    actual = synthesize(environment_of(ENVIRONMENT % (more, "false")))
    functions = actual.resources("AWS::Lambda::Function").values()
    inside = [function["Properties"]["VpcConfig"] for function in functions if "VpcConfig" in function["Properties"]]
    assert [config["SubnetIds"] for config in inside] == [expected] * 3
    (project,) = actual.resources("AWS::CodeBuild::Project").values()
    assert project["Properties"]["VpcConfig"]["Subnets"] == expected


def test_a_chart_that_is_installed_is_left_alone() -> None:
    actual = synthesize(environment_of(ENVIRONMENT % ("", "true")))
    assert actual.resources("Custom::AWSCDK-EKS-HelmChart") == {}
    assert actual.resources("AWS::EKS::Cluster") == {}
    (cluster,) = actual.resources("AWS::SageMaker::Cluster").values()
    assert ":cluster/old" in str(cluster["Properties"]["Orchestrator"]["Eks"]["ClusterArn"])
