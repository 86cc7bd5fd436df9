"""Copying images between two registries on loopback that insist on what real ones insist on."""

import base64
from collections.abc import Iterator

import pytest

from loopback import Reply, Server, serving
from podwright.config.catalog.images import Image
from podwright.config.errors import CommandError
from podwright.operations.artifacts.http import RequestFailed
from podwright.operations.artifacts.registry import Registry, copy, digest_of
from registry_double import INDEX, Double, client


@pytest.fixture
def doubles() -> Iterator[tuple[Double, Double, Server]]:
    source, target = Double(), Double()
    with serving(source.answer) as first, serving(target.answer) as second:
        source.url, target.url = first.url, second.url
        yield source, target, second


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda _: None)


def test_an_image_arrives_whole_and_with_its_digest(doubles: tuple[Double, Double, Server]) -> None:
    source, target, _ = doubles
    expected = source.image("v1", b"layer one", b"layer two")
    image = Image("source", "a", "v1", "")
    assert digest_of(image, client(source)) == expected
    assert copy(image, client(source), client(target), "mirror/a") == expected
    assert target.blobs == source.blobs
    assert target.manifests == source.manifests


def test_what_is_there_is_not_sent_again(doubles: tuple[Double, Double, Server]) -> None:
    source, target, server = doubles
    source.image("v1", b"layer")
    image = Image("source", "a", "v1", "")
    copy(image, client(source), client(target), "a")
    server.calls.clear()
    copy(image, client(source), client(target), "a")
    assert [(call.method, call.path) for call in server.calls if call.method != "HEAD"] == [
        ("PUT", "/v2/a/manifests/v1")
    ]


def test_a_digest_is_copied_without_a_tag(doubles: tuple[Double, Double, Server]) -> None:
    source, target, _ = doubles
    expected = source.image("v1", b"layer")
    assert copy(Image("source", "a", "", expected), client(source), client(target), "a") == expected
    assert "v1" not in target.manifests


def test_a_registry_that_wants_a_token_and_redirects_to_storage(doubles: tuple[Double, Double, Server]) -> None:
    source, target, _ = doubles
    expected = source.image("v1", b"layer")
    source.token, source.redirects = "anonymous", True
    assert copy(Image("source", "a", "v1", ""), client(source), client(target), "a") == expected


def test_a_registry_with_a_password(doubles: tuple[Double, Double, Server]) -> None:
    source, target, server = doubles
    source.image("v1", b"layer")
    copy(Image("source", "a", "v1", ""), client(source), client(target, "Basic QVdTOng="), "a")
    assert {call.headers.get("Authorization") for call in server.calls} == {"Basic QVdTOng="}


@pytest.mark.parametrize("faults", [[503], [429, 500], [502, 502, 502]], ids=str)
def test_a_fault_is_tried_again(doubles: tuple[Double, Double, Server], faults: list[int]) -> None:
    source, target, _ = doubles
    expected = source.image("v1", b"layer")
    source.faults, target.faults, target.upload_faults = list(faults), list(faults), list(faults)
    assert copy(Image("source", "a", "v1", ""), client(source), client(target), "a") == expected


def test_a_fault_that_stays_is_an_error(doubles: tuple[Double, Double, Server]) -> None:
    source, _, _ = doubles
    source.faults = [500] * 9
    with pytest.raises(RequestFailed):
        digest_of(Image("source", "a", "v1", ""), client(source))
    assert len(source.faults) == 5


def test_a_refusal_is_not_tried_again(doubles: tuple[Double, Double, Server]) -> None:
    source, _, _ = doubles
    source.faults = [403] * 3
    with pytest.raises(RequestFailed):
        digest_of(Image("source", "a", "v1", ""), client(source))
    assert len(source.faults) == 2


def test_another_blob_than_promised_goes_no_further(doubles: tuple[Double, Double, Server]) -> None:
    source, target, _ = doubles
    source.image("v1", b"layer")
    source.blobs = dict.fromkeys(source.blobs, b"tampered")
    with pytest.raises(CommandError, match="serves another blob"):
        copy(Image("source", "a", "v1", ""), client(source), client(target), "a")
    assert target.blobs == {}


def test_another_manifest_than_asked_for_goes_no_further(doubles: tuple[Double, Double, Server]) -> None:
    source, target, _ = doubles
    expected = source.image("v1", b"layer")
    source.manifests[expected] = (b"{}", INDEX)
    with pytest.raises(CommandError, match="serves another manifest"):
        copy(Image("source", "a", "v1", expected), client(source), client(target), "a")


def test_docker_hub_has_another_host() -> None:
    assert Registry("docker.io")._address("/v2/") == "https://registry-1.docker.io/v2/"
    assert Registry("quay.io")._address("/v2/") == "https://quay.io/v2/"


def test_the_machines_proxy_is_asked_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: Reply(body=b"{}", headers={"Content-Type": INDEX})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:p%40ss@"))
        monkeypatch.setenv("no_proxy", "registry.inside")
        assert Registry("registry.example", scheme="http").manifest("a", "v1") == (b"{}", INDEX)
        (call,) = proxy.calls
        assert call.path == "http://registry.example/v2/a/manifests/v1"
        assert call.headers["proxy-authorization"] == f"Basic {base64.b64encode(b'me:p@ss').decode()}"
        with pytest.raises(RequestFailed, match=r"registry\.inside"):
            Registry("registry.inside", scheme="http").manifest("a", "v1")
