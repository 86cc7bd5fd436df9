"""Who works with a team's jobs, and what the team's pods may do in AWS."""

from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...config.catalog.kubernetes_groups import team_group
from ...config.settings.governance.team_access import ServiceAccount
from ...config.settings.governance.teams import Engine, Team
from ...planning.quota.team_names import team_namespace
from ..common.permission import allow

_READ = ("s3:GetObject",)
_WRITE = (*_READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class TeamRoles(Construct):
    """Access entries for the IAM roles of teams.

    An EKS cluster takes one entry of a role, so a role that is in several teams gets one with all their groups. What
    the groups may do is bound in the teams' namespaces (`cdk8s_charts.team`). AWS's own access policies are not used:
    AmazonEKSEditPolicy knows no training jobs and may change network policies.

    Example:
        from podwright.config.settings.governance.teams import Team
        llm = Team.model_validate({"access": {"roles": {"arn:aws:iam::111122223333:role/Llm": "edit"}}})
        TeamRoles(stack, "Roles", cluster_name="prod", teams={"llm": llm})
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str, teams: Mapping[str, Team]) -> None:
        """Defines the entries.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_name: Name of the EKS cluster.
            teams: Teams by name.
        """
        super().__init__(scope, construct_id)
        groups: dict[str, list[str]] = {}
        for name, team in sorted(teams.items()):
            for arn, right in team.access.roles.items() if team.access else ():
                groups.setdefault(arn, []).append(team_group(name, right))

        self.entries = {
            arn: eks.CfnAccessEntry(
                self,
                # The role's account and path, so that another role leaves this one alone.
                arn.split(":", 4)[4].replace("/", "-"),
                cluster_name=cluster_name,
                principal_arn=arn,
                kubernetes_groups=names,
            )
            for arn, names in sorted(groups.items())
        }
        """The entries by role."""


class TeamIdentities(Construct):
    """IAM roles of the service accounts of teams, handed to their pods by EKS Pod Identity.

    A role made here trusts one service account of one namespace of one cluster, and may read and write the S3 prefixes
    that the account names, with the keys that it names. Pods that ran when an association changed keep what they have
    until they start anew. Source: Amazon EKS User Guide, "Create IAM role with trust policy required by EKS Pod
    Identity", 2026-11.

    Example:
        from podwright.config.settings.governance.teams import Team
        llm = Team.model_validate({"access": {"service_accounts": {"trainer": {"checkpoints": True}}}})
        TeamIdentities(stack, "Identities", engine="kueue", teams={"llm": llm}, cluster_name="prod",
                       cluster_arn="arn:aws:eks:us-west-2:111122223333:cluster/prod", checkpoints=bucket, key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        engine: Engine,
        teams: Mapping[str, Team],
        cluster_name: str,
        cluster_arn: str,
        checkpoints: s3.IBucket,
        key: kms.IKey,
        mlflow_arn: str | None = None,
    ) -> None:
        """Defines roles and associations.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            engine: Quota engine, which decides what the namespaces are called.
            teams: Teams by name.
            cluster_name: Name of the EKS cluster.
            cluster_arn: ARN of the EKS cluster.
            checkpoints: The environment's bucket for checkpoints.
            key: The environment's key, with which that bucket is encrypted.
            mlflow_arn: ARN of the MLflow app, which roles of teams with `mlflow` may call.
        """
        super().__init__(scope, construct_id)
        self._cluster_arn, self._checkpoints, self._key = cluster_arn, checkpoints, key

        self.roles: dict[str, str] = {}
        """ARNs of all roles by `TEAM/SERVICE ACCOUNT`, existing ones too."""
        for team, settings in sorted(teams.items()):
            for name, account in settings.access.service_accounts.items() if settings.access else ():
                api_access, namespace = Construct(self, f"{team}-{name}"), team_namespace(engine, team)
                role = self._role(api_access, team, namespace, name, account)
                if mlflow_arn and settings.access and settings.access.mlflow and not account.role:
                    allow(role, ["sagemaker:CallMlflowAppApi"], [mlflow_arn])
                association = eks.CfnPodIdentityAssociation(
                    api_access,
                    "Association",
                    cluster_name=cluster_name,
                    namespace=namespace,
                    service_account=name,
                    role_arn=role.role_arn,
                )
                association.node.add_dependency(role)
                self.roles[f"{team}/{name}"] = role.role_arn

    def _role(self, scope: Construct, team: str, namespace: str, name: str, account: ServiceAccount) -> iam.IRole:
        """The role of one service account: one that exists, or one that only its pods in this namespace can take."""
        if account.role:
            return iam.Role.from_role_arn(scope, "Role", account.role)
        tags = {
            "aws:RequestTag/eks-cluster-arn": self._cluster_arn,
            "aws:RequestTag/kubernetes-namespace": namespace,
            "aws:RequestTag/kubernetes-service-account": name,
        }
        pods = iam.ServicePrincipal("pods.eks.amazonaws.com", conditions={"StringEquals": tags})
        role = iam.Role(
            scope,
            "Role",
            assumed_by=cast(iam.IPrincipal, iam.SessionTagsPrincipal(cast(iam.IPrincipal, pods))),
            description=f"Pods of {namespace}/{name}",
        )
        made = cast(iam.IRole, role)
        for index, arn in enumerate(account.policies):
            role.add_managed_policy(iam.ManagedPolicy.from_managed_policy_arn(scope, f"Policy{index}", arn))
        for uri in account.read:
            self._allow_below(made, uri, writes=False)
        for uri in account.write:
            self._allow_below(made, uri, writes=True)
        keys = list(account.keys)
        if account.checkpoints:
            self._allow_below(made, f"s3://{self._checkpoints.bucket_name}/{team}", writes=True)
            keys.append(self._key.key_arn)
        if keys:
            writes = account.write or account.checkpoints
            allow(made, ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])], keys)
        return made

    def _allow_below(self, role: iam.IRole, uri: str, *, writes: bool) -> None:
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        # Without the slash at its end, the prefix of team `llm` would open that of `llm-eval` too.
        prefix = f"{prefix.rstrip('/')}/" if prefix else ""
        bucket = f"arn:{cdk.Stack.of(self).partition}:s3:::{name}"
        reason = "The environment names the prefix; jobs name the objects below it."
        allow(role, _WRITE if writes else _READ, [f"{bucket}/{prefix}*"], because=reason)
        below = {"StringLike": {"s3:prefix": [prefix, f"{prefix}*"]}} if prefix else None
        allow(role, ["s3:ListBucket"], [bucket], only_if=below)
        allow(role, ["s3:GetBucketLocation"], [bucket])
