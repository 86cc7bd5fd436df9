"""Defaults that depend on other fields. All others stand beside their field as plain values.

They are filled into the raw mapping before validation, so that everything behind it reads complete values.
Shapes that validation will refuse are left alone here.
"""

import copy
from typing import Any

from .catalog import catalog

# Smallest SSD capacities in GiB by MB/s/TiB when EFA is on; 1,200 without. Source: FSx CreateFileSystem, 2026-10.
_EFA_STEP = {"125": 38400, "250": 19200, "500": 9600, "1000": 4800}


def _mapping(value: Any, key: str) -> dict[str, Any]:
    """The mapping under `key`, made when it is absent or empty; a throw-away one when something else stands there."""
    if not isinstance(value, dict):
        return {}
    if value.get(key) is None:
        value[key] = {}
    return value[key] if isinstance(value[key], dict) else {}


def _groups(data: dict[str, Any]) -> list[dict[str, Any]]:
    sections = (data.get("instance_groups"), data.get("restricted_instance_groups"))
    return [group for section in sections if isinstance(section, dict) for group in section.values()
            if isinstance(group, dict)]


def _has_efa(group: dict[str, Any]) -> bool:
    row = catalog().find(str(group.get("instance_type")))
    return bool(row and row.efa_interfaces)


def with_defaults(data: Any) -> Any:
    """The mapping of an environment file with every derived default filled in.

    Cluster name from the environment's; each group's zone from its training plan, else the first zone; file systems
    in the zone of the first EFA group, else the first zone; SSD capacity at the smallest legal step; deletion
    protection from `protection`.
    """
    if not isinstance(data, dict):
        return data
    data = copy.deepcopy(data)
    zones = data["network"].get("zones") if isinstance(data.get("network"), dict) else None
    zones = [zones] if isinstance(zones, str) else zones
    first_zone = zones[0] if isinstance(zones, list | tuple) and zones else None
    if data.get("name") is not None:
        _mapping(data, "cluster").setdefault("name", data["name"])
    if data.get("protection") in (None, "retain", "destroy"):
        eks = _mapping(_mapping(data, "cluster"), "eks")
        eks.setdefault("deletion_protection", data.get("protection") != "destroy")

    plans = data.get("training_plans")
    for group in _groups(data):
        capacity = group.get("capacity")
        plan = plans.get(capacity.get("training_plan")) if isinstance(plans, dict) and isinstance(capacity, dict) else None
        if not group.get("zones") and not group.get("subnet_ids"):
            zone = plan.get("zone") if isinstance(plan, dict) else None
            if (zone or first_zone) is not None:
                group.setdefault("zone", zone or first_zone)

    accelerated_zone = next((group["zone"] for group in _groups(data) if group.get("zone") and _has_efa(group)), first_zone)
    storage = data.get("storage")
    if not isinstance(storage, dict):
        return data
    extra = storage.get("additional_lustre")
    for lustre in [storage.get("lustre"), *(extra.values() if isinstance(extra, dict) else ())]:
        if isinstance(lustre, dict):
            _complete_lustre(lustre, accelerated_zone)
    home = storage.get("home")
    if isinstance(home, dict) and isinstance(_mapping(home, "openzfs"), dict) and first_zone is not None:
        _mapping(home, "openzfs").setdefault("zone", first_zone)
    return data


def _complete_lustre(lustre: dict[str, Any], zone: Any) -> None:
    if zone is not None:
        lustre.setdefault("zone", zone)
    if lustre.get("existing") is not None:
        return
    if lustre.get("type") == "intelligent_tiering":
        lustre.setdefault("throughput_capacity", 4000)
        lustre.setdefault("read_cache", {})
        lustre.setdefault("metadata_iops", 6000)
    elif str(lustre.get("efa", "false")).lower() in ("true", "yes", "on", "1"):
        lustre.setdefault("capacity_gib", _EFA_STEP.get(str(lustre.get("throughput", 250)), 19200))
    else:
        lustre.setdefault("capacity_gib", 1200)
