"""The base of every settings model, and the scalar types that they share."""

from ipaddress import IPv4Network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints


class Settings(BaseModel):
    """A frozen group of settings. A key that it does not know is an error, so a typo never passes as a default."""

    # Validators are built when a model is first used. Most models are only ever parts of an Environment, which builds
    # them once more, and building each by itself is half of what importing the package costs. So a default is written
    # `Storage.model_construct()`: `Storage()` would build validators to look at what has none of the file's values.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=False, defer_build=True)


def one_or_more(value: Any) -> Any:
    """A list, where a file may write its only item alone."""
    return [value] if isinstance(value, str) else value


def _range(value: str) -> str:
    try:
        IPv4Network(value)
    except ValueError:
        raise ValueError("an IPv4 range that begins where its prefix says, such as 10.16.0.0/16") from None
    return value


# The pattern is matched by a library of Rust whose time grows with the text alone, so no pattern can be slow.
def _text(pattern: str, maximum: int | None = None) -> Any:
    return StringConstraints(pattern=pattern, max_length=maximum)


# Patterns are those of the CloudFormation schemas dated 2026-10-20 unless a line says otherwise.
Account = Annotated[str, _text(r"^[0-9]{12}$")]
Region = Annotated[str, _text(r"^[a-z]{2}(-[a-z]+){1,2}-[0-9]$")]
# Zone ids, Local Zones (usw2-phx2-az1) included. Source: EC2 DescribeAvailabilityZones.
ZoneId = Annotated[str, _text(r"^[a-z]{3,5}[0-9](-[a-z]{3}[0-9])?-az[0-9]{1,2}$")]
Cidr = Annotated[str, _text(r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"), AfterValidator(_range)]
RoleArn = Annotated[str, _text(r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", 2048)]
PolicyArn = Annotated[str, _text(r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$", 2048)]
# CloudFormation's format AWS::KMS::Key.Arn: the id is a UUID, or that of a multi-region key.
KmsKeyArn = Annotated[
    str,
    _text(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/"
        r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$"
    ),
]
TrainingPlanArn = Annotated[str, _text(r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/.+$", 2048)]
VpcId = Annotated[str, _text(r"^vpc-[0-9a-f]{8,17}$")]
SubnetId = Annotated[str, _text(r"^subnet-[0-9a-f]{8,17}$")]
SecurityGroupId = Annotated[str, _text(r"^sg-[0-9a-f]{8,17}$")]
RouteTableId = Annotated[str, _text(r"^rtb-[0-9a-f]{8,17}$")]
FileSystemId = Annotated[str, _text(r"^fs-[0-9a-f]{8,17}$")]
BucketName = Annotated[str, _text(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
S3Uri = Annotated[str, _text(r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$", 900)]
QueueName = Annotated[str, _text(r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$", 64)]
MountPath = Annotated[str, _text(r"^/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", 1024)]
ClusterName = Annotated[str, _text(r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", 63)]
InstanceTypeName = Annotated[str, _text(r"^ml\.[a-z0-9-]+\.[a-z0-9]+$")]
# Start minute and day as EventBridge cron; the six fields are checked by SageMaker's own pattern in rules.
CronExpression = Annotated[str, _text(r"^cron\([^()]+\)$", 256)]
TagKey = Annotated[str, _text(r"^[\w\s.:/=+\-@]+$", 128)]
TagValue = Annotated[str, _text(r"^[\w\s.:/=+\-@]*$", 256)]
Tags = dict[TagKey, TagValue]
ZoneIds = Annotated[
    tuple[ZoneId, ...], BeforeValidator(one_or_more, json_schema_input_type=ZoneId | tuple[ZoneId, ...])
]
