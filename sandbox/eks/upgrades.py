"""Versions of EKS clusters and add-ons: updates by one minor version, upgrade insights, and rollbacks.

Sources: Amazon EKS User Guide, "Update existing cluster to new Kubernetes version", "Prepare for Kubernetes version
upgrades and troubleshoot misconfigurations with cluster insights" and "Roll back a cluster to a previous Kubernetes
version", 2026-11; botocore 1.44.5 (shapes). Texts with (sandbox) are ours.
"""

import re
import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, without
from ..protocol.service import refuse
from .offers import addons
from .service import Eks, EksCluster

# Days in which EKS can roll back a control plane, and minor versions that a kubelet may be behind it.
_ROLLBACK_DAYS: Final = 7
_KUBELET_SKEW: Final = 3


def update_version(service: Eks, region: str, values: JsonObject) -> JsonObject:
    """Start an update or rollback of a cluster's Kubernetes version. Raises EKS's refusals."""
    cluster = service.cluster(region, values["name"])
    current, requested = cluster.description["version"], values["version"]
    settle(service, cluster)
    if cluster.description["status"] == "UPDATING":
        raise refuse("ResourceInUseException", f"Cluster {values['name']} is being updated (sandbox)")
    step, kind = _minor(requested) - _minor(current), "VersionUpdate"
    if step == -1 and _may_go_back(cluster, requested):
        kind = "VersionRollback"
    elif step not in (0, 1):
        raise refuse(
            "InvalidParameterException", f"Unsupported Kubernetes minor version update from {current} to {requested}"
        )
    if step == 1 and not values.get("force"):
        blocking = [
            item["name"] for item in insights(service, region, cluster) if item["insightStatus"]["status"] == "ERROR"
        ]
        if blocking:
            raise refuse("InvalidRequestException", f"Upgrade insights are in ERROR: {', '.join(blocking)} (sandbox)")
    cluster.description["version"] = requested
    service.kubernetes.set_version(region, values["name"], requested)
    update = new_update(
        kind, [{"type": "Version", "value": requested}], now() + timedelta(seconds=service.update_seconds)
    )
    update["from"] = current
    cluster.updates[update["id"]] = update
    cluster.description["status"] = "UPDATING"
    return shown(update)


def new_update(kind: str, params: list[JsonObject], until: datetime | None = None) -> JsonObject:
    """Return an update of this type, which ends at once or at `until`."""
    return {
        "id": str(uuid.uuid4()),
        "status": "InProgress" if until else "Successful",
        "type": kind,
        "params": params,
        "createdAt": now(),
        "errors": [],
        "until": until or now(),
    }


def settle(service: Eks, cluster: EksCluster) -> None:
    """Complete updates that are due."""
    for update in cluster.updates.values():
        if update["status"] == "InProgress" and update["until"] <= now():
            update["status"] = "Successful"
    busy = any(update["status"] == "InProgress" for update in cluster.updates.values())
    if cluster.description["status"] in ("ACTIVE", "UPDATING"):
        cluster.description["status"] = "UPDATING" if busy else "ACTIVE"


def shown(update: JsonObject) -> JsonObject:
    """Return an update in the form of the API."""
    return without(update, "until", "from")


def default_addon_version(name: str, kubernetes: str) -> str | None:
    """Return the version that EKS installs by default; None for an unknown add-on."""
    result = addons(name, kubernetes)
    return result[0]["addonVersions"][0]["addonVersion"] if result else None


def insights(service: Eks, region: str, cluster: EksCluster) -> list[JsonObject]:
    """Return the upgrade insights of a cluster for the next minor version."""
    current = cluster.description["version"]
    following = f"1.{_minor(current) + 1}"
    wrong, details = list[str](), list[JsonObject]()
    for name, addon in sorted(cluster.addons.items()):
        offered = [version["addonVersion"] for row in addons(name, following) for version in row["addonVersions"]]
        details.append({"name": name, "compatibleVersions": offered})
        if offered and addon.get("addonVersion") not in offered:
            wrong.append(f"{name} {addon.get('addonVersion')}")
    kubelets = {
        match[1]
        for node in service.nodes(region, cluster.description["name"])
        if (match := re.match(r"v(\d+\.\d+)\.", node["status"]["nodeInfo"]["kubeletVersion"]))
    }
    skewed = sorted(version for version in kubelets if _minor(following) - _minor(version) > _KUBELET_SKEW)
    return [
        # Add-ons are updated after the control plane, so an old one does not block the update.
        _insight(
            cluster,
            "EKS add-on version compatibility",
            following,
            "WARNING" if wrong else "PASSING",
            f"Not compatible with {following}: {', '.join(wrong)}" if wrong else "Add-ons are compatible",
            {"addonCompatibilityDetails": details},
        ),
        _insight(
            cluster,
            "Kubelet version skew",
            following,
            "ERROR" if skewed else "PASSING",
            f"Nodes have kubelets {', '.join(skewed)}" if skewed else "Node kubelet versions match the skew policy",
            {},
        ),
    ]


def _insight(
    cluster: EksCluster, name: str, version: str, status: str, reason: str, summary: dict[str, Any]
) -> JsonObject:
    """Return an upgrade insight in the form of DescribeInsight."""
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{cluster.description['arn']}/{name}/{version}")),
        "name": name,
        "category": "UPGRADE_READINESS",
        "kubernetesVersion": version,
        "lastRefreshTime": now(),
        "lastTransitionTime": now(),
        "description": f"{name} (sandbox)",
        "insightStatus": {"status": status, "reason": reason},
        "recommendation": "",
        "additionalInfo": {},
        "resources": [],
        "categorySpecificSummary": summary,
    }


def _may_go_back(cluster: EksCluster, requested: str) -> bool:
    since = now() - timedelta(days=_ROLLBACK_DAYS)
    return any(
        update["type"] == "VersionUpdate" and update.get("from") == requested and update["createdAt"] > since
        for update in cluster.updates.values()
    )


def _minor(version: str) -> int:
    return int(version.split(".")[1])
