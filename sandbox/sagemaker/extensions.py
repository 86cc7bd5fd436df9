# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Extensions of Slurm clusters, such as sagemaker-observability: records that become Active after some seconds.

No software is installed. Sources: botocore 1.44.5, service model of SageMaker; SageMaker API Reference,
UpdateClusterExtension, 2026-11. The versions are synthetic.
"""

import json
import uuid
from datetime import timedelta
from typing import ClassVar, Final

from moto.core.responses import ActionResult

from ..hyperpod.cluster import Cluster
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, merged, picked, tags_of
from ..protocol.service import refuse
from .schedulers_api import SchedulerOperations

_VERSIONS: Final = ("1.0.0", "1.1.0")


class ExtensionOperations(SchedulerOperations):
    """SageMaker's API with extensions of clusters."""

    versions: ClassVar = _VERSIONS

    def create_cluster_extension(self) -> ActionResult:
        """Add an extension. The same client token gives the same extension."""
        cluster, name = self._of(), self._get_param("ExtensionName")
        if not cluster.continuous or "Eks" in cluster.request.get("Orchestrator", {}):
            raise refuse("ValidationException", "Extensions need Slurm and NodeProvisioningMode Continuous (sandbox)")
        for arn, item in cluster.extensions.items():
            # The token is checked before the name, so a repeated call does not conflict with its own extension.
            if item["token"] and item["token"] == self._get_param("ClientToken"):
                return ActionResult({"ExtensionArn": arn})
            if item["ExtensionName"] == name:
                raise refuse("ConflictException", f"{cluster.name} has an extension {name} (sandbox)")
        location = f"arn:aws:sagemaker:{self.region}:{self.current_account}"
        arn = f"{location}:extension/{name}/{cluster.name}/{uuid.uuid4().hex[:12]}"
        cluster.extensions[arn] = {
            "ExtensionName": name,
            "ExtensionVersion": self._version(),
            "ConfigurationValues": self._settings() or "{}",
            "CreationTime": now(),
            "LastModifiedTime": now(),
            "token": self._get_param("ClientToken"),
            "tags": tags_of(dict(self.params)),
            "verb": "Creating",
        }
        return ActionResult({"ExtensionArn": arn})

    def describe_cluster_extension(self) -> ActionResult:
        cluster, item = self._found()
        nodes = sum(node.status(now()) == "Running" for node in cluster.nodes)
        status = _status(cluster, item)
        return ActionResult(
            {
                "ExtensionDetails": self._shown(cluster, item)
                | {key: item[key] for key in ("ConfigurationValues", "LastModifiedTime")},
                "NodeSummary": {"TotalCount": nodes, "ActiveCount": nodes if status == "Active" else 0},
                "Health": {"Issues": []},
            }
        )

    def update_cluster_extension(self) -> ActionResult:
        """Change an extension's version or configuration. Refuses a change during another one."""
        cluster, item = self._found()
        if _status(cluster, item) != "Active":
            raise refuse("ConflictException", "The extension is being changed (sandbox)")
        if self._get_param("ExtensionVersion"):
            version = self._version()
            if _VERSIONS.index(version) < _VERSIONS.index(item["ExtensionVersion"]):
                raise refuse("ValidationException", "An extension cannot go back to an earlier version (sandbox)")
            item["ExtensionVersion"] = version
        if change := self._settings():
            item["ConfigurationValues"] = json.dumps(
                merged(json.loads(item["ConfigurationValues"]), json.loads(change))
            )
        item |= {"LastModifiedTime": now(), "verb": "Updating"}
        return ActionResult({"ExtensionArn": self._get_param("ExtensionArn")})

    def delete_cluster_extension(self) -> ActionResult:
        _, item = self._found()
        item |= {"LastModifiedTime": now(), "verb": "Deleting"}
        return ActionResult({"ExtensionArn": self._get_param("ExtensionArn")})

    def list_cluster_extensions(self) -> ActionResult:
        cluster = self._of()
        shown = ("ExtensionArn", "ExtensionName", "ExtensionVersion", "Status", "CreationTime")
        results = [self._shown(cluster, item) for item in cluster.extensions.values()]
        return ActionResult({"Extensions": [picked(item, *shown) for item in results]})

    def list_cluster_extension_versions(self) -> ActionResult:
        return ActionResult({"ExtensionVersions": [{"ExtensionVersion": version} for version in reversed(_VERSIONS)]})

    def _of(self) -> Cluster:
        cluster = self.service.cluster(self.region, self._get_param("ClusterArn"))
        for arn, item in list(cluster.extensions.items()):
            # No thread removes deleted extensions; the next read does.
            if item["verb"] == "Deleting" and _status(cluster, item) != "Deleting":
                del cluster.extensions[arn]
        return cluster

    def _found(self) -> tuple[Cluster, JsonObject]:
        cluster, arn = self._of(), self._get_param("ExtensionArn")
        if arn not in cluster.extensions:
            raise refuse("ResourceNotFound", f"Extension {arn} does not exist (sandbox)")
        return cluster, cluster.extensions[arn]

    def _shown(self, cluster: Cluster, item: JsonObject) -> JsonObject:
        [arn] = [arn for arn, other in cluster.extensions.items() if other is item]
        keys = ("ExtensionName", "ExtensionVersion", "CreationTime")
        known = {"ClusterArn": cluster.arn, "ExtensionArn": arn, "Status": _status(cluster, item)}
        return known | {key: item[key] for key in keys}

    def _version(self) -> str:
        version = self._get_param("ExtensionVersion") or _VERSIONS[-1]
        if version not in _VERSIONS:
            raise refuse("ValidationException", f"There is no version {version}; there are {_VERSIONS} (sandbox)")
        return version

    def _settings(self) -> str | None:
        text = self._get_param("ConfigurationValues")
        try:
            if text is None or isinstance(json.loads(text), dict):
                return text
        except ValueError as error:
            raise refuse("ValidationException", f"ConfigurationValues is not JSON: {error} (sandbox)") from None
        raise refuse("ValidationException", "ConfigurationValues is not a JSON object (sandbox)")


def _status(cluster: Cluster, item: JsonObject) -> str:
    """Set the status to Active after some seconds, unless the extension is being deleted."""
    done = item["LastModifiedTime"] + timedelta(seconds=cluster.timing.boot * cluster.timing.scale)
    settled = "Gone" if item["verb"] == "Deleting" else "Active"
    return item["verb"] if now() < done else settled
