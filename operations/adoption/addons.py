"""Settings of EKS add-ons in the words of an environment file, as far as it has words for them."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import yaml

from ...config.findings import Path
from ...config.settings.platform import CERT_MANAGER, TRAINING_OPERATOR
from ...planning.kubernetes.addons import GOVERNANCE_ADDONS
from .mapped import Mapped
from .reading import RunningCluster

PARTS: Final = {CERT_MANAGER: "cert_manager", TRAINING_OPERATOR: "training_operator"}
"""Parts of `platform` that are add-ons, by the add-on."""
_EXISTING: Final[Path] = ("cluster", "eks", "existing")


def addon_settings(
    running: RunningCluster, parts: Collection[str], result: Mapped, *, governed: bool
) -> dict[str, Any]:
    """Versions and configuration of those add-ons that a deployment of the file would install as well.

    Every other one stays with who made the cluster: a note says what it is set to.

    Args:
        running: The cluster.
        parts: The parts of `platform` that the file has.
        result: Takes the notes.
        governed: Whether the file has task governance.
    """
    installed = {*(GOVERNANCE_ADDONS if governed else ()), *(addon for addon, part in PARTS.items() if part in parts)}
    versions, configurations = dict[str, str](), dict[str, str]()
    for name, addon in sorted(running.addons.items()):
        if name not in installed:
            result.note(_EXISTING, f"It keeps add-on {' '.join([name, *_words(addon)])}")
            continue
        if version := addon.get("addonVersion"):
            versions[name] = version
        if values := values_of(addon.get("configurationValues")):
            configurations[name] = json.dumps(values)
        if unsaid := _permissions(addon):
            result.note(("cluster", "eks", "version"), f"A file has no word for {', '.join(unsaid)} of add-on {name}")
    settings = {"addons": versions, "addon_configurations": configurations}
    return {key: value for key, value in settings.items() if value}


def values_of(text: str | None) -> dict[str, Any]:
    """Configuration values of an add-on, which EKS takes as JSON or YAML text; empty without any."""
    return yaml.safe_load(text or "{}") or {}


def _words(addon: Mapping[str, Any]) -> list[str]:
    """Version, configuration and permissions of an add-on in words."""
    words = [addon["addonVersion"]] if "addonVersion" in addon else []
    if values := values_of(addon.get("configurationValues")):
        words.append(f"with {json.dumps(values)}")
    permissions = _permissions(addon)
    return [*words, f"and {', '.join(permissions)}"] if permissions else words


def _permissions(addon: Mapping[str, Any]) -> list[str]:
    """The roles of an add-on's service accounts, in words."""
    role, identities = addon.get("serviceAccountRoleArn"), addon.get("podIdentityAssociations", ())
    return [*([f"role {role}"] if role else []), *(f"pod identity {arn.rpartition('/')[2]}" for arn in identities)]
