"""Checks of what holds data: buckets, file systems and the keys that encrypt them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...config.catalog.names import lifecycle_bucket_name
from ...config.findings import Path
from ...config.settings.environment import Environment
from ...planning.rules.capacity.zones import lustre_path, sections
from ...planning.rules.framework.rule import Problem
from .check import Answers, Ask, Note, Skip, check
from .shared import own_groups, partition, stack

_ABSENT: Final = {"404", "NoSuchBucket", "NoSuchKey"}
_KEY_USE: Final = {
    "KeyState": ("Enabled", "enable it, or cancel its deletion"),
    "KeyUsage": ("ENCRYPT_DECRYPT", "name a symmetric encryption key"),
    "KeySpec": ("SYMMETRIC_DEFAULT", "name a symmetric encryption key"),
    "KeyManager": ("CUSTOMER", "name a key of yours: the policies of AWS's own keys cannot be changed"),
}
# What HyperPod, FSx and EKS do with a key through grants of the role that calls them.
_GRANTS: Final = ("kms:CreateGrant", "kms:DescribeKey")


@check("PRE050")
def buckets(ask: Ask) -> Answers:
    """Existing buckets: that they are there, within reach, and in the region where they have to be."""
    for path, bucket, same_region in named_buckets(ask.environment):
        result = ask.aws.find("s3", "head_bucket", _ABSENT, Bucket=bucket)
        if result is None:
            yield Problem(path, f"there is no bucket {bucket}", "create it, or correct its name")
            continue
        region = result.get("BucketRegion")
        if same_region and region and region != ask.environment.region:
            yield Problem(
                path,
                f"bucket {bucket} is in {region}, and {same_region}",
                f"use a bucket in {ask.environment.region}, filled by S3 replication if need be",
            )
        else:
            yield Note(bucket)


@check("PRE051")
def file_systems(ask: Ask) -> Answers:
    """Existing file systems against what the file says of them."""
    yield from _home(ask)
    for name, lustre in ask.environment.storage.lustres.items():
        if lustre.existing is None:
            continue
        path, id = (*lustre_path(name), "existing"), lustre.existing.id
        result = _file_system(ask, id)
        if result is None:
            yield _absent(ask, path, id)
            continue
        facts: dict[str, Any] = result.get("LustreConfiguration", {})
        named = _Fact("mount_name", lustre.existing.mount_name, facts.get("MountName"))
        yield from _otherwise(path, id, (*_facts(ask, result, "LUSTRE"), named))
        if lustre.efa and not facts.get("EfaEnabled"):
            yield Problem(
                (*lustre_path(name), "efa"),
                f"efa is true, and {id} was made without EFA, which cannot be changed",
                "write efa: false, or move the data to a file system with EFA",
            )
        yield from _zone(ask, lustre_path(name), lustre.zone, id, result.get("SubnetIds", []))
        yield Note(id)


def _home(ask: Ask) -> Answers:
    """An existing file system of OpenZFS against what the file says of it."""
    home = ask.environment.storage.home
    if home is None or home.openzfs.existing is None:
        return
    path, id = ("storage", "home", "openzfs", "existing"), home.openzfs.existing.id
    result = _file_system(ask, id)
    if result is None:
        yield _absent(ask, path, id)
        return
    yield from _otherwise(path, id, _facts(ask, result, "OPENZFS"))
    # Of two servers the preferred one serves.
    preferred = result.get("OpenZFSConfiguration", {}).get("PreferredSubnetId")
    yield from _zone(ask, path[:-1], home.openzfs.zone, id, [preferred] if preferred else result.get("SubnetIds", []))
    yield Note(id)


def _file_system(ask: Ask, id: str) -> Mapping[str, Any] | None:
    answer = ask.aws.find("fsx", "describe_file_systems", {"FileSystemNotFound"}, FileSystemIds=[id])
    return next(iter(answer["FileSystems"]), None) if answer else None


def _absent(ask: Ask, path: Path, id: str) -> Problem:
    return Problem((*path, "id"), f"there is no file system {id} in {ask.environment.region}", "correct its id")


class _Fact(NamedTuple):
    """What the file has of a file system in a field, and what it is."""

    field: str
    written: Any
    actual: Any


def _facts(ask: Ask, result: Mapping[str, Any], kind: str) -> Iterator[_Fact]:
    """What any file system has that can be mounted."""
    vpc = ask.environment.network.vpc
    yield _Fact("id", kind, result["FileSystemType"])
    yield _Fact("id", "AVAILABLE", result["Lifecycle"])
    yield _Fact("id", vpc.id if vpc else result.get("VpcId"), result.get("VpcId"))


def _otherwise(path: Path, id: str, facts: Iterable[_Fact]) -> Answers:
    for field, written, actual in facts:
        if written != actual:
            yield Problem(
                (*path, field), f"{id} has {actual} where {written} is expected", "correct the file, or name another"
            )


@check("PRE052")
def keys(ask: Ask) -> Answers:
    """Existing keys: that they are there, enabled, and of the kind that encrypts data at rest."""
    for path, arn in named_keys(ask.environment):
        answer = ask.aws.find("kms", "describe_key", {"NotFoundException"}, KeyId=arn)
        if answer is None:
            yield Problem(path, f"there is no key {arn}", "correct its ARN")
            continue
        for field, (needed, fix) in _KEY_USE.items():
            if (value := answer["KeyMetadata"].get(field)) != needed:
                yield Problem(path, f"{field} of key {arn} is {value}; needed: {needed}", fix)
        yield Note(arn.rpartition("/")[2])


@check("PRE053")
def key_policies(ask: Ask) -> Answers:
    """Policies of existing keys: whether they leave access to the account's IAM policies, and let logs be encrypted."""
    environment = ask.environment
    for path, arn in named_keys(ask.environment):
        if arn.split(":")[4] != ask.account:
            yield Skip(f"{arn} is of account {arn.split(':')[4]}, which alone reads its policy")
            continue
        answer = ask.aws.find("kms", "get_key_policy", {"NotFoundException"}, KeyId=arn, PolicyName="default")
        if answer is None:
            continue
        statements = json.loads(answer["Policy"])["Statement"]
        statements = statements if isinstance(statements, list) else [statements]
        root = f"arn:{partition(environment.region)}:iam::{ask.account}:root"
        for action in _GRANTS:
            if not any(_allows(each, "AWS", {root, ask.account, "*"}, action) for each in statements):
                yield Problem(
                    path,
                    f"the policy of key {arn} leaves {action} to no IAM policy of the account, and podwright's roles, "
                    "which it cannot name yet, need it",
                    f"add a statement that allows kms:* to {root}, as KMS writes into new keys",
                )
                break
        logs = f"logs.{environment.region}.amazonaws.com"
        flow_logs = environment.network.vpc is None and environment.network.flow_logs_days
        for_logs = any(_allows(each, "Service", {logs}, "kms:GenerateDataKey") for each in statements)
        if path == ("storage", "kms_key") and flow_logs and not for_logs:
            yield Problem(
                path,
                f"the policy of key {arn} does not let {logs} use it, so flow logs cannot be encrypted",
                f"allow kms:Encrypt, kms:Decrypt, kms:ReEncrypt*, kms:GenerateDataKey* and kms:Describe* to {logs}, or "
                "set network.flow_logs_days: 0",
            )
        yield Note(arn.rpartition("/")[2])


@check("PRE054")
def scripts(ask: Ask) -> Answers:
    """Lifecycle scripts of your own, which have to be there before nodes are."""
    for path, group in own_groups(ask.environment):
        if group.lifecycle is None:
            continue
        bucket, _, prefix = group.lifecycle.source.removeprefix("s3://").partition("/")
        for field in ("on_create", "on_init_complete"):
            script = getattr(group.lifecycle, field)
            if script is None:
                continue
            key = "/".join(filter(None, (prefix.strip("/"), script)))
            if ask.aws.find("s3", "head_object", _ABSENT, Bucket=bucket, Key=key) is None:
                yield Problem(
                    (*path, "lifecycle", field),
                    f"there is no s3://{bucket}/{key}",
                    "upload the whole folder of scripts first; nodes of the group fail without it",
                )
            else:
                yield Note(f"s3://{bucket}/{key}")


@check("PRE055")
def left_over_bucket(ask: Ask) -> Answers:
    """The lifecycle bucket's name, which a bucket that outlived an earlier deployment still has."""
    environment = ask.environment
    if environment.storage.buckets.lifecycle:
        return
    name = lifecycle_bucket_name(environment.name, ask.account, environment.region)
    if stack(ask, "storage") is None and ask.aws.find("s3", "head_bucket", _ABSENT, Bucket=name) is not None:
        yield Problem(
            ("storage", "buckets", "lifecycle"),
            f"bucket {name} exists already, and the stack that would create it does not",
            f"adopt it with `storage: {{buckets: {{lifecycle: {name}}}}}`, or delete it: it holds lifecycle scripts "
            "and results of benchmarks",
        )
    else:
        yield Note(name)


class NamedBucket(NamedTuple):
    """An existing bucket that the file names."""

    path: Path
    name: str
    same_region: str
    """Why it has to be in the region, where it does."""


def named_buckets(environment: Environment) -> Iterator[NamedBucket]:
    """Every existing bucket of the file."""
    storage = environment.storage
    for field in ("lifecycle", "checkpoints"):
        if bucket := getattr(storage.buckets, field):
            why = "HyperPod reads scripts only from its region" if field == "lifecycle" else ""
            yield NamedBucket(("storage", "buckets", field), bucket, why)
    for name, lustre in storage.lustres.items():
        for index, repository in enumerate(lustre.repositories):
            path = (*lustre_path(name), "repositories", index, "s3")
            bucket = repository.s3.removeprefix("s3://").partition("/")[0]
            yield NamedBucket(path, bucket, "FSx imports and exports within its region only")
    for path, group in own_groups(environment):
        if group.lifecycle:
            bucket = group.lifecycle.source.removeprefix("s3://").partition("/")[0]
            yield NamedBucket((*path, "lifecycle", "source"), bucket, "HyperPod reads scripts only from its region")


def _zone(ask: Ask, path: Path, zone: str, id: str, subnets: Sequence[str]) -> Answers:
    if not subnets:
        return
    filters = [{"Name": "subnet-id", "Values": subnets}]
    for subnet in ask.aws.pages("ec2", "describe_subnets", "Subnets", Filters=filters):
        if subnet["AvailabilityZoneId"] != zone:
            yield Problem(
                (*path, "zone"),
                f"{id} is in {subnet['AvailabilityZoneId']}, and the file has it in {zone}",
                f"write zone: {subnet['AvailabilityZoneId']}, and put the groups that read most there",
            )


def named_keys(environment: Environment) -> Iterator[tuple[Path, str]]:
    """Existing keys with the first path that names each."""
    named: list[tuple[Path, str | None]] = [(("storage", "kms_key"), environment.storage.kms_key)]
    if environment.cluster.orchestrator == "eks":
        named.append((("cluster", "eks", "secrets_key"), environment.cluster.eks.secrets_key))
    for path, group in sections(environment):
        named += [((*path, "volumes", index, "kms_key"), volume.kms_key) for index, volume in enumerate(group.volumes)]
    named += [((*path, "root_kms_key"), group.root_kms_key) for path, group in own_groups(environment)]
    observed: set[str] = set()
    for path, arn in named:
        if arn and arn not in observed:
            observed.add(arn)
            yield path, arn


def _allows(statement: dict[str, Any], kind: str, principals: set[str], action: str) -> bool:
    """Whether a statement of a key policy allows an action to one of the principals. Conditions are not judged."""
    named = statement.get("Principal", {})
    specified = named.get(kind, []) if isinstance(named, dict) else named
    specified = {specified} if isinstance(specified, str) else set(specified)
    actions = statement.get("Action", [])
    actions = [actions] if isinstance(actions, str) else actions
    fits = any(one == action or (one.endswith("*") and action.startswith(one[:-1])) for one in actions)
    return statement.get("Effect") == "Allow" and bool(specified & principals) and fits
