"""Counts of loaded modules, shared objects and freed requests bound the memory of the sandbox's process."""

import gc
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import BackendRequest
from moto.s3.models import FakeKey, S3Backend
from werkzeug.test import EnvironBuilder, run_wsgi_app

from podwright.sandbox.cloudformation.validation import property_rule
from podwright.sandbox.protocol.accounts import account_of_key
from podwright.sandbox.protocol.contents import Contents
from podwright.sandbox.protocol.failures import backend_app
from podwright.sandbox.protocol.json_objects import with_shared_text
from podwright.sandbox.services import buckets

LARGE = b"x" * 200_000
SIGNED = {
    "Host": "localhost",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=sandbox/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
    ),
}
STARTED = """
import json, sys
import podwright.sandbox.__main__
import moto.backends
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from podwright.sandbox.server.application import _Dispatcher

listed = []
moto.backends.list_of_moto_modules = lambda: listed.append(1) or ["ec2"]
services = {_Dispatcher.get_backend_for_host(dispatcher, "ec2.us-west-2.amazonaws.com")
            for dispatcher in [_Dispatcher()] for _ in range(3)}
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "offers": sum(len(rows) for regions in INSTANCE_TYPE_OFFERINGS.values() for rows in regions.values()),
    "regions": sum(len(regions) for regions in INSTANCE_TYPE_OFFERINGS.values()),
    "services": sorted(services), "lists": len(listed),
}))
"""


@pytest.fixture(scope="module")
def started() -> dict[str, Any]:
    """What a process of the sandbox has loaded before its first request."""
    command = [sys.executable, "-P", "-c", STARTED]
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=os.environ).stdout)


def test_no_cdk_and_no_client_of_kubernetes_is_loaded(started: dict[str, Any]) -> None:
    assert "moto" in started["modules"]
    assert not {"jsii", "aws_cdk", "cdk8s", "constructs", "kubernetes", "numpy", "pandas"} & {*started["modules"]}


def test_offers_of_regions_are_not_read_at_the_start(started: dict[str, Any]) -> None:
    assert started["regions"] > 30
    assert started["offers"] == 0


def test_the_service_of_a_host_is_searched_once(started: dict[str, Any]) -> None:
    assert started["services"] == ["ec2"]
    assert started["lists"] == 1


@pytest.fixture
def contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contents:
    """A directory of large objects, for this test alone."""
    for owner, name in ((FakeKey, "value"), (FakeKey, "__getstate__"), (S3Backend, "get_bucket_encryption")):
        monkeypatch.setattr(owner, name, vars(owner)[name])
    contents = Contents(tmp_path / "contents")
    buckets.mount(contents)
    return contents


def stored(value: bytes) -> Any:
    return FakeKey("assets/a.zip", value, account_id="123456789012", region_name="us-west-2")


def test_a_large_object_is_a_file_and_a_small_one_is_not(contents: Contents) -> None:
    large, equal, small = stored(LARGE), stored(LARGE), stored(b"small")
    assert [large.value, equal.value, small.value] == [LARGE, LARGE, b"small"]
    assert [large.size, small.size] == [len(LARGE), 5]
    assert [file.read_bytes() for file in contents.directory.iterdir()] == [LARGE]
    large.value = b"replaced"
    assert large.value == b"replaced"
    assert equal.value == LARGE


def test_pickling_reads_no_large_object(contents: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = stored(LARGE), stored(b"small")
    etag = large.etag
    large.dispose()  # closes its file
    text = pickle.dumps([large, small])
    assert len(text) < 10_000
    restored = pickle.loads(text)
    assert [key.value for key in restored] == [LARGE, b"small"]
    assert [restored[0].etag, restored[0].size] == [etag, len(LARGE)]


def test_a_request_is_freed_with_its_answer() -> None:
    """Uploads have 37 MB, and Python's collector looks for cycles of old objects only now and then."""
    app = backend_app("s3")
    environ = EnvironBuilder("/freed-with-its-answer", method="PUT", headers=SIGNED).get_environ()
    gc.collect()
    gc.disable()
    try:
        _, status, _ = run_wsgi_app(app, environ, buffered=True)
        assert status == "200 OK"
        del environ
        assert [item for item in gc.get_objects() if isinstance(item, BackendRequest)] == []
    finally:
        gc.enable()


def test_a_search_for_an_access_key_creates_one_partition() -> None:
    """Each partition of each account would get AWS's 1,500 managed policies."""
    account = iam_backends["444455556666"]
    account["aws"].create_user("aws", "someone")
    key = account["aws"].create_access_key("someone")
    assert account_of_key(key.access_key_id) == "444455556666"
    assert account_of_key("AKIAUNKNOWN") == "123456789012"
    assert [*dict.keys(account)] == ["aws"]


def test_equal_text_is_held_once() -> None:
    document = json.loads('{"a": ["db.r6g.large", {"b c": "db.r6g.large"}], "n": [1, null, true, 0.5]}')
    shared = with_shared_text(document)
    assert shared == document
    assert shared["a"][0] is shared["a"][1]["b c"]


def test_schemas_of_rules_hold_equal_text_once() -> None:
    """Two rules about classes of databases would have 27 MB."""
    rule = _rule("E3062", property_rule(), set())
    assert rule is not None
    texts = list(_texts(rule.schema))
    assert len(texts) > 50_000
    assert len({id(text) for text in texts}) == len(set(texts))


def _rule(name: str, rule: Any, visited: set[str]) -> Any:
    """Find a rule by its id in a graph of rules, which may have cycles; None if it has no such rule."""
    if rule.id == name:
        return rule
    visited.add(rule.id)
    below = [child for child in rule.child_rules.values() if child and child.id not in visited]
    return next((match for child in below if child.id not in visited and (match := _rule(name, child, visited))), None)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            yield from value
            for item in value.values():
                yield from _texts(item)
