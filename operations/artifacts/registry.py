"""Copying images between container registries over their HTTP API, without a container engine.

Source: Open Container Initiative, Distribution Specification 1.1. An image is copied whole, every platform of it, so
that its digest stays what it was.
"""

import hashlib
import json
import re
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast

from urllib3 import BaseHTTPResponse, Retry

from ...config.catalog.images import Image
from ...config.errors import CommandError
from .http import RETRIES, RequestFailed, request, save

_ACCEPT: Final = {
    "Accept": "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
}
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')
_NEXT: Final = re.compile(r'<([^>]+)>;\s*rel="?next"?')
# The name that people write is no host that serves the API.
_HOSTS: Final = {"docker.io": "registry-1.docker.io"}


@dataclass
class Registry:
    """One registry, as one user."""

    host: str
    authorization: str = ""
    """Value of the Authorization header; empty to ask for an anonymous token when the registry wants one."""
    scheme: str = "https"
    _tokens: dict[str, str] = field(default_factory=dict)

    def manifest(self, repository: str, reference: str) -> tuple[bytes, str]:
        """A manifest or an index, by tag or digest, and its media type."""
        answer = self._open("GET", f"/v2/{repository}/manifests/{reference}", _ACCEPT)
        content, kind = answer.data, answer.headers["Content-Type"].partition(";")[0]
        # A tag may lead anywhere, a digest to one content alone.
        if reference.startswith("sha256:") and _digest(content) != reference:
            raise CommandError(
                f"{self.host}/{repository} serves another manifest than {reference}", "do not use this registry"
            )
        return content, kind

    def tags(self, repository: str) -> Iterator[str]:
        """All tags of a repository, page by page."""
        path = f"/v2/{repository}/tags/list?n=1000"
        while path:
            answer = self._open("GET", path)
            yield from answer.json()["tags"] or ()
            following = _NEXT.search(answer.headers.get("Link", ""))
            path = urllib.parse.urljoin(self._address("/"), following[1]) if following else ""

    def has(self, repository: str, what: str, reference: str) -> bool:
        """Whether it has that manifest or blob (`what` is manifests or blobs)."""
        try:
            self._open("HEAD", f"/v2/{repository}/{what}/{reference}", _ACCEPT)
        except RequestFailed as error:
            if error.status != 404:
                raise
            return False
        return True

    def put_manifest(self, repository: str, reference: str, content: bytes, kind: str) -> None:
        """Store a manifest under a tag or its digest."""
        self._open("PUT", f"/v2/{repository}/manifests/{reference}", {"Content-Type": kind}, content)

    def read_blob(self, repository: str, digest: str, into: IO[bytes]) -> int:
        """Write a blob into a file. Returns its length; raises CommandError when it is not what its digest says."""
        path = f"/v2/{repository}/blobs/{digest}"
        save(lambda retries: self._open("GET", path, retries=retries, stream=True), into)
        length = into.tell()
        into.seek(0)
        if f"sha256:{hashlib.file_digest(cast(Any, into), 'sha256').hexdigest()}" != digest:
            raise CommandError(f"{self.host}/{repository} serves another blob than {digest}", "run this again")
        into.seek(0)
        return length

    def put_blob(self, repository: str, digest: str, content: IO[bytes], length: int) -> None:
        """Store a blob."""
        answer = self._open("POST", f"/v2/{repository}/blobs/uploads/", {"Content-Length": "0"}, b"")
        # The Location may be relative, and may have a query of its own that has to stay.
        path = urllib.parse.urlsplit(urllib.parse.urljoin(self._address("/"), answer.headers["Location"]))
        query = "&".join(filter(None, (path.query, f"digest={urllib.parse.quote(digest)}")))
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
        self._open("PUT", urllib.parse.urlunsplit(path._replace(query=query)), headers, content)

    def _address(self, path: str) -> str:
        return path if "://" in path else f"{self.scheme}://{_HOSTS.get(self.host, self.host)}{path}"

    def _open(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | IO[bytes] | None = None,
        *,
        retries: Retry = RETRIES,
        stream: bool = False,
    ) -> BaseHTTPResponse:
        """The answer. "Unauthorized" is answered once, with an anonymous token."""
        # Tokens are given for a repository, so they are kept by it.
        scope = path.partition("/v2/")[2].split("/manifests/")[0].split("/blobs/")[0].split("/tags/")[0]

        def ask() -> BaseHTTPResponse:
            # Not sent on to the storage that a registry redirects to: urllib3 takes it away for another host.
            authorization = self.authorization or self._tokens.get(scope)
            signed = {**(headers or {}), **({"Authorization": authorization} if authorization else {})}
            return request(method, self._address(path), signed, body, retries=retries, stream=stream)

        try:
            return ask()
        except RequestFailed as refused:
            # The registry names in its refusal where a token is had and for what.
            challenge = refused.answer.headers.get("WWW-Authenticate", "") if refused.answer else ""
            if refused.status != 401 or self.authorization or not challenge.startswith("Bearer"):
                raise
            self._tokens[scope] = self._token(dict(_CHALLENGE.findall(challenge)))
        # The first try has read the body to its end.
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        return ask()

    def _token(self, challenge: dict[str, str]) -> str:
        query = urllib.parse.urlencode({key: challenge[key] for key in ("service", "scope") if key in challenge})
        result = request("GET", f"{challenge['realm']}?{query}").json()
        # Registries call the token by either name.
        return f"Bearer {result.get('token') or result['access_token']}"


def digest_of(image: Image, source: Registry) -> str:
    """The digest of what the image's tag names now, or the digest that it names itself."""
    return image.digest or _digest(source.manifest(image.repository, image.tag)[0])


def copy(image: Image, source: Registry, target: Registry, repository: str) -> str:
    """Copy an image with all its platforms to a repository of another registry. Returns its digest."""
    content, kind = source.manifest(image.repository, image.digest or image.tag)
    _copy_parts(json.loads(content), image.repository, source, target, repository)
    target.put_manifest(repository, image.tag or _digest(content), content, kind)
    return _digest(content)


def _copy_parts(manifest: dict[str, Any], name: str, source: Registry, target: Registry, repository: str) -> None:
    for child in manifest.get("manifests", ()):
        # Parts before the whole: a registry refuses a manifest whose parts it lacks.
        if not target.has(repository, "manifests", child["digest"]):
            content, kind = source.manifest(name, child["digest"])
            _copy_parts(json.loads(content), name, source, target, repository)
            target.put_manifest(repository, child["digest"], content, kind)
    for blob in (*filter(None, [manifest.get("config")]), *manifest.get("layers", ())):
        # Images of one base share layers, and a second mirror run has most of them already.
        if not target.has(repository, "blobs", blob["digest"]):
            with tempfile.TemporaryFile() as file:
                length = source.read_blob(name, blob["digest"], file)
                target.put_blob(repository, blob["digest"], file, length)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
