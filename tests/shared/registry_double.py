"""A container registry on loopback that insists on what real ones insist on."""

import hashlib
import json
import re
from typing import Any

from loopback import Call, Reply
from podwright.operations.artifacts.registry import Registry

INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Double:
    """A registry: no manifest without its parts, no part that is not what its digest says, no call without a token."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[bytes, str]] = {}
        self.token = ""
        """Bearer token that calls need; empty for none."""
        self.faults: list[int] = []
        """Status codes that the next calls get instead of an answer."""
        self.upload_faults: list[int] = []
        """The same, for calls that store a blob."""
        self.redirects = False
        self.url = ""

    def add(self, content: bytes, kind: str = "", tag: str = "") -> dict[str, Any]:
        """Keep a blob, or a manifest of some kind, and describe it as manifests do."""
        if kind:
            self.manifests[digest(content)] = self.manifests[tag or digest(content)] = (content, kind)
        else:
            self.blobs[digest(content)] = content
        return {"mediaType": kind, "digest": digest(content), "size": len(content)}

    def image(self, tag: str, *layers: bytes) -> str:
        """An image for two platforms. Returns the digest of its index."""
        children = []
        for platform in (b"amd64", b"arm64"):
            parts = [self.add(layer + platform) for layer in layers]
            manifest = {"mediaType": MANIFEST, "config": self.add(b"config of " + platform), "layers": parts}
            children.append(self.add(json.dumps(manifest).encode(), MANIFEST))
        return self.add(json.dumps({"mediaType": INDEX, "manifests": children}).encode(), INDEX, tag)["digest"]

    def answer(self, call: Call) -> Reply:
        faults = self.upload_faults if call.method == "PUT" and "/blobs/" in call.path else self.faults
        if faults:
            return Reply(faults.pop(0))
        if call.path.startswith("/token"):
            assert "scope=repository" in call.path
            return Reply(body=json.dumps({"token": self.token}).encode())
        if call.path.startswith("/storage/"):
            # As S3 does with a signed address and a second way of signing in.
            return Reply(400) if "Authorization" in call.headers else Reply(body=self.blobs[call.path[9:]])
        if self.token and call.headers.get("Authorization") != f"Bearer {self.token}":
            scope = f'Bearer realm="{self.url}/token",service="double",scope="repository:a:pull"'
            return Reply(401, headers={"WWW-Authenticate": scope})
        matched = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/([^/?]+/?)(\?.*)?", call.path)
        assert matched, call.path
        return self.stored(call, matched[2], matched[3], matched[4] or "")

    def stored(self, call: Call, what: str, reference: str, query: str) -> Reply:
        if call.method == "POST":
            return Reply(202, headers={"Location": "/v2/a/blobs/uploads-7?state=x"})
        if call.method == "PUT" and what == "blobs":
            expected = query.rpartition("digest=")[2].replace("%3A", ":")
            if "state=x" not in query or digest(call.body) != expected:
                return Reply(400)
            self.add(call.body)
            return Reply(201)
        if call.method == "PUT":
            parts = json.loads(call.body)
            needs = [part["digest"] for part in (*parts.get("layers", ()), *filter(None, [parts.get("config")]))]
            children = [part["digest"] for part in parts.get("manifests", ())]
            if set(needs) - self.blobs.keys() or set(children) - self.manifests.keys():
                return Reply(400)
            self.add(call.body, call.headers["Content-Type"], reference)
            return Reply(201)
        actual = self.manifests.get(reference) if what == "manifests" else (self.blobs.get(reference), "application/x")
        if actual is None or actual[0] is None:
            return Reply(404)
        if what == "blobs" and self.redirects and call.method == "GET":
            # Another host, as storage is; a client takes its credentials away for it.
            storage = self.url.replace("127.0.0.1", "localhost")
            return Reply(307, headers={"Location": f"{storage}/storage/{reference}"})
        return Reply(body=actual[0], headers={"Content-Type": actual[1]})


def client(double: Double, authorization: str = "") -> Registry:
    return Registry(double.url.removeprefix("http://"), authorization, "http")
