"""Versions of Kubernetes and add-ons in EKS, from podwright's data."""

from datetime import UTC, datetime

from ...config.catalog.eks_versions import eks_versions
from ...planning.kubernetes.addons import NODE_ADDONS, PLATFORM_ADDONS, WORKLOAD_ADDONS, addon_pins
from ..protocol.json_objects import JsonObject

# Only EKS lists the versions of these; this one represents all.
_SOME_VERSION = "v1.0.0-eksbuild.1"


def cluster_versions(timestamp: datetime) -> list[JsonObject]:
    """Return the Kubernetes versions with an announced end of support, newest first."""
    result = list[JsonObject]()
    for row in eks_versions().values():
        if row.standard_until and row.extended_until and _day(row.extended_until) > timestamp:
            status = "STANDARD_SUPPORT" if _day(row.standard_until) > timestamp else "EXTENDED_SUPPORT"
            result.append(
                {
                    "clusterVersion": row.version,
                    "clusterType": "eks",
                    "endOfStandardSupportDate": _day(row.standard_until),
                    "endOfExtendedSupportDate": _day(row.extended_until),
                    "status": status.lower(),
                    "versionStatus": status,
                }
            )
    return result[::-1]


def addons(name: str | None, kubernetes: str | None) -> list[JsonObject]:
    """Return add-ons with their versions for a Kubernetes version, or for all versions."""
    versions = [kubernetes] if kubernetes else list(eks_versions())
    pins = {(pin.addon, pin.kubernetes): pin.version for pin in addon_pins()}
    known = {pin.addon for pin in addon_pins()}
    result = list[JsonObject]()
    # No list of all add-ons is published, so any named add-on exists here.
    for addon in sorted({*NODE_ADDONS, *WORKLOAD_ADDONS, *PLATFORM_ADDONS, *known, *([name] if name else [])}):
        compatible: dict[str, list[JsonObject]] = {}
        for version in versions:
            if existing := pins.get((addon, version)) if addon in known else _SOME_VERSION:
                compatible.setdefault(existing, []).append({"clusterVersion": version, "defaultVersion": True})
        if name in (None, addon) and compatible:
            result.append(
                {
                    "addonName": addon,
                    "addonVersions": [
                        {"addonVersion": version, "architecture": ["amd64", "arm64"], "compatibilities": clusters}
                        for version, clusters in compatible.items()
                    ],
                }
            )
    return result


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
