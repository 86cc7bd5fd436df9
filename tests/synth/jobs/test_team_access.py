"""Access of teams in the templates: entries of people, roles of pods, isolated networks, and the order of it all."""

from typing import Any

import pytest

from synthesis import Synthesis, environment_of, synthesize

ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
storage: {lustre: {}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 4, zone: usw2-az1}
governance:
  teams:
    research:
      quota: {h100: 2}
      access:
        roles: {"arn:aws:iam::111122223333:role/Lead": edit, "arn:aws:iam::111122223333:role/Auditor": view}
        service_accounts:
          trainer: {checkpoints: true, read: ["s3://acme-datasets/research/"]}
          guest: {role: "arn:aws:iam::111122223333:role/Guest"}
        storage: {work: {path: /teams/research}}
        network: {}
    product: {quota: {h100: 1}, access: {roles: {"arn:aws:iam::111122223333:role/Lead": view}}}
"""


@pytest.fixture(scope="module")
def synthesis() -> Synthesis:
    return synthesize(environment_of(ENVIRONMENT))


def properties(actual: Synthesis, kind: str) -> list[dict[str, Any]]:
    return [item["Properties"] for name, item in actual.resources(kind).items() if name.startswith("access/")]


def test_a_role_has_one_entry_with_the_groups_of_all_its_teams(synthesis: Synthesis) -> None:
    entries = {item["PrincipalArn"].rpartition("/")[2]: item for item in properties(synthesis, "AWS::EKS::AccessEntry")}
    assert {name: item["KubernetesGroups"] for name, item in entries.items()} == {
        "Lead": ["podwright:team:product:view", "podwright:team:research:edit"],
        "Auditor": ["podwright:team:research:view"],
    }
    assert all("AccessPolicies" not in item for item in entries.values())


def test_a_made_role_trusts_one_service_account_of_one_cluster(synthesis: Synthesis) -> None:
    (role,) = properties(synthesis, "AWS::IAM::Role")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    tags = trust["Condition"]["StringEquals"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert tags["aws:RequestTag/kubernetes-namespace"] == "hyperpod-ns-research"
    assert tags["aws:RequestTag/kubernetes-service-account"] == "trainer"
    assert "EksCluster" in str(tags["aws:RequestTag/eks-cluster-arn"])


def test_a_made_role_reads_and_writes_what_it_names_and_nothing_else(synthesis: Synthesis) -> None:
    (policy,) = properties(synthesis, "AWS::IAM::Policy")
    allowed = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        for action in actions:
            allowed.setdefault(action, []).append(str(statement["Resource"]))
    assert all("acme-datasets/research/*" in text or "/research/*" in text for text in allowed["s3:GetObject"])
    assert len(allowed["s3:PutObject"]) == 1
    assert "acme-datasets" not in str(allowed["s3:PutObject"])
    assert "kms:GenerateDataKey" in allowed
    assert not [action for action in allowed if "*" in action]


def test_pods_find_their_role_by_name_of_namespace_and_account(synthesis: Synthesis) -> None:
    pods = properties(synthesis, "AWS::EKS::PodIdentityAssociation")
    associations = {item["ServiceAccount"]: (item["Namespace"], item["RoleArn"]) for item in pods}
    assert associations["guest"] == ("hyperpod-ns-research", "arn:aws:iam::111122223333:role/Guest")
    assert associations["trainer"][0] == "hyperpod-ns-research"


def test_the_network_obeys_policies_because_a_team_is_isolated(synthesis: Synthesis) -> None:
    (plugin,) = [
        item["Properties"]
        for item in synthesis.resources("AWS::EKS::Addon").values()
        if item["Properties"]["AddonName"] == "vpc-cni"
    ]
    assert plugin.get("ConfigurationValues") == '{"enableNetworkPolicy":"true"}'


def test_what_lies_in_the_services_namespaces_comes_after_the_quotas(synthesis: Synthesis) -> None:
    resources = synthesis.whole("governance")

    def before(name: str) -> set[str]:
        observed: set[str] = set()
        pending = [name]
        while pending:
            new = set(resources[pending.pop()].get("DependsOn", [])) - observed
            observed |= new
            pending += new
        return observed

    quotas = {name for name, item in resources.items() if item["Type"] == "AWS::SageMaker::ComputeQuota"}
    isolating = [name for name, item in resources.items() if "podwright-caps" in str(item.get("Properties"))]
    assert len(quotas) == len(isolating) == 2
    assert all(quotas <= before(name) for name in isolating)


def test_a_team_that_records_runs_finds_the_app_and_may_call_it() -> None:
    text = ENVIRONMENT.replace("        network: {}\n", "        mlflow: true\n") + "platform: {mlflow: {}}\n"
    actual = synthesize(environment_of(text))
    exported = [item["Value"] for item in actual.templates["platform"]["Outputs"].values()]
    (policy,) = properties(actual, "AWS::IAM::Policy")
    statements = policy["PolicyDocument"]["Statement"]
    (call,) = [item for item in statements if item["Action"] == "sagemaker:CallMlflowAppApi"]
    # The one app, by what the platform stack exports of it.
    assert [value["Fn::GetAtt"][1] for value in exported] == ["Arn"]
    assert "ExportsOutputFnGetAttMlflowApp" in call["Resource"]["Fn::ImportValue"]
    manifests = [
        str(item["Properties"]["Manifest"])
        for item in actual.resources("Custom::AWSCDK-EKS-KubernetesResource").values()
    ]
    (tracked,) = [text for text in manifests if "podwright-mlflow" in text]
    assert "MLFLOW_TRACKING_URI" in tracked
    assert "hyperpod-ns-research" in tracked
    assert "hyperpod-ns-product" not in tracked


def test_without_the_app_no_role_may_call_one(synthesis: Synthesis) -> None:
    assert "Mlflow" not in str(properties(synthesis, "AWS::IAM::Policy"))
