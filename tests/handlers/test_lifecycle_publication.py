"""The publication of lifecycle scripts, against moto's S3, whole and with faults thrown in."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from podwright.constructs.hyperpod.lifecycle_publication.handler import index

BUCKET = "sagemaker-test"
ASSETS = "cdk-assets"
PREFIX = "prod"
FILES = {
    "on_create.sh": b"#!/bin/bash\n",
    "podwright_node/runner/steps.py": b"pass\n",
    "kernels/bench.bin": bytes(3 << 20),
}
FACTS = {"version": 1, "cluster": {"name": "prod"}}
CONTEXT = SimpleNamespace(log_group_name="group", log_stream_name="stream")


def archive(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return content.getvalue()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        monkeypatch.setattr(index, "s3", client)
        for name in (BUCKET, ASSETS):
            client.create_bucket(Bucket=name)
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        client.put_object(Bucket=ASSETS, Key="a.zip", Body=archive(FILES))
        yield client


def request(kind: str = "Create", facts: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResourceType": "Custom::PodwrightLifecycle",
        "LogicalResourceId": "Scripts",
        "PhysicalResourceId": f"s3://{BUCKET}/{PREFIX}",
        "ResourceProperties": {
            "Bucket": BUCKET,
            "Prefix": PREFIX,
            "AssetBucket": ASSETS,
            "AssetKey": "a.zip",
            "AssetDigest": "a",
            "NodeFacts": json.dumps(facts or FACTS),
            "RemoveOnDelete": "true",
            **properties,
        },
    }


def publish(**changes: Any) -> str:
    """The S3 URI that a request to publish answers with."""
    return index.handle(request(**changes), CONTEXT).data["SourceS3Uri"]


def published(s3: Any, below: str = "") -> dict[str, bytes]:
    """Every object of the bucket by key."""
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix=below).get("Contents", [])]
    return {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}


def test_lays_out_the_scripts_the_facts_and_a_manifest_of_both(s3: Any) -> None:
    uri = publish()
    digest = uri.removeprefix(f"s3://{BUCKET}/{PREFIX}/")
    assert len(digest) == 64
    actual = {key.removeprefix(f"{PREFIX}/{digest}/"): data for key, data in published(s3).items()}
    manifest = json.loads(actual.pop("manifest.json"))
    assert json.loads(actual["node.json"]) == FACTS
    assert "provisioning_parameters.json" not in actual
    assert {name: data for name, data in actual.items() if name != "node.json"} == FILES
    assert manifest["digest"] == digest
    assert manifest["files"] == {name: hashlib.sha256(data).hexdigest() for name, data in actual.items()}


def test_parameters_of_slurm_lie_beside_the_facts_and_count_in_the_digest(s3: Any) -> None:
    parameters = {"version": "1.0.0", "controller_group": "controller"}
    plain, uri = publish(), publish(ProvisioningParameters=json.dumps(parameters))
    below = uri.removeprefix(f"s3://{BUCKET}/")
    actual = published(s3, below)
    assert uri != plain
    assert json.loads(actual[f"{below}/provisioning_parameters.json"]) == parameters
    manifest = json.loads(actual[f"{below}/manifest.json"])
    written = actual[f"{below}/provisioning_parameters.json"]
    assert manifest["files"]["provisioning_parameters.json"] == hashlib.sha256(written).hexdigest()
    assert publish(ProvisioningParameters=json.dumps(parameters | {"controller_group": "head"})) not in (plain, uri)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="create"),
        pytest.param({"kind": "Update", "facts": {"version": 1, "b": 2}}, id="other facts"),
        pytest.param({"kind": "Update", "AssetDigest": "b"}, id="other scripts"),
    ],
)
def test_the_resource_keeps_its_id(s3: Any, changes: dict[str, Any]) -> None:
    assert index.handle(request(**changes), CONTEXT).physical_id == f"s3://{BUCKET}/{PREFIX}"


def test_another_bucket_or_prefix_is_another_resource(s3: Any) -> None:
    s3.create_bucket(Bucket="sagemaker-other")
    first = index.handle(request(), CONTEXT).physical_id
    assert index.handle(request(Prefix="dev"), CONTEXT).physical_id != first
    assert index.handle(request(Bucket="sagemaker-other"), CONTEXT).physical_id != first


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"AssetDigest": "b"}, id="other scripts"),
        pytest.param({"facts": {**FACTS, "dns": "fs-1"}}, id="other values that only a deployment knows"),
    ],
)
def test_new_content_gets_a_new_prefix_and_the_old_one_stays(s3: Any, changes: dict[str, Any]) -> None:
    first = publish()
    before = published(s3)
    second = publish(kind="Update", **changes)
    assert second != first
    assert {key: data for key, data in published(s3).items() if key in before} == before


def test_the_order_of_keys_in_the_template_is_no_new_content(s3: Any) -> None:
    assert publish(facts={"a": 1, "b": {"c": 2, "d": 3}}) == publish(facts={"b": {"d": 3, "c": 2}, "a": 1})


def test_a_repeated_request_writes_nothing(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = publish()
    monkeypatch.setattr(s3, "put_object", None)
    monkeypatch.setattr(s3, "upload_fileobj", None)
    assert publish() == first


def test_a_rollback_needs_no_asset_of_the_older_version(s3: Any) -> None:
    first = publish()
    publish(kind="Update", AssetDigest="b")
    s3.delete_object(Bucket=ASSETS, Key="a.zip")
    assert publish(kind="Update") == first


WRITES = len(FILES) + 2


@pytest.mark.parametrize("number", range(WRITES))
def test_a_fault_at_any_write_leaves_no_manifest_and_the_next_run_finishes(s3: Any, number: int) -> None:
    done = 0

    def fail(**_: Any) -> None:
        nonlocal done
        done += 1
        if done > number:
            raise ClientError({"Error": {"Code": "SlowDown", "Message": "Reduce your request rate"}}, "PutObject")

    s3.meta.events.register("before-call.s3.PutObject", fail)
    with pytest.raises(ClientError):
        publish()
    s3.meta.events.unregister("before-call.s3.PutObject", fail)
    assert len(published(s3)) == number
    assert not [key for key in published(s3) if key.endswith("manifest.json")]
    publish()
    again = published(s3)
    index.handle(request("Delete"), CONTEXT)
    publish()
    assert again == published(s3)
    assert len(again) == WRITES


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({"on_create.sh": b"#!/bin/bash\r\n"}, "on_create.sh has carriage returns", id="CRLF in bash"),
        pytest.param(FILES | {"podwright_node/a.py": b"a\r\n"}, "podwright_node/a.py has", id="CRLF in Python"),
        pytest.param({"setup.sh": b"#!/bin/bash\n"}, "no on_create.sh", id="no entry point"),
    ],
)
def test_refuses_scripts_that_a_node_could_not_run(s3: Any, files: dict[str, bytes], says: str) -> None:
    s3.put_object(Bucket=ASSETS, Key="a.zip", Body=archive(files))
    with pytest.raises(ValueError, match=says):
        publish()
    assert published(s3) == {}


def test_carriage_returns_in_data_are_no_fault(s3: Any) -> None:
    s3.put_object(Bucket=ASSETS, Key="a.zip", Body=archive(FILES | {"kernels/table.csv": b"a\r\n"}))
    publish()
    published = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert any(item["Key"].endswith("kernels/table.csv") and item["Size"] == 3 for item in published)


def versions(s3: Any, below: str) -> int:
    object_versions = s3.list_object_versions(Bucket=BUCKET, Prefix=below)
    return len(object_versions.get("Versions", [])) + len(object_versions.get("DeleteMarkers", []))


def test_delete_removes_every_version_below_the_prefix_and_nothing_else(s3: Any) -> None:
    publish()
    publish(kind="Update", AssetDigest="b")
    s3.put_object(Bucket=BUCKET, Key="prod-of-another/a", Body=b"")
    # An object that was replaced, and one that was deleted by hand.
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/a", Body=b"1")
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/a", Body=b"2")
    s3.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/a")
    answer = index.handle(request("Delete"), CONTEXT)
    assert answer.physical_id == f"s3://{BUCKET}/{PREFIX}"
    assert versions(s3, f"{PREFIX}/") == 0
    assert list(published(s3)) == ["prod-of-another/a"]
    assert index.handle(request("Delete"), CONTEXT) == answer


def test_delete_keeps_what_the_stack_is_to_keep(s3: Any) -> None:
    publish()
    before = published(s3)
    index.handle(request("Delete", RemoveOnDelete="false"), CONTEXT)
    assert published(s3) == before


def test_delete_removes_more_than_one_call_takes(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_DELETE_AT_ONCE", 2)
    publish()
    index.handle(request("Delete"), CONTEXT)
    assert versions(s3, "") == 0


def test_delete_says_what_it_could_not_remove(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    publish()
    refusal = {"Errors": [{"Key": f"{PREFIX}/x", "Code": "AccessDenied"}]}
    monkeypatch.setattr(s3, "delete_objects", lambda **_: refusal)
    with pytest.raises(RuntimeError, match="1 objects stay, first prod/x: AccessDenied"):
        index.handle(request("Delete"), CONTEXT)


def test_copies_archives_beside_the_scripts_once(s3: Any) -> None:
    s3.put_object(Bucket=ASSETS, Key="efa.tar.gz", Body=b"an installer")
    archives = [{"Bucket": ASSETS, "Key": "efa.tar.gz", "Name": "archives/abc/efa_installer-1.50.0"}]
    publish(Archives=archives)
    assert published(s3)["prod/archives/abc/efa_installer-1.50.0"] == b"an installer"
    s3.delete_object(Bucket=ASSETS, Key="efa.tar.gz")
    publish(facts={"version": 1, "changed": True}, Archives=archives)
    assert published(s3)["prod/archives/abc/efa_installer-1.50.0"] == b"an installer"


def test_scripts_are_finished_only_after_their_archives(s3: Any) -> None:
    with pytest.raises(ClientError):
        publish(Archives=[{"Bucket": ASSETS, "Key": "missing", "Name": "archives/abc/missing"}])
    assert not [key for key in published(s3) if key.endswith("manifest.json")]


def test_archives_go_with_the_stack(s3: Any) -> None:
    s3.put_object(Bucket=ASSETS, Key="efa.tar.gz", Body=b"an installer")
    publish(Archives=[{"Bucket": ASSETS, "Key": "efa.tar.gz", "Name": "archives/abc/efa"}])
    index.handle(request("Delete"), CONTEXT)
    assert published(s3) == {}
