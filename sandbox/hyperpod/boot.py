"""Failures of a booting HyperPod node: a missing lifecycle script, or a network in which EFA does not work.

Sources: awslabs/awsome-distributed-ai issue 188 (2024-03-09, the message of a failed lifecycle script) and pull request
259 (every security group of a node needs the rules to and from itself, or the EFA health check fails).
"""

from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from .cluster import Cluster, Group

LIFECYCLE_FAILED = (
    'Instance {instance} failed to provision with the following error: "Lifecycle scripts did not run successfully. '
    "Ensure the scripts exist in provided S3 path, are accessible, and run without errors. Please see CloudWatch logs "
    'for lifecycle script execution details." Note that multiple instances may be impacted.'
)
EFA_FAILED = (
    'Instance {instance} failed to provision with the following error: "EFA health checks did not run successfully." '
    "A security group of the instance lacks the rule for all traffic to itself or from itself (sandbox)"
)


def lifecycle_script_exists(s3: Any, group: Group) -> bool:
    """Return True if the bucket contains a group's lifecycle script, or the group has none."""
    config = group.specification.get("LifeCycleConfig", {})
    script = config.get("OnCreate") or config.get("OnInitComplete")
    if not script:
        return True
    bucket, _, prefix = config["SourceS3Uri"].removeprefix("s3://").partition("/")
    try:
        s3.head_object(Bucket=bucket, Key="/".join(filter(None, [prefix.strip("/"), script])))
    except ClientError:
        return False
    return True


def efa_can_work(ec2: Any, cluster: Cluster, group: Group) -> bool:
    """Return True if a security group allows all traffic to and from itself, or the type has no EFA.

    One of a node's security groups is enough, since the rules of all of them add up.
    """
    groups = cluster.vpc_of(group).get("SecurityGroupIds", [])
    if not groups or not _has_efa(ec2, group.instance_type.removeprefix("ml.")):
        return True
    described = ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]
    return any(map(_is_open_to_itself, described))


def _is_open_to_itself(group: dict[str, Any]) -> bool:
    both = (group["IpPermissions"], group["IpPermissionsEgress"])
    return all(_lets_itself_through(rules, group["GroupId"]) for rules in both)


def _lets_itself_through(rules: list[dict[str, Any]], group: str) -> bool:
    # EFA needs a rule with the group as its source or target; a rule with 0.0.0.0/0 does not allow it.
    return any(
        rule["IpProtocol"] == "-1" and pair.get("GroupId") == group
        for rule in rules
        for pair in rule["UserIdGroupPairs"]
    )


@cache
def _has_efa(ec2: Any, instance_type: str) -> bool:
    """Return True if the type supports EFA, and False if moto's EC2 data do not contain it (p6e-gb200)."""
    try:
        [instance_types] = ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
    except ClientError:
        return False
    return instance_types.get("NetworkInfo", {}).get("EfaSupported", False)
