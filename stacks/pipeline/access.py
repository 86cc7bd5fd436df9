"""What a promotion needs in the account of an environment: roles, and GitHub's identity provider where it deploys."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.catalog.regions import region
from ...config.settings.environment import Environment
from ...config.settings.pipeline import Pipeline, PipelineSource
from ...constructs.delivery.promotion_roles import GITHUB, PromotionRoles, github_jobs, only_role
from ...planning.delivery.pipeline_steps import ExecutionRole
from ...planning.delivery.promotion_roles import builder_name


class PipelineAccess(cdk.Stage):
    """The stack of roles of one environment. CodePipeline deploys it before all else; for GitHub, a person does."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: Pipeline,
        source: PipelineSource,
        environment: Environment,
        provider: bool,
    ) -> None:
        """Defines the stack.

        Args:
            scope: The app.
            construct_id: Id of the stage; it prefixes the name of the stack.
            pipeline: What `pipeline:` says.
            source: Its source, which says who promotes.
            environment: The environment.
            provider: Whether this stack holds GitHub's identity provider.
        """
        boundary = environment.iam.permissions_boundary
        super().__init__(
            scope,
            construct_id,
            env=cdk.Environment(account=environment.account, region=environment.region),
            permissions_boundary=cdk.PermissionsBoundary.from_arn(boundary) if boundary else None,
        )
        stack = cdk.Stack(self, "access", description=f"Roles through which {environment.name} is promoted")
        partition = region(environment.region).partition
        trusted: dict[ExecutionRole, iam.IPrincipal]
        if source.on_github:
            # Jobs that only look have no approval before them, and so no GitHub environment in their token.
            branch, approved = f"ref:refs/heads/{source.branch}", f"environment:{environment.name}"
            subjects: dict[ExecutionRole, str] = {"read": branch, "prove": approved, "deploy": approved}
            trusted = {
                role: github_jobs(partition, environment.account, f"repo:{source.repository}:{subject}")
                for role, subject in subjects.items()
            }
        else:
            assert pipeline.account is not None
            roles: tuple[ExecutionRole, ...] = ("read", "prove")
            trusted = {
                role: only_role(partition, pipeline.account, builder_name(pipeline.name, environment.name, role))
                for role in roles
            }
        if provider:
            iam.CfnOIDCProvider(stack, "GitHub", url=f"https://{GITHUB}", client_id_list=["sts.amazonaws.com"])
        qualifier = stack.node.try_get_context("@aws-cdk/core:bootstrapQualifier") or "hnb659fds"
        PromotionRoles(
            stack,
            "Roles",
            pipeline=pipeline.name,
            environment=environment.name,
            trusted=trusted,
            qualifier=qualifier,
            path=environment.iam.role_path,
            # A job of GitHub Actions gets its credentials once, and may take six hours.
            hours=6 if source.on_github else 1,
        )
        cdk.Tags.of(self).add("podwright:environment", environment.name)
