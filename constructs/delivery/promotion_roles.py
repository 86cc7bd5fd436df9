"""The roles through which a promotion reaches an environment's account."""

from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...planning.delivery.pipeline_steps import ExecutionRole
from ...planning.delivery.promotion_roles import ENVIRONMENT_TAG, permissions, role_arn, role_name
from ..common.permission import allow

GITHUB = "token.actions.githubusercontent.com"


class PromotionRoles(Construct):
    """A role to read, one to prove and, where no pipeline deploys, one to deploy, in the account of one environment.

    Decided for you: their names, since whoever takes them on is in another account and has to know them; permissions by
    `promotion_actions.csv` of the catalog. None of them changes resources: whoever deploys does so through the roles of
    `cdk bootstrap`.

    Example:
        trusted = {"read": iam.AccountPrincipal("111122223333")}
        PromotionRoles(stack, "Roles", pipeline="podwright", environment="dev", trusted=trusted, qualifier="hnb659fds")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: str,
        environment: str,
        trusted: Mapping[ExecutionRole, iam.IPrincipal],
        qualifier: str,
        path: str = "/",
        hours: int = 1,
    ) -> None:
        """Defines a role for each principal.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            pipeline: Name of the pipeline; names of roles begin with it.
            environment: Name of the environment.
            trusted: Who takes on the role of which place.
            qualifier: Qualifier of the account's bootstrap.
            path: Path of roles, which some organisations demand.
            hours: How long a session may be: an hour is enough for those that renew theirs.
        """
        super().__init__(scope, construct_id)

        stack = cdk.Stack.of(self)
        values = {"partition": stack.partition, "account": stack.account, "region": stack.region}
        values |= {"environment": environment, "qualifier": qualifier}
        roles: dict[ExecutionRole, iam.IRole] = {}
        for execution_role, principal in trusted.items():
            role = iam.Role(
                self,
                execution_role.capitalize(),
                role_name=role_name(pipeline, environment, execution_role),
                path=path,
                assumed_by=principal,
                description=f"Promotion of {environment}: {execution_role}",
                max_session_duration=cdk.Duration.hours(hours),
            )
            roles[execution_role] = cast(iam.IRole, role)
            for permission in permissions(execution_role):
                tag = {"StringEquals": {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}}
                allow(
                    roles[execution_role],
                    permission.actions,
                    [permission.on(**values)],
                    only_if=tag if permission.tagged else None,
                    because=permission.because,
                )
        self.roles = roles
        """The roles by what they are for."""


def only_role(partition: str, account: str, name: str) -> iam.IPrincipal:
    """One role of another account, which may not be there yet: IAM refuses to name a principal before it is made."""
    condition = {"ArnEquals": {"aws:PrincipalArn": role_arn(partition, account, "/", name)}}
    return cast(iam.IPrincipal, iam.AccountPrincipal(account).with_conditions(condition))


def github_jobs(partition: str, account: str, subject: str) -> iam.IPrincipal:
    """Jobs of GitHub Actions whose token has this subject, such as `repo:acme/clusters:environment:prod`."""
    return cast(
        iam.IPrincipal,
        iam.FederatedPrincipal(
            f"arn:{partition}:iam::{account}:oidc-provider/{GITHUB}",
            {"StringEquals": {f"{GITHUB}:aud": "sts.amazonaws.com", f"{GITHUB}:sub": subject}},
            "sts:AssumeRoleWithWebIdentity",
        ),
    )
