"""Defaults that depend on other fields. All others stand beside their field as plain values.

They are filled into the raw mapping before validation, so that everything behind it reads complete values.
Shapes that validation will refuse are left alone here.
"""

import copy
from typing import Any

from ..catalog.instance_type import InstanceType
from ..catalog.instance_types import catalog
from .storage import lustre_defaults


def with_defaults(data: Any) -> Any:
    """The mapping of an environment file with every derived default filled in.

    - Cluster: its name is the environment's, its zones are the first two of the network, its system group is `system`
      or else the first group by name without accelerators; deletion protection of EKS follows `protection`.
    - Slurm: groups called `controller` and `login` are that, all others compute in a partition of their own name; the
      system group is the controllers', and several controllers share the mount of the Lustre file system.
    - Governance: the engine is task governance on EKS once teams or priorities are given.
    - An environment with queues of training jobs may have no groups, and with these no cluster.
    - Each group's zone is that of its training plan, else the cluster's first.
    - File systems stand in the cluster's first zone too, whatever groups come and go, and an SSD file system has the
      smallest legal capacity.
    """
    if not isinstance(data, dict):
        return data
    # Whoever gave the mapping keeps it as it was.
    data = copy.deepcopy(data)
    if data.get("training_job_queues") or data.get("restricted_instance_groups"):
        _default(data, "instance_groups", {})
    _complete_cluster(data)
    governance = data.get("governance")
    no_cluster = data.get("instance_groups") == {} and not data.get("restricted_instance_groups")
    if no_cluster:
        _default(_mapping(data, "cluster"), "orchestrator", "none")
        _default(_mapping(data, "cluster"), "system_group", "system")
    elif isinstance(governance, dict) and _mapping(data, "cluster").get("orchestrator") != "slurm":
        _default(governance, "engine", "hyperpod" if governance.get("teams") or governance.get("priorities") else None)
    home_zone = next(iter(_texts(data["cluster"].get("zones"))), None) if isinstance(data["cluster"], dict) else None
    plans = _mapping(data, "training_plans") if data.get("training_plans") else {}
    for group in _groups(data):
        if not group.get("zones") and not group.get("subnet_ids"):
            plan = _mapping(plans, str(_plan_name(group))) if _plan_name(group) in plans else {}
            _default(group, "zone", plan.get("zone") or home_zone)
    _complete_storage(data.get("storage"), home_zone)
    return data


def _complete_cluster(data: dict[str, Any]) -> None:
    cluster = _mapping(data, "cluster")
    _default(cluster, "name", data.get("name"))
    _default(cluster, "zones", _texts(_mapping(data, "network").get("zones"))[:2] if data.get("network") else None)
    if data.get("restricted_instance_groups") and not data.get("instance_groups"):
        # All that restricted groups can, and nobody else's nodes are there for the system's pods.
        _default(cluster, "provisioning", "all_or_nothing")
        _default(cluster, "system_group", _system_group(data["restricted_instance_groups"]))
    if cluster.get("orchestrator") == "slurm":
        _complete_slurm(data, cluster)
        return
    _default(cluster, "system_group", _system_group(data.get("instance_groups")))
    if data.get("protection") in (None, "retain", "destroy"):
        _default(_mapping(cluster, "eks"), "deletion_protection", data.get("protection") != "destroy")


def _complete_slurm(data: dict[str, Any], cluster: dict[str, Any]) -> None:
    """Node types, partitions and the system group that follow from the names of the instance groups."""
    groups = data.get("instance_groups")
    several = False
    for name, group in groups.items() if isinstance(groups, dict) else ():
        if not isinstance(group, dict):
            continue
        part = _mapping(group, "slurm")
        _default(part, "node_type", name if name in ("controller", "login") else "compute")
        if part.get("node_type") == "compute":
            _default(part, "partition", name)
        if part.get("node_type") == "controller":
            _default(cluster, "system_group", name)
            # As text, since the file's scalars are not numbers yet.
            several |= str(group.get("count")) not in ("0", "1")
    _default(cluster, "system_group", _system_group(groups))
    lustre = data["storage"].get("lustre") if isinstance(data.get("storage"), dict) else None
    if several and isinstance(lustre, dict):
        _default(_mapping(cluster, "slurm"), "shared_directory", lustre.get("mount") or "/fsx")


def _complete_storage(storage: Any, home_zone: Any) -> None:
    if not isinstance(storage, dict):
        return
    more = storage.get("additional_lustre")
    for lustre in [storage.get("lustre"), *(more.values() if isinstance(more, dict) else ())]:
        if isinstance(lustre, dict):
            _complete_lustre(lustre, home_zone)
    if isinstance(storage.get("home"), dict):
        _default(_mapping(storage["home"], "openzfs"), "zone", home_zone)


def _complete_lustre(lustre: dict[str, Any], zone: Any) -> None:
    """Fill in what follows from the zone of the environment, and from the file system itself (see `storage.py`)."""
    _default(lustre, "zone", zone)
    lustre |= lustre_defaults(lustre)


def _default(mapping: dict[str, Any], key: str, value: Any) -> None:
    # An empty default would hide that a value is missing, which validation tells.
    if value not in (None, []) and mapping.get(key) is None:
        mapping[key] = value


def _mapping(value: Any, key: str) -> dict[str, Any]:
    """The mapping under `key`, made when it is absent or empty; a throw-away one when something else stands there."""
    if not isinstance(value, dict):
        return {}
    # `cluster:` without anything below it is null.
    if value.get(key) is None:
        value[key] = {}
    return value[key] if isinstance(value[key], dict) else {}


def _texts(value: Any) -> list[Any]:
    texts = [value] if isinstance(value, str) else value
    return list(texts) if isinstance(texts, list | tuple) else []


def _groups(data: dict[str, Any]) -> list[dict[str, Any]]:
    sections = (data.get("instance_groups"), data.get("restricted_instance_groups"))
    groups = [group for section in sections if isinstance(section, dict) for group in section.values()]
    return [group for group in groups if isinstance(group, dict)]


def _plan_name(group: dict[str, Any]) -> str | None:
    capacity = group.get("capacity")
    name = capacity.get("training_plan") if isinstance(capacity, dict) else None
    return name if isinstance(name, str) else None


def _row(group: Any) -> InstanceType | None:
    return catalog().find(str(group.get("instance_type"))) if isinstance(group, dict) else None


def _system_group(groups: Any) -> str | None:
    names = sorted(map(str, groups)) if isinstance(groups, dict) else []
    # By the catalog alone: types that the file itself describes are not known yet.
    plain = [name for name in names if (row := _row(groups.get(name))) and not row.accelerator_count]
    return "system" if "system" in names else next(iter([*plain, *names]), None)
