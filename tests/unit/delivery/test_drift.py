"""What is unlike its template: drift, and what services do by themselves."""

from types import SimpleNamespace
from typing import Any

import pytest

from podwright.operations.drift import resolve, rules
from podwright.operations.drift.judge import Drift, explained, unlike
from podwright.operations.drift.readers import asked
from podwright.operations.drift.resolve import Unknown
from podwright.operations.drift.rules import Rule
from podwright.operations.drift.rules import unlike as unlike_rules

CLUSTER, QUOTA = "AWS::SageMaker::Cluster", "AWS::SageMaker::ComputeQuota"
SCRIPTS = {"Fn::GetAtt": ["Lifecycle", "SourceS3Uri"]}


def group(name: str, count: int, **more: Any) -> dict[str, Any]:
    scripts = {"OnCreate": "on_create.sh", "SourceS3Uri": Unknown(SCRIPTS)}
    return {"InstanceGroupName": name, "InstanceCount": count, "LifeCycleConfig": scripts, **more}


def live_group(name: str, count: int, scripts: str = "s3://sagemaker-x/1", **more: Any) -> dict[str, Any]:
    config = {"OnCreate": "on_create.sh", "SourceS3Uri": scripts}
    kubernetes = {"Labels": {}, "Taints": []}
    return {
        "InstanceGroupName": name,
        "InstanceCount": count,
        "LifeCycleConfig": config,
        "KubernetesConfig": kubernetes,
    } | more


def found(template: dict[str, Any], live: dict[str, Any], kind: str = CLUSTER) -> list[Drift]:
    return unlike("prod-cluster", "Cluster", kind, template, live)


def shown(drifts: list[Drift]) -> list[tuple[str, Any, Any, bool]]:
    return [(drift.property, drift.template, drift.live, drift.noise) for drift in drifts]


def test_a_count_is_no_noise() -> None:
    template = {"InstanceGroups": [group("h200", 8), group("system", 2)]}
    live = {"InstanceGroups": [live_group("system", 2), live_group("h200", 12)]}
    drifts = found(template, live)
    assert shown(drifts) == [("InstanceGroups[h200].InstanceCount", 8, 12, False)]
    assert list(explained(drifts, {"h200": 8}, live)) == [
        "the next deploy that touches the cluster would set h200 12 → 8"
    ]
    # What the file says by now counts, not what was deployed.
    assert list(explained(drifts, {"h200": 10}, live)) == [
        "the next deploy that touches the cluster would set h200 12 → 10"
    ]
    assert list(explained(drifts, {"h200": 12}, live)) == []


def test_a_count_of_karpenter_is_noise() -> None:
    template = {"InstanceGroups": [group("h200", 0)], "AutoScaling": {"Mode": "Enable"}}
    live = {"InstanceGroups": [live_group("h200", 12)], "AutoScaling": {"Mode": "Enable"}}
    drifts = found(template, live)
    assert shown(drifts) == [("InstanceGroups[h200].InstanceCount", 0, 12, True)]
    assert list(explained(drifts, {"h200": 0}, live)) == ["h200: Karpenter has set 12; the file says 0"]


def test_karpenter_scales_no_restricted_group() -> None:
    template = {"RestrictedInstanceGroups": [group("nova", 2)], "AutoScaling": {"Mode": "Enable"}}
    live = {"RestrictedInstanceGroups": [live_group("nova", 3)], "AutoScaling": {"Mode": "Enable"}}
    assert shown(found(template, live)) == [("RestrictedInstanceGroups[nova].InstanceCount", 2, 3, False)]


@pytest.mark.parametrize(("patching", "noise"), [({"AutoPatchConfig": {}}, True), ({}, False)])
def test_a_release_moves_by_itself_only_where_it_is_patched(patching: dict[str, Any], noise: bool) -> None:
    template = {"InstanceGroups": [group("h200", 8, ImageReleaseVersion="1.0.0", **patching)]}
    live = {"InstanceGroups": [live_group("h200", 8, ImageReleaseVersion="1.0.3")]}
    assert shown(found(template, live)) == [("InstanceGroups[h200].ImageReleaseVersion", "1.0.0", "1.0.3", noise)]


def test_groups_that_run_different_scripts_are_found_although_no_template_says_which() -> None:
    template = {"InstanceGroups": [group("h200", 8), group("system", 2)]}
    equal = {"InstanceGroups": [live_group("h200", 8), live_group("system", 2)]}
    assert found(template, equal) == []
    other = {"InstanceGroups": [live_group("h200", 8, "s3://sagemaker-x/0"), live_group("system", 2)]}
    (drift,) = found(template, other)
    assert not drift.noise
    assert "h200" in drift.live
    assert "s3://sagemaker-x/0" in drift.live


def test_groups_labels_and_types_that_somebody_changed() -> None:
    template = {"InstanceGroups": [group("h200", 8, InstanceType="ml.p5en.48xlarge"), group("gone", 1)]}
    labelled = {"Labels": {"tier": "gold"}, "Taints": []}
    live = {
        "InstanceGroups": [
            live_group("h200", 8, InstanceType="ml.p5.48xlarge", KubernetesConfig=labelled, ThreadsPerCore=2),
            live_group("by-hand", 1),
        ]
    }
    properties = {(drift.property, drift.noise) for drift in found(template, live)}
    # The threads are the service's default: the template is silent.
    assert properties == {
        ("InstanceGroups[h200].InstanceType", False),
        ("InstanceGroups[h200].KubernetesConfig.Labels.tier", False),
        ("InstanceGroups[gone]", False),
        ("InstanceGroups[by-hand]", False),
    }


def test_amounts_that_sagemaker_fills_in_are_noise_and_amounts_that_people_change_are_not() -> None:
    def quota(*resources: dict[str, Any], **sharing: Any) -> dict[str, Any]:
        shared = {"Strategy": "LendAndBorrow"} | sharing
        return {"ComputeQuotaConfig": {"ComputeQuotaResources": list(resources), "ResourceSharingConfig": shared}}

    template = quota({"InstanceType": "ml.p5.48xlarge", "Accelerators": 16})
    filled = {"InstanceType": "ml.p5.48xlarge", "Accelerators": 16, "VCpu": 384.0, "MemoryInGiB": 4096.0}
    drifts = found(template, quota(filled, BorrowLimit=50), QUOTA)
    assert [drift.noise for drift in drifts] == [True, True, True]
    more = found(template, quota(filled | {"Accelerators": 24}, {"InstanceType": "ml.g5.8xlarge", "Count": 1}), QUOTA)
    assert sorted(drift.property.rpartition("[")[2] for drift in more if not drift.noise) == [
        "ml.g5.8xlarge]",
        "ml.p5.48xlarge].Accelerators",
    ]


def test_json_in_a_property_is_compared_by_what_it_says() -> None:
    template = asked({"ConfigurationValues": '{"b": 1, "a": 2}'})
    assert found(template, {"ConfigurationValues": {"a": 2, "b": 1}}, "AWS::EKS::Addon") == []
    assert len(found(template, {"ConfigurationValues": {"a": 3, "b": 1}}, "AWS::EKS::Addon")) == 1


def test_rules_that_somebody_opened_or_closed() -> None:
    efa = Rule("ingress", "all", "sg-1")
    asked_for = [efa, Rule("egress", "all", "sg-1"), Rule("ingress", "tcp 443", None), efa]
    existing = [efa, Rule("ingress", "tcp 443", "sg-9")]
    assert list(unlike_rules(asked_for, [*existing, Rule("egress", "all", "sg-1")])) == []
    assert list(unlike_rules(asked_for, existing)) == [("gone", Rule("egress", "all", "sg-1"))]
    elsewhere = Rule("ingress", "all", "sg-2")
    assert list(unlike_rules([efa], [efa, elsewhere])) == [("added", elsewhere)]
    assert list(unlike_rules([efa], [elsewhere])) == [("gone", efa), ("added", elsewhere)]
    # EC2 lets a group out where its template says nothing about that.
    outward = Rule("egress", "all", "0.0.0.0/0", optional=True)
    assert list(unlike_rules([outward], [])) == []
    assert list(unlike_rules([outward], [Rule("egress", "all", "0.0.0.0/0")])) == []
    opened = Rule("ingress", "tcp 22", "0.0.0.0/0")
    assert list(unlike_rules(asked_for, [*existing, Rule("egress", "all", "sg-1"), opened])) == [("added", opened)]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> resolve.Resolver:
    """Of a stack with a security group, and with a resource that has no id yet."""
    held = [SimpleNamespace(logical_id="Group", name="sg-1"), SimpleNamespace(logical_id="Coming", name="")]
    monkeypatch.setattr(resolve, "stack_resources", lambda *_: held)
    monkeypatch.setattr(resolve, "exports", lambda _: [{"Name": "prod-vpc", "Value": "vpc-1"}])
    session = SimpleNamespace(get_partition_for_region=lambda _: "aws")
    account: Any = SimpleNamespace(session=lambda: session, region="us-west-2", id="111122223333")
    return resolve.Resolver(account, {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Group"}, "sg-1"),
        ({"Fn::GetAtt": ["Group", "GroupId"]}, "sg-1"),
        ({"Fn::ImportValue": "prod-vpc"}, "vpc-1"),
        ([{"Ref": "AWS::Region"}, 8], ["us-west-2", 8]),
        ({"kept": {"Ref": "Group"}, "dropped": {"Ref": "AWS::NoValue"}}, {"kept": "sg-1"}),
        ({"Fn::Join": ["/", ["a", {"Ref": "Group"}]]}, "a/sg-1"),
    ],
)
def test_what_cloudformation_lists_is_filled_in(resolver: resolve.Resolver, value: Any, expected: Any) -> None:
    assert resolver.value(value, "prod-network") == expected


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "Coming"},
        {"Fn::GetAtt": ["Group", "VpcId"]},
        {"Fn::ImportValue": "somebody-elses"},
        {"Fn::Join": ["/", ["a", {"Ref": "Coming"}]]},
    ],
)
def test_what_only_the_deployment_knew_is_unknown(resolver: resolve.Resolver, value: Any) -> None:
    result = resolver.value(value, "prod-network")
    assert isinstance(result, Unknown)
    assert result.value == value


def test_the_rules_that_a_group_has_are_read_as_templates_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"IsEgress": False, "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIpv4": "10.0.0.0/8"},
        {"IsEgress": False, "IpProtocol": "tcp", "FromPort": 988, "ToPort": 1023, "PrefixListId": "pl-1"},
        {
            "IsEgress": True,
            "IpProtocol": "-1",
            "FromPort": -1,
            "ToPort": -1,
            "ReferencedGroupInfo": {"GroupId": "sg-1"},
        },
        {"IsEgress": False, "IpProtocol": "icmp", "CidrIpv6": "::/0"},
    ]
    answer = [{"GroupId": "sg-1", **row} for row in rows] + [{"GroupId": "sg-unasked", **rows[0]}]
    monkeypatch.setattr(rules, "pages", lambda *_, **__: answer)
    account: Any = None
    assert rules.live(account, ["sg-1", "sg-2"]) == {
        "sg-1": [
            Rule("ingress", "tcp 443", "10.0.0.0/8"),
            Rule("ingress", "tcp 988-1023", "pl-1"),
            Rule("egress", "all", "sg-1"),
            Rule("ingress", "icmp -1", "::/0"),
        ],
        "sg-2": [],
    }
