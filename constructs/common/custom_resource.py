"""Lambda functions behind CloudFormation custom resources of ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from .assets import folder_code, shipped_files
from .permission import allow

_PACKAGE = Path(__file__).resolve().parents[2]
_RUNTIME = Path(__file__).resolve().parent / "handler_runtime"
# Lambda runs an asynchronous invocation that failed twice more, after one and after two minutes.
# Source: AWS Lambda Developer Guide, "Asynchronous invocation", 2026-10.
_RUNS = 3
_PAUSES_SECONDS = 180
# CloudFormation waits for no custom resource longer.
_LONGEST_SECONDS = 3600


@jsii.implements(iam.IGrantable)
class HandlerFunction(Construct):
    """A Python Lambda function that carries out the requests of a custom resource of ours.

    Decided for you: Python 3.14 on arm64, JSON logs in a log group of its own that goes with the function, a role that
    may write those logs and nothing else, and our response module beside the handler. The handler's `index.py` ends
    with `handler = answering(handle)`, imported by `from ....common.handler_runtime.response import Answer, answering`.
    It has to be idempotent: Lambda runs a failed or timed-out request again.

    Example:
        from podwright.constructs.hyperpod import lifecycle_publication
        folder = Path(lifecycle_publication.__path__[0], "handler")
        function = HandlerFunction(stack, "Publish", folder=folder, description="Publishes lifecycle scripts")
        bucket.grant_read(function.role)
        function.resource(stack, "Published", resource_type="Custom::Scripts", properties={"Bucket": "b"})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        folder: Path,
        description: str,
        timeout_seconds: int = 300,
        memory_mib: int = 256,
        key: kms.IKey | None = None,
        vpc: ec2.IVpc | None = None,
        subnets: Sequence[ec2.ISubnet] = (),
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        environment: Mapping[str, str] | None = None,
        planning_files: Sequence[str] = (),
        runtime_files: Sequence[str] = ("response.py",),
    ) -> None:
        """Defines the function.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            folder: Folder below `constructs/` with the handler's `index.py`.
            description: What it does, for the console.
            timeout_seconds: Of one run.
            memory_mib: Memory in MiB, which also decides the share of a CPU.
            key: Encrypts the logs. Its policy has to let CloudWatch Logs use it.
            vpc: For a handler that talks to a private endpoint; outside any VPC when absent.
            subnets: Subnets of that VPC.
            security_groups: Its security groups there.
            environment: Environment variables.
            planning_files: Modules of `planning/` that ship with the handler, by their paths in the package; they
                import the standard library and each other.
            runtime_files: Modules of `handler_runtime/` that ship with the handler; what answers CloudFormation when
                absent.
        """
        super().__init__(scope, construct_id)
        relative = folder.resolve().relative_to(_PACKAGE)

        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        # jsii classes satisfy its interfaces at run time, but differ in parameter names, which type checkers mind.
        role = cast(iam.IRole, iam.Role(self, "Role", assumed_by=_lambda(), description=description))
        log_group.grant_write(role)
        if vpc is not None:
            allow_network_interfaces(role)
        self._timeout_seconds = timeout_seconds
        # In the asset the modules have the names that they have here, so one relative import serves both.
        at = f"podwright/{relative.as_posix()}"
        files = shipped_files(folder, at=at)
        files |= {f"podwright/constructs/common/handler_runtime/{name}": _RUNTIME / name for name in runtime_files}
        files |= {f"podwright/{name}": _PACKAGE / name for name in planning_files}
        with folder_code(files) as code:
            function = lambda_.Function(
                self,
                "Function",
                description=description,
                runtime=lambda_.Runtime.PYTHON_3_14,
                architecture=lambda_.Architecture.ARM_64,
                code=code,
                handler=f"{at}/index.handler",
                timeout=cdk.Duration.seconds(timeout_seconds),
                memory_size=memory_mib,
                role=role,
                log_group=log_group,
                logging_format=lambda_.LoggingFormat.JSON,
                environment=environment,
                vpc=vpc,
                vpc_subnets=ec2.SubnetSelection(subnets=subnets) if vpc is not None else None,
                security_groups=security_groups if vpc is not None else None,
            )

        self.function = cast(lambda_.IFunction, function)
        self.role = role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, as what takes permissions knows it."""
        return self.role.grant_principal

    def resource(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resource_type: str,
        properties: Mapping[str, Any],
        wait_seconds: int | None = None,
    ) -> cdk.CustomResource:
        """A custom resource that this function carries out.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            resource_type: `Custom::` and a name.
            properties: What the handler gets; CloudFormation turns every scalar into a string.
            wait_seconds: When CloudFormation stops waiting for an answer, at most an hour; long enough for all three
                runs of the function when absent.
        """
        runs = min(_LONGEST_SECONDS, self._timeout_seconds * _RUNS + _PAUSES_SECONDS)
        return cdk.CustomResource(
            scope,
            construct_id,
            service_token=self.function.function_arn,
            resource_type=resource_type,
            properties=properties,
            service_timeout=cdk.Duration.seconds(wait_seconds or runs),
        )


def _lambda() -> iam.IPrincipal:
    return cast(iam.IPrincipal, iam.ServicePrincipal("lambda.amazonaws.com"))


def allow_network_interfaces(role: iam.IRole) -> None:
    """Let a function place itself in a VPC. Source: AWS Lambda Developer Guide, "Giving Lambda functions access"."""
    allow(
        role,
        [
            "ec2:CreateNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:DeleteNetworkInterface",
            "ec2:AssignPrivateIpAddresses",
            "ec2:UnassignPrivateIpAddresses",
        ],
        ["*"],
        because="The Describe calls support no resource, and nobody knows the interfaces before Lambda makes them.",
    )
