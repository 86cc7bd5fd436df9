"""OIDC providers of EKS clusters and the roles that trust them, as the template of `dev` has them."""

import json
from collections.abc import Callable
from typing import Any

from sandbox_stacks import StackUnderTest
from synthesis import synthesis

HOST = "oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"


def of_the_operator() -> dict[str, Any]:
    """Provider, roles and policies of the inference operator, with what other stacks export filled in."""
    resources = synthesis("dev").templates["platform"]["Resources"]
    ours = json.dumps({name: item for name, item in resources.items() if name.startswith("InferenceRoles")})
    made = json.loads(ours, object_hook=filled)
    for item in made.values():
        item["Properties"].pop("PermissionsBoundary", None)
    return made


def filled(item: dict[str, Any]) -> Any:
    name = item.get("Fn::ImportValue", "")
    if "OpenIdConnectIssuerUrl" in name:
        return f"https://{HOST}"
    return "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef" if name else item


def test_trust_names_the_issuer_that_only_a_deployment_knows(stack: StackUnderTest, aws: Callable[[str], Any]) -> None:
    status = stack.create(of_the_operator())
    assert status == "CREATE_COMPLETE", stack.log()
    iam = aws("iam")
    arn = f"arn:aws:iam::123456789012:oidc-provider/{HOST}"
    assert iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)["ClientIDList"] == ["sts.amazonaws.com"]
    trusted = set()
    for name in of_the_operator():
        if name.startswith("InferenceRoles") and of_the_operator()[name]["Type"] == "AWS::IAM::Role":
            role = iam.get_role(RoleName=stack.physical_id(name))["Role"]
            statement = role["AssumeRolePolicyDocument"]["Statement"][0]
            assert statement["Principal"] == {"Federated": arn}
            trusted.add(statement["Condition"]["StringEquals"].get(f"{HOST}:sub"))
    assert trusted == {
        "system:serviceaccount:hyperpod-inference-system:aws-load-balancer-controller",
        "system:serviceaccount:hyperpod-inference-system:hyperpod-inference-controller-manager",
        "system:serviceaccount:hyperpod-inference-system:keda-operator",
        "system:serviceaccount:kube-system:s3-csi-driver-sa",
    }
    assert stack.delete() == "DELETE_COMPLETE"
    assert arn not in str(iam.list_open_id_connect_providers()["OpenIDConnectProviderList"])


def test_an_account_has_one_provider_for_each_issuer(
    stack: StackUnderTest, other_stack: StackUnderTest, aws: Callable[[str], Any]
) -> None:
    provider = {"Url": f"https://{HOST}", "ClientIdList": ["sts.amazonaws.com"]}
    resources = {"Provider": {"Type": "AWS::IAM::OIDCProvider", "Properties": provider}}
    assert stack.create(resources) == "CREATE_COMPLETE"
    assert other_stack.create(resources) == "ROLLBACK_COMPLETE"
    assert "CreateOpenIDConnectProvider, Status Code: 409" in other_stack.reasons("Provider")
    more = {"Provider": {**resources["Provider"], "Properties": {**provider, "ClientIdList": ["other"]}}}
    assert stack.update(more) == "UPDATE_COMPLETE", stack.log()
    shown = aws("iam").get_open_id_connect_provider(OpenIDConnectProviderArn=stack.physical_id("Provider"))
    assert shown["ClientIDList"] == ["other"]
    assert stack.delete() == "DELETE_COMPLETE"
