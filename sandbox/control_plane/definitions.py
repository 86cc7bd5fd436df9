"""Restores custom resource definitions in the form in which an API server of the same version has stored them.

kube-apiserver takes seconds of processor time to apply long definitions: it determines the owner of each field, and
does so again for each change of the definition's status. So a definition is applied once for each version of
Kubernetes. For later control planes, the stored form is written into etcd, and the API server serves it at once.
"""

import base64
import copy
import hashlib
import http.client
import json
import logging
import ssl
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ..kubernetes.certificates import Authority
from .cluster_api import apply, find_definition, wait_served
from .webhooks import Manifest, on_loopback

KIND: Final = "CustomResourceDefinition"
_ETCD_PREFIX: Final = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
_APPROVED: Final = "api-approved.kubernetes.io"
"""Annotation of definitions in API groups of Kubernetes itself (`*.k8s.io`). Their status has one more condition."""
_CONDITIONS: Final = frozenset({"NamesAccepted", "Established"})
_APPROVAL: Final = "KubernetesAPIApprovalPolicyConformant"
_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Etcd:
    """The etcd of one control plane, as a client with a certificate of its authority."""

    port: int
    authority: Authority

    def create(self, key: str, value: bytes) -> bool:
        """Write a new key. Returns False and changes nothing if the key exists.

        Raises:
            CommandError: etcd does not answer, or refuses.
        """
        pair = self.authority.client("definitions", "definitions")
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.load_cert_chain(pair.certificate, pair.key)
        name = _base64(key.encode())
        # Source: etcd documentation, "gRPC gateway", v3.5.
        absent = {"key": name, "target": "CREATE", "createRevision": "0"}
        put = {"requestPut": {"key": name, "value": _base64(value)}}
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS, context=context)
        try:
            connection.request("POST", "/v3/kv/txn", json.dumps({"compare": [absent], "success": [put]}))
            answer = connection.getresponse()
            content = answer.read()
        except OSError as error:
            raise CommandError(f"etcd on port {self.port} does not answer: {error}") from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise CommandError(f"etcd on port {self.port} refuses {key}: {content.decode(errors='replace')}")
        return bool(json.loads(content).get("succeeded"))


@dataclass(frozen=True, slots=True)
class Definitions:
    """Applies definitions to one control plane."""

    folder: Path
    """Folder of the user's stored definitions, for all control planes."""
    recipe: str
    """Digest of the version of Kubernetes that stores them."""
    kubeconfig: Path
    """The administrator's kubeconfig."""
    etcd: Etcd

    def apply(self, definitions: Sequence[Manifest], services: Mapping[str, int] | None = None) -> None:
        """Create or change definitions, and wait until their kinds are served.

        Args:
            definitions: The definitions of a release.
            services: Ports on loopback by the names of the services that convert objects.

        Raises:
            CommandError: etcd or the API server refuses one, or the kinds are not served after a minute.
        """
        ports = services or {}
        applied = [item for item in definitions if not self._restore(item, ports)]
        apply(self.kubeconfig, on_loopback(applied, ports))
        wait_served(self.kubeconfig, definitions)
        for item in applied:
            self._store(item)

    def _restore(self, definition: Manifest, services: Mapping[str, int]) -> bool:
        """Write a definition's stored form into etcd. Returns False without one, or if the definition exists."""
        try:
            stored = json.loads(self._file(definition).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        if not isinstance(stored, dict) or stored.get("kind") != definition["kind"]:
            return False
        (item,) = on_loopback([stored], services)
        time = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        item["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": time}
        value = json.dumps(item, separators=(",", ":")).encode()
        return self.etcd.create(f"{_ETCD_PREFIX}{item['metadata']['name']}", value)

    def _store(self, definition: Manifest) -> None:
        """Keep the form in which the API server has just stored a new definition."""
        stored = find_definition(self.kubeconfig, definition["metadata"]["name"])
        if stored is None or not _is_new(stored):
            return
        item = copy.deepcopy(stored)
        item["metadata"].pop("resourceVersion")
        file = self._file(definition)
        # Concurrent writers use separate files; all write the same content.
        new = file.with_suffix(f".{uuid.uuid4().hex}.new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(item, separators=(",", ":")), encoding="utf-8")
            new.replace(file)
        except OSError as error:
            # The cluster has the definition; only later clusters start more slowly.
            logging.warning("the definition %s is not kept: %s", definition["metadata"]["name"], error)

    def _file(self, definition: Manifest) -> Path:
        content = json.dumps([self.recipe, definition], sort_keys=True, default=str).encode()
        return self.folder / f"{definition['metadata']['name']}-{hashlib.sha256(content).hexdigest()[:16]}.json"


def _is_new(stored: Manifest) -> bool:
    """Return True for a definition that was created once, is unchanged since, and has all conditions of its status."""
    expected = _CONDITIONS | ({_APPROVAL} if _APPROVED in stored["metadata"].get("annotations", {}) else set())
    conditions = {item["type"] for item in stored.get("status", {}).get("conditions") or () if item["status"] == "True"}
    return stored["metadata"]["generation"] == 1 and conditions >= expected


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
