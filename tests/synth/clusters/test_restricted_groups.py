"""A cluster of restricted groups alone: what it consists of, what its nodes may use, and what stands not beside it."""

import json
import re
from typing import Any

import pytest

from podwright.planning.rules.run import findings
from synthesis import Synthesis, environment_of, synthesize

NOVA = """
name: nova
account: "111122223333"
region: us-west-2
network: {cidr: 10.16.0.0/16, zones: [usw2-az2, usw2-az3]}
restricted_instance_groups:
  nova:
    instance_type: ml.p5.48xlarge
    count: 4
    zone: usw2-az2
    lustre: {capacity_gib: 12000, throughput: 250}
    input: s3://acme-nova/input
    output: s3://acme-nova
"""
ORDINARY = "instance_groups: {cpu: {instance_type: ml.m5.4xlarge, count: 2}}\n"


@pytest.fixture(scope="module")
def nova() -> Synthesis:
    return synthesize(environment_of(NOVA))


def resources(actual: Synthesis, resource_type: str) -> list[dict[str, Any]]:
    return [
        item["Properties"]
        for template in actual.templates.values()
        for item in template["Resources"].values()
        if item["Type"] == resource_type
    ]


def test_restricted_groups_are_a_cluster_of_their_own(nova: Synthesis) -> None:
    (cluster,) = resources(nova, "AWS::SageMaker::Cluster")
    (group,) = cluster["RestrictedInstanceGroups"]
    assert "InstanceGroups" not in cluster
    assert "NodeProvisioningMode" not in cluster
    assert (group["InstanceGroupName"], group["InstanceCount"]) == ("nova", 4)
    assert group["EnvironmentConfig"]["FSxLustreConfig"] == {"SizeInGiB": 12000, "PerUnitStorageThroughput": 250}
    assert "LifeCycleConfig" not in group


def test_its_role_reads_the_input_and_writes_the_output(nova: Synthesis) -> None:
    policies = resources(nova, "AWS::IAM::Policy")
    statements = [one for policy in policies for one in policy["PolicyDocument"]["Statement"]]
    allowed = {
        (action, location)
        for one in statements
        for location in re.findall(r"acme-nova[^\"]*", json.dumps(one["Resource"]))
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert allowed == {
        ("s3:GetObject", "acme-nova/input/*"),
        ("s3:GetObject", "acme-nova/*"),
        ("s3:PutObject", "acme-nova/*"),
        ("s3:AbortMultipartUpload", "acme-nova/*"),
        ("s3:ListBucket", "acme-nova"),
    }


@pytest.mark.parametrize(
    ("more", "path"),
    [
        (ORDINARY, "restricted_instance_groups"),
        ("cluster: {provisioning: continuous}\n", "cluster.provisioning"),
        ("cluster: {autoscaling: {karpenter: {groups: [burst], limits: {vcpu: 256}}}}\n", "cluster.autoscaling"),
        ("governance: {teams: {a: {quota: {}}}}\n", "governance.engine"),
        ("observability: {metrics: basic}\n", "observability"),
        ("platform: {cert_manager: {}, training_operator: {}}\n", "platform.training_operator"),
        ("cluster: {orchestrator: slurm}\n", "cluster.orchestrator"),
    ],
)
def test_what_does_not_go_with_restricted_groups_is_found_where_it_is_said(more: str, path: str) -> None:
    assert "CLU022" not in {item.id for item in findings(environment_of(NOVA))}
    provisioning = "cluster: {provisioning: all_or_nothing}\n" if more == ORDINARY else ""
    paths = {item.path for item in findings(environment_of(NOVA + provisioning + more)) if item.id == "CLU022"}
    assert paths == {path}


@pytest.mark.parametrize(
    ("written", "matches"),
    [
        ("lustre: {capacity_gib: 12000, throughput: 250}", {"CLU023 restricted_instance_groups.nova.lustre"}),
        ("input: s3://acme-nova/input", {"CLU024 restricted_instance_groups.nova.input"}),
        ("output: s3://acme-nova", {"CLU024 restricted_instance_groups.nova.output"}),
    ],
)
def test_what_restricted_groups_need_is_asked_for(written: str, matches: set[str]) -> None:
    text = "".join(line for line in NOVA.splitlines(keepends=True) if line.strip() != written)
    results = [item for item in findings(environment_of(text)) if item.id in ("CLU022", "CLU023", "CLU024")]
    assert {f"{item.id} {item.path}" for item in results} == matches
    shared = "cluster: {restricted_environment: {lustre: {capacity_gib: 12000, throughput: 250}}}\n"
    own = "    role: arn:aws:iam::111122223333:role/Nova\n"
    assert not [item for item in findings(environment_of(text + own + shared)) if item.id in ("CLU023", "CLU024")]
