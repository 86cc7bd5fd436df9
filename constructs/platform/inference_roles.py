"""The OIDC provider of an EKS cluster, and the roles that HyperPod's inference operator takes on through it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.catalog.facts import table
from ...config.settings.platform import InferenceOperator
from ..common.permission import allow

_NAMESPACE: Final = "hyperpod-inference-system"
_AUDIENCE: Final = "sts.amazonaws.com"
_ACCESS: Final = "AmazonSageMakerHyperPodInferenceAccess"
_TAG: Final = "elbv2.k8s.aws/cluster"
_METRICS: Final = ("cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics", "cloudwatch:ListMetrics")
_SERIES: Final = ("aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")


class InferenceRoles(Construct):
    """What the inference operator and its helpers may do: each role that the settings don't name.

    A role trusts one service account, by the OIDC provider of the cluster. The issuer, which only a deployment knows,
    is part of the names of its conditions; CloudFormation fills no names in, so the trust policy is a text.
    Sources: SageMaker Developer Guide, setting up HyperPod clusters for model deployment, 2026-11; its policy of the
    load balancer controller is `load_balancer_controller.csv`. Unlike there, the driver reads named buckets alone.

    Example:
        from podwright.config.settings.platform import InferenceOperator
        from podwright.constructs.platform.inference_roles import InferenceRoles
        InferenceRoles(stack, "Roles", settings=InferenceOperator(), models=["models"], key=key,
                       issuer="https://oidc.eks.us-west-2.amazonaws.com/id/0A")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: InferenceOperator,
        issuer: str,
        models: Iterable[str],
        key: kms.IKey | None,
    ) -> None:
        """Defines provider and roles.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The operator's settings: which roles, and which provider, are there already.
            issuer: URL of the issuer of the EKS cluster's tokens.
            models: Names of the buckets that endpoints read models from.
            key: Encrypts what is in the environment's own one.
        """
        super().__init__(scope, construct_id)
        self._provider, self._host = self._trusted(settings.oidc_provider, issuer)

        self.settings = settings.model_copy(
            update={
                "execution_role": settings.execution_role or self._operator(),
                "load_balancer_role": settings.load_balancer_role or self._load_balancers(),
                "autoscaler_role": settings.autoscaler_role or self._autoscaler(),
                "s3_driver_role": settings.s3_driver_role or self._driver(list(models), key),
            }
        )
        """The settings with every role."""

    def _trusted(self, existing: str | None, issuer: str) -> tuple[str, str]:
        """ARN of the provider, and the issuer without its protocol."""
        if existing:
            return existing, existing.partition("oidc-provider/")[2]
        # IAM finds the thumbprint itself where none is given.
        provider = iam.CfnOIDCProvider(self, "Provider", url=issuer, client_id_list=[_AUDIENCE])
        return provider.attr_arn, cdk.Fn.select(1, cdk.Fn.split("://", issuer))

    def _role(self, name: str, account: str, description: str, service: str | None = None) -> iam.IRole:
        """A role of one service account, and of a service if one is named."""
        trust: list[dict[str, Any]] = [
            {
                "Effect": "Allow",
                "Principal": {"Federated": self._provider},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": {
                    "StringEquals": {
                        f"{self._host}:aud": _AUDIENCE,
                        f"{self._host}:sub": f"system:serviceaccount:{account}",
                    }
                },
            }
        ]
        if service:
            trust.append({"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"})
        provider = cast(iam.IPrincipal, iam.FederatedPrincipal(self._provider, {}, "sts:AssumeRoleWithWebIdentity"))
        role = iam.Role(self, name, assumed_by=provider, description=description)
        document = {"Version": "2012-10-17", "Statement": trust}
        resource = cast(iam.CfnRole, role.node.default_child)
        # The CDK takes a text only where it holds what a deployment fills in.
        late = cdk.Token.is_unresolved(self._host)
        resource.assume_role_policy_document = json.dumps(document) if late else document
        return cast(iam.IRole, role)

    def _operator(self) -> str:
        """ARN of the operator's own role, which it hands to SageMaker."""
        role = self._role(
            "Operator",
            f"{_NAMESPACE}:hyperpod-inference-controller-manager",
            "Inference operator",
            service="sagemaker.amazonaws.com",
        )
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(_ACCESS))
        cdk.Validations.of(role).acknowledge(
            cdk.Acknowledgment(
                id=f"AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_ACCESS}]",
                reason="AWS keeps this policy in step with the operator.",
            )
        )
        # The managed policy lets it hand over roles of another name only, which a boundary of ours would not.
        to_sagemaker = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
        allow(role, ["iam:PassRole"], [role.role_arn], only_if=to_sagemaker)
        return role.role_arn

    def _load_balancers(self) -> str:
        """ARN of the load balancer controller's role."""
        role = self._role("LoadBalancers", f"{_NAMESPACE}:aws-load-balancer-controller", "Load balancers of endpoints")
        partition = cdk.Stack.of(self).partition
        because = "It is the controller that knows what it makes; what it changes bears its tag."
        for permission in load_balancer_permissions():
            on = [text if text == "*" else f"arn:{partition}:{text}" for text in permission.resources]
            allow(role, permission.actions, on, only_if=permission.conditions, because=because)
        return role.role_arn

    def _autoscaler(self) -> str:
        """ARN of KEDA's role."""
        role = self._role("Autoscaler", f"{_NAMESPACE}:keda-operator", "Numbers by which endpoints grow")
        because = "Users name metrics and workspaces with their endpoints."
        allow(role, [*_METRICS, *_SERIES], ["*"], because=because)
        return role.role_arn

    def _driver(self, models: Sequence[str], key: kms.IKey | None) -> str:
        """ARN of the S3 driver's role."""
        role = self._role("S3Driver", "kube-system:s3-csi-driver-sa", "Reads models")
        arns = [f"arn:{cdk.Stack.of(self).partition}:s3:::{name}" for name in models]
        if arns:
            allow(role, ["s3:ListBucket"], arns)
            allow(role, ["s3:GetObject"], [f"{arn}/*" for arn in arns], because="Models have any name.")
        if key:
            region = cdk.Stack.of(self).region
            through = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
            allow(role, ["kms:Decrypt"], [key.key_arn], only_if=through)
        return role.role_arn


class Permission(NamedTuple):
    """A statement of a policy."""

    actions: list[str]
    resources: list[str]
    """Without `arn:PARTITION:`."""
    conditions: Mapping[str, Any] | None


def load_balancer_permissions() -> Iterator[Permission]:
    """Each statement of the controller's policy."""
    for row in table("load_balancer_controller"):
        tags = {
            f"aws:{kind}Tag/{_TAG}": "false" if row[column] == "present" else "true"
            for kind, column in (("Request", "request_tag"), ("Resource", "resource_tag"))
            if row[column]
        }
        key, _, values = row["equals"].partition("=")
        equals = {key: values.split(",")} if key else {}
        conditions = {name: terms for name, terms in (("StringEquals", equals), ("Null", tags)) if terms}
        yield Permission(row["actions"].split(), row["on"].split(), conditions or None)
