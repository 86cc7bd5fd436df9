"""Kubernetes objects as custom resources: which piece an object is in, what comes first, how much one may hold."""

import json
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from podwright.cdk8s_charts.team import team_objects
from podwright.config.catalog.kubernetes_groups import TEAM_LABEL
from podwright.config.settings.governance.teams import Team
from podwright.constructs.eks.manifests import Manifests
from podwright.planning.kubernetes.deployed_values import DeployedValues, LustreValues

KIND = "Custom::AWSCDK-EKS-KubernetesResource"
BARRIER = "AWS::CloudFormation::WaitConditionHandle"


@pytest.fixture
def cluster(stack: cdk.Stack) -> Any:
    provider = eks.KubectlProvider.from_kubectl_provider_attributes(
        stack,
        "Kubectl",
        service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
        role=iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::111122223333:role/Kubectl"),
    )
    return eks.Cluster.from_cluster_attributes(stack, "Cluster", cluster_name="prod", kubectl_provider=provider)


def config_map(name: str, team: str = "", data: str = "x", kind: str = "ConfigMap") -> dict[str, Any]:
    labels = {"labels": {TEAM_LABEL: team}} if team else {}
    metadata = {"name": name, "namespace": team or "default", **labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"d": data}}


def templates(stack: cdk.Stack) -> dict[str, Any]:
    """The template of the stack, and those of its nested stacks by their logical ids in it."""
    children = [node for node in stack.node.find_all() if isinstance(node, cdk.NestedStack)]
    nested = {stack.get_logical_id(cast(cdk.CfnElement, node.nested_stack_resource)): node for node in children}
    actual = {name: Template.from_stack(node).to_json() for name, node in nested.items()}
    return {"": Template.from_stack(stack).to_json()} | actual


def pieces(stack: cdk.Stack) -> dict[str, list[str]]:
    """The names of the objects of each custom resource, by the nested stack that it is in and its logical id."""
    return {
        f"{nested}/{key}": [item["metadata"]["name"] for item in json.loads(resource["Properties"]["Manifest"])]
        for nested, template in templates(stack).items()
        for key, resource in template.get("Resources", {}).items()
        if resource["Type"] == KIND
    }


def test_a_team_is_one_piece_and_every_shared_object_another(stack: cdk.Stack, cluster: Any) -> None:
    objects = [config_map("b", "llm"), config_map("shared"), config_map("a", "llm"), config_map("c", "vision")]
    made = Manifests(stack, "M", cluster=cluster, objects=objects)
    assert made.pieces == ("ConfigMap.default.shared", "Team-llm", "Team-vision")
    assert sorted(pieces(stack).values()) == [["b", "a"], ["c"], ["shared"]]


def test_pieces_stay_where_they_are_when_others_come_and_go(cluster: Any, stack: cdk.Stack) -> None:
    few = [config_map("z", "llm"), config_map("shared")]
    many = [config_map("a"), config_map("first", "aaa"), config_map("shared"), config_map("z", "llm")]
    Manifests(stack, "M", cluster=cluster, objects=few)
    before = pieces(stack)
    other = cdk.Stack(cdk.App(), "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
    Manifests(other, "M", cluster=cluster, objects=many)
    assert before.items() <= pieces(other).items()


def test_teams_come_after_all_that_they_share(stack: cdk.Stack, cluster: Any) -> None:
    earlier = cdk.CfnResource(stack, "Earlier", type="AWS::SNS::Topic")
    objects = [config_map("one", "llm"), config_map("shared"), config_map("two", "vision")]
    made = Manifests(stack, "M", cluster=cluster, objects=objects, after=[earlier])
    cdk.CfnResource(stack, "Later", type="AWS::SNS::Topic").add_resource_dependency(made.applied)
    resources = templates(stack)[""]["Resources"]

    def before(logical_id: str) -> set[str]:
        direct = set(resources[logical_id].get("DependsOn", ()))
        return direct.union(*(before(item) for item in direct))

    locations = {names[0]: location for location, names in pieces(stack).items()}
    shared = locations["shared"].removeprefix("/")
    assert before(shared) == {"Earlier"} | {key for key in resources if key.startswith("MBegin")}
    for team in ("one", "two"):
        nested = locations[team].partition("/")[0]
        assert before(nested) >= {shared, "Earlier"}
        assert nested in before("Later")


def test_what_is_there_already_is_taken_over_and_only_teams_are_pruned(stack: cdk.Stack, cluster: Any) -> None:
    Manifests(stack, "M", cluster=cluster, objects=[config_map("shared"), config_map("one", "llm")])
    actual = [
        item.get("Properties", {}) for template in templates(stack).values() for item in template["Resources"].values()
    ]
    applied = [properties for properties in actual if "Manifest" in properties]
    assert len(applied) == 2
    for properties in applied:
        assert properties["Overwrite"] is True
        assert ("PruneLabel" in properties) == ('"one"' in properties["Manifest"])


def test_parents_are_there_before_their_children(stack: cdk.Stack, cluster: Any) -> None:
    objects = [config_map("parent", kind="Queue"), config_map("child", kind="Queue"), config_map("other")]
    Manifests(stack, "M", cluster=cluster, objects=objects)
    by_name = {names[0]: location.removeprefix("/") for location, names in pieces(stack).items()}
    resources = Template.from_stack(stack).to_json()["Resources"]
    assert resources[by_name["child"]]["DependsOn"] == [by_name["parent"]]
    assert "DependsOn" not in resources[by_name["other"]]


def test_no_piece_is_larger_than_cloudformation_can_send(stack: cdk.Stack, cluster: Any) -> None:
    with pytest.raises(ValueError, match=r"Team-llm takes 2\d\d,\d+ bytes"):
        Manifests(stack, "M", cluster=cluster, objects=[config_map(str(n), "llm", "x" * 10_000) for n in range(20)])


def test_an_object_that_is_there_twice_is_refused(stack: cdk.Stack, cluster: Any) -> None:
    with pytest.raises(ValueError, match=r"two objects are called ConfigMap\.llm\.one"):
        Manifests(stack, "M", cluster=cluster, objects=[config_map("one", "llm"), config_map("one", "llm")])


def test_without_objects_there_is_nothing_but_an_end(stack: cdk.Stack, cluster: Any) -> None:
    made = Manifests(stack, "M", cluster=cluster, objects=[])
    assert made.pieces == ()
    assert [item["Type"] for item in Template.from_stack(stack).to_json()["Resources"].values()] == [BARRIER]


def test_two_hundred_teams_fit_into_templates(stack: cdk.Stack, cluster: Any) -> None:
    access = {"storage": {"work": {"path": "/work"}}, "caps": {"accelerators": 64, "pods": 99}, "network": {}}
    teams = {f"team-{number:03}": Team.model_validate({"access": access}) for number in range(200)}
    files = {"lustre": LustreValues("fs-0123456789abcdef0", "fs-0123456789abcdef0.fsx.example", "abcdefgh")}
    values = DeployedValues("arn", "prod", "bucket", files, {})
    # What a queue with quotas of eight groups takes.
    queues = [config_map("queue", name, "x" * 5000) for name in teams]
    Manifests(stack, "M", cluster=cluster, objects=[*team_objects("kueue", teams, values), *queues])
    actual = templates(stack)
    assert len(actual) == 5
    assert max(len(json.dumps(template, indent=1)) for template in actual.values()) < 1_000_000
    assert max(len(template["Resources"]) for template in actual.values()) <= 500
    manifests = [item["Properties"]["Manifest"] for one in actual.values() for item in one["Resources"].values()
                 if item["Type"] == KIND]  # fmt: skip
    assert len(manifests) == 200
    assert max(len(json.dumps(manifest)) for manifest in manifests) < 200_000
