"""Deleting what a teardown keeps, once somebody has named it: data, and what is left of a network."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...config.errors import CommandError
from ..aws.account import Account
from ..aws.calls import change, find, get
from ..aws.objects import object_versions
from ..aws.unseen import code_of
from .network import network_blockers, remove
from .plan import Kept

Say = Callable[[str, str], object]
_GONE: Final = ("NotFound", "NoSuch")
# The longest that KMS allows, as a key that is gone takes what it encrypted with it.
_KEY_DAYS: Final = 30
# The longest that Secrets Manager allows; until then the secret can be restored.
_SECRET_DAYS: Final = 30
_POLL_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 1800.0


def empty_bucket(account: Account, bucket: str, say: Say) -> None:
    """Delete every version of every object of a bucket. Raises CommandError with what S3 refuses."""
    count = 0
    for object_version in object_versions(account, bucket):
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in object_version]
        answer = change(account, "s3", "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        if refused := answer.get("Errors"):
            first = refused[0]
            raise CommandError(
                f"{len(refused)} objects of {bucket} are not deleted: {first['Key']}: {first.get('Message')}",
                "object lock or a bucket policy keeps them; fix that, then run the same command again",
            )
        # Quiet lists errors only, so what is not listed is gone.
        count += len(objects)
        say(bucket, f"deleted {count:,} object versions")


def delete_data(account: Account, retained: Iterable[Kept], say: Say) -> list[str]:
    """Delete what is named, in an order in which nothing waits for what follows. Returns the names.

    Raises:
        CommandError: something is of a kind that is not deleted here, or does not go.
    """
    from botocore.exceptions import ClientError

    left = sorted(retained, key=lambda item: _rank(item.type))
    if unknown := [item for item in left if item.type not in _DELETE]:
        raise CommandError(
            f"{', '.join(item.name for item in unknown)} cannot be deleted here",
            "; ".join(item.command for item in unknown if item.command) or "use the console",
        )
    done, waiting = list[str](), left
    while waiting:
        postponed, error = list[Kept](), None
        for item in waiting:
            try:
                _DELETE[item.type](account, item.name, say)
            except ClientError as refusal:
                code = code_of(refusal)
                if any(word in code for word in _GONE):
                    done.append(item.name)
                    say(item.name, "was gone already")
                    continue
                # Security groups name one another in their rules; whichever is free goes first.
                if code != "DependencyViolation":
                    raise
                postponed.append(item)
                error = refusal
                continue
            done.append(item.name)
            say(item.name, "deleted" if item.type != "AWS::KMS::Key" else f"is deleted in {_KEY_DAYS} days")
        if len(postponed) == len(waiting):
            names = ", ".join(item.name for item in postponed)
            raise CommandError(f"{names} cannot be deleted: {error}", "something still uses them; delete that first")
        waiting = postponed
    return done


def _rank(kind: str) -> int:
    return list(_DELETE).index(kind) if kind in _DELETE else len(_DELETE)


def _bucket(account: Account, name: str, say: Say) -> None:
    empty_bucket(account, name, say)
    change(account, "s3", "delete_bucket", Bucket=name)


def _file_system(account: Account, id: str, say: Say) -> None:
    """Delete a file system without a last backup of OpenZFS, and wait for its end. Raises CommandError."""
    kind = get(account, "fsx", "describe_file_systems", FileSystemIds=[id])["FileSystems"][0]["FileSystemType"]
    more: dict[str, Any] = {}
    # FSx refuses to delete an OpenZFS file system that has child volumes, and takes a last backup unless told
    # otherwise.
    if kind == "OPENZFS":
        options = {"SkipFinalBackup": True, "Options": ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]}
        more = {"OpenZFSConfiguration": options}
    change(account, "fsx", "delete_file_system", FileSystemId=id, **more)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = find(account, "fsx", "describe_file_systems", ("FileSystemNotFound",), FileSystemIds=[id])
        if answer is None:
            return
        result = answer["FileSystems"][0]
        if result["Lifecycle"] == "FAILED":
            raise CommandError(
                f"{id} is not deleted: {result.get('FailureDetails', {}).get('Message')}", "see the FSx console"
            )
        if time.monotonic() > deadline:
            raise CommandError(
                f"{id} is still {result['Lifecycle']}", "run the same command again later: it resumes from here"
            )
        say(id, f"is {result['Lifecycle']}")
        time.sleep(_POLL_SECONDS)


def _database(account: Account, id: str, say: Say) -> None:
    # A database holds who used what, which somebody may have to account for.
    say(id, f"its last state is kept as the snapshot {id}-final")
    final = {"SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": f"{id}-final"}
    change(account, "rds", "delete_db_cluster", DBClusterIdentifier=id, **final)


def _vpc(account: Account, id: str, say: Say) -> None:
    # What others left comes to light only when the stacks are gone.
    remove(account, network_blockers(account, "", id), say)
    change(account, "ec2", "delete_vpc", VpcId=id)


def _call(service: str, operation: str, member: str, **more: Any) -> Callable[[Account, str, Say], None]:
    """Deletes by one call, which takes the last part of an ARN where the physical id is one."""

    def delete(account: Account, name: str, say: Say) -> None:
        id = name.rpartition("/")[2] if name.startswith("arn:") and service != "secretsmanager" else name
        change(account, service, operation, **{member: id}, **more)

    return delete


# By type, in the order in which they can go: interfaces of file systems hold groups and subnets, keys come last.
_DELETE: Final[dict[str, Callable[[Account, str, Say], None]]] = {
    "AWS::FSx::FileSystem": _file_system,
    "AWS::S3::Bucket": _bucket,
    "AWS::EC2::Volume": _call("ec2", "delete_volume", "VolumeId"),
    "AWS::RDS::DBCluster": _database,
    "AWS::RDS::DBClusterParameterGroup": _call(
        "rds", "delete_db_cluster_parameter_group", "DBClusterParameterGroupName"
    ),
    "AWS::RDS::DBSubnetGroup": _call("rds", "delete_db_subnet_group", "DBSubnetGroupName"),
    "AWS::SecretsManager::Secret": _call(
        "secretsmanager", "delete_secret", "SecretId", RecoveryWindowInDays=_SECRET_DAYS
    ),
    "AWS::APS::Workspace": _call("amp", "delete_workspace", "workspaceId"),
    "AWS::Grafana::Workspace": _call("grafana", "delete_workspace", "workspaceId"),
    "AWS::Logs::LogGroup": _call("logs", "delete_log_group", "logGroupName"),
    "AWS::EC2::SecurityGroup": _call("ec2", "delete_security_group", "GroupId"),
    "AWS::EC2::Subnet": _call("ec2", "delete_subnet", "SubnetId"),
    "AWS::EC2::VPC": _vpc,
    "AWS::KMS::Key": _call("kms", "schedule_key_deletion", "KeyId", PendingWindowInDays=_KEY_DAYS),
}
DELETABLE: Final = frozenset(_DELETE)
"""Types that `--delete-data` deletes."""
COSTING: Final = frozenset(
    {
        "AWS::FSx::FileSystem",
        "AWS::S3::Bucket",
        "AWS::EC2::Volume",
        "AWS::RDS::DBCluster",
        "AWS::SecretsManager::Secret",
        "AWS::APS::Workspace",
        "AWS::Grafana::Workspace",
        "AWS::Logs::LogGroup",
        "AWS::KMS::Key",
        "Custom::PodwrightTrainingPlan",
    }
)
"""Types that keep costing money while they are there. A network by itself costs nothing."""
