"""What is in things: how much data a bucket or a file system holds, how long a plan still runs."""

from collections.abc import Callable, Iterator
from datetime import UTC
from itertools import islice
from typing import Final

from ..aws.account import Account
from ..aws.calls import get, pages
from ..aws.objects import object_versions
from ..aws.plans import plan
from .stacks import Resource

# Counting continues until here; a bucket of checkpoints may hold millions of objects.
_MOST_PAGES: Final = 20
_GIB: Final = 2**30


def bucket_content(account: Account, bucket: str) -> str:
    """How much a bucket holds, all versions together; empty where it holds nothing."""
    # One page more than is counted, to know whether there are more.
    pages = list(islice(object_versions(account, bucket), _MOST_PAGES + 1))
    more, counted = len(pages) > _MOST_PAGES, pages[:_MOST_PAGES]
    count = sum(map(len, counted))
    size = sum(version.get("Size", 0) for page in counted for version in page)
    if not count:
        return ""
    return f"{'more than ' if more else ''}{count:,} object version{'s' if count > 1 else ''}, {_size(size)}"


def _size(size: int) -> str:
    # Small amounts in MiB: 0.0 GiB would look like nothing.
    return f"{size / _GIB:,.1f} GiB" if size >= _GIB / 10 else f"{size / 2**20:,.1f} MiB"


def content(account: Account, resource: Resource) -> str:
    """What a retained resource holds, as far as one call says; empty of kinds that hold nothing."""
    result = _CONTENT.get(resource.type)
    return result(account, resource.name) if result else ""


def _file_system(account: Account, id: str) -> str:
    result = get(account, "fsx", "describe_file_systems", FileSystemIds=[id])["FileSystems"][0]
    of_it = [{"Name": "file-system-id", "Values": [id]}]
    backups = len(pages(account, "fsx", "describe_backups", "Backups", Filters=of_it))
    noun = "backups" if backups > 1 else "backup"
    retained = f", and {backups} {noun} that outlive it" if backups else ""
    return f"{result['StorageCapacity']:,} GiB{retained}"


def _log_group(account: Account, name: str) -> str:
    result = get(account, "logs", "describe_log_groups", logGroupNamePrefix=name)["logGroups"]
    # The call takes a prefix, so others come along.
    return next((_size(group.get("storedBytes", 0)) for group in result if group["logGroupName"] == name), "")


_CONTENT: Final[dict[str, Callable[[Account, str], str]]] = {
    "AWS::S3::Bucket": bucket_content,
    "AWS::FSx::FileSystem": _file_system,
    "AWS::Logs::LogGroup": _log_group,
}


def plan_end(account: Account, arn: str) -> str:
    """Until when a training plan is paid for, and what it cost."""
    resolved_plan = plan(account, arn.rpartition("/")[2])
    until = f"until {resolved_plan.end.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if resolved_plan.end else "until its end"
    paid = f", for {resolved_plan.fee} {resolved_plan.currency}".rstrip() if resolved_plan.fee else ""
    return f"paid {until}{paid}"


def log_groups(account: Account, prefixes: list[str]) -> Iterator[tuple[str, str]]:
    """Log groups that services made, each with its size. They belong to no stack."""
    for prefix in prefixes:
        for group in pages(account, "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix):
            yield group["logGroupName"], _size(group.get("storedBytes", 0))


def volumes(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    """EBS volumes that claims in an EKS cluster made, each with what it is for."""
    # The tag that the driver gives to volumes which it makes for a cluster.
    tag = [{"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{cluster}"]}]
    for volume in pages(account, "ec2", "describe_volumes", "Volumes", Filters=tag):
        tags: dict[str, str] = {item["Key"]: item["Value"] for item in volume.get("Tags", [])}
        claim = tags.get("kubernetes.io/created-for/pvc/name", "")
        space = tags.get("kubernetes.io/created-for/pvc/namespace", "")
        yield volume["VolumeId"], f"{volume['Size']:,} GiB" + (f", claim {claim} in {space}" if claim else "")
