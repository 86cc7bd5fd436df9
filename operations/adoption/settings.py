"""What a running cluster is in the words of an environment file, as far as a file has words for it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.findings import Path
from ...config.settings.cluster import AUTOSCALING_EXAMPLE
from ...planning.cost.cost_tags import ENVIRONMENT_TAG
from .addons import PARTS, addon_settings
from .groups import instance_groups, restricted_groups
from .mapped import Mapped
from .quotas import governance
from .reading import RunningCluster, groups, restricted

_STRATEGIES: Final = {"Merge": "merge", "Managed": "managed", "Overwrite": "overwrite"}
_NO_ROLE: Final = "role/WRITE-A-CLUSTER-ADMINISTRATOR-HERE"


def environment_settings(running: RunningCluster, name: str) -> Mapped:
    """The settings of an environment called `name` that adopts what was found, and notes on what they leave out."""
    result = Mapped()
    cluster = running.cluster
    data = result.data
    data |= {"name": name, "account": running.account, "region": running.region}
    if tags := {key: value for key, value in running.tags.items() if not key.startswith(("aws:", ENVIRONMENT_TAG))}:
        data["tags"] = tags
    placed = _placed(running)
    data["network"] = _network(running, placed, result)
    if storage := _storage(running, result):
        data["storage"] = storage
    data["cluster"] = _cluster(running, name, placed, result)
    names = _plan_names(running)
    if names:
        data["training_plans"] = {plan: _plan(running, arn, result, plan) for arn, plan in names.items()}
    data["instance_groups"] = instance_groups(running, placed, names, result)
    if restricted(cluster):
        data["restricted_instance_groups"] = restricted_groups(running, placed, names, result)
    if running.eks is not None:
        if teams := governance(running, result):
            data["governance"] = teams
        if parts := _platform(running, result):
            data["platform"] = parts
        data["cluster"]["eks"] |= addon_settings(running, parts, result, governed="governance" in data)
    if owner := running.tags.get(ENVIRONMENT_TAG):
        result.note((), f"podwright deployed it as environment {owner}: its own file changes it, this one does not.")
    for gap in running.gaps:
        result.note((), f"Not read: {gap}" + (f"; {gap.action} is missing" if gap.action else ""))
    return result


def _placed(running: RunningCluster) -> dict[str, list[str]]:
    """The subnets of nodes by zone id: those of the cluster itself first, then as its groups name them."""
    placed: dict[str, list[str]] = {}
    named = list(running.cluster.get("VpcConfig", {}).get("Subnets", ()))
    for group in groups(running.cluster):
        named += group.get("OverrideVpcConfig", {}).get("Subnets", ())
    for subnet in dict.fromkeys(named):
        if subnet not in running.subnets:
            raise CommandError(f"{subnet} is in another VPC than the other nodes", "a file has one VPC for all nodes")
        placed.setdefault(running.subnets[subnet]["AvailabilityZoneId"], []).append(subnet)
    return placed


def _network(running: RunningCluster, placed: Mapping[str, Sequence[str]], result: Mapped) -> dict[str, Any]:
    """The VPC with the subnets and security groups that nodes are in."""
    vpc: dict[str, Any] = {"id": running.vpc["VpcId"], "cidr": running.vpc["CidrBlock"]}
    security_groups = security_groups_of(running)
    vpc["security_group"] = security_groups[0]
    controls = running.eks["resourcesVpcConfig"].get("subnetIds", ()) if running.eks else ()
    vpc["subnets"] = {}
    for zone, (first, *more) in sorted(placed.items()):
        subnets: dict[str, Any] = {"nodes": first, "nodes_cidr": running.subnets[first]["CidrBlock"]}
        own = [id for id in controls if running.subnets[id]["AvailabilityZoneId"] == zone and id not in (first, *more)]
        if own:
            subnets["control_plane"] = own[0]
        if more:
            subnets["more_nodes"] = {id: running.subnets[id]["CidrBlock"] for id in more}
        vpc["subnets"][zone] = subnets
    network: dict[str, Any] = {"zones": sorted(placed)}
    if further := security_groups[1:]:
        network["node_security_groups"] = list(further)
    network["vpc"] = vpc
    result.note(("network", "vpc"), "podwright makes no route, gateway or endpoint in it.")
    return network


def security_groups_of(running: RunningCluster) -> Sequence[str]:
    """Security groups of the nodes: those of the cluster, else of the first group that names any."""
    placements = [
        running.cluster.get("VpcConfig"),
        *(group.get("OverrideVpcConfig") for group in groups(running.cluster)),
    ]
    return next(each["SecurityGroupIds"] for each in placements if each)


def _storage(running: RunningCluster, result: Mapped) -> dict[str, Any]:
    """File systems that the cluster mounts, and the note on those that a file cannot adopt."""
    storage: dict[str, Any] = {}
    mounts = _mount_paths(running)
    for id, row in running.file_systems.items():
        zone = running.subnets[row["SubnetIds"][0]]["AvailabilityZoneId"]
        kind = row["FileSystemType"]
        if kind not in ("LUSTRE", "OPENZFS") or (kind == "OPENZFS" and "home" in storage):
            why = "a file has one of OpenZFS" if kind == "OPENZFS" else "a file adopts FSx for Lustre and OpenZFS only"
            result.note(("storage",), f"{kind} {id} is left out: {why}")
            continue
        security_groups = running.file_system_groups.get(id, ())
        if not security_groups:
            result.note(("storage",), f"{id} is left out: its security groups could not be read")
            continue
        if kind == "OPENZFS":
            storage["home"] = {"openzfs": _home(row, running, mounts, security_groups[0], result)}
            continue
        settings: dict[str, Any] = {"zone": zone, "mount": mounts.get(id, "/fsx")}
        if row["LustreConfiguration"].get("EfaEnabled"):
            settings["efa"] = True
        settings["existing"] = {
            "id": id,
            "mount_name": row["LustreConfiguration"]["MountName"],
            "security_group": security_groups[0],
        }
        if "lustre" not in storage:
            storage["lustre"] = settings
        else:
            path = settings["mount"]
            settings["mount"] = path if path != storage["lustre"]["mount"] else f"/{id}"
            storage.setdefault("additional_lustre", {})[id] = settings
        if id not in mounts:
            result.note(("storage",), f"Where nodes mount {id} is for its scripts to say: /fsx is the usual place")
    if running.others:
        what = f"In the VPC and named by no group and no script: {', '.join(running.others)}"
        result.note(("storage",) if storage else (), what)
    return storage


def _home(
    row: Mapping[str, Any], running: RunningCluster, mounts: Mapping[str, str], security_group: str, result: Mapped
) -> dict[str, Any]:
    """A file system of OpenZFS, whose preferred server says the zone; how it is made is said in a note."""
    id, config = row["FileSystemId"], row["OpenZFSConfiguration"]
    subnet = running.subnets[config.get("PreferredSubnetId") or row["SubnetIds"][0]]
    path: Path = ("storage", "home", "openzfs")
    if id not in mounts:
        result.note((*path, "mount"), f"Where nodes mount {id} is for its scripts to say: /home is the usual place")
    volume = config.get("RootVolumeId", "its root volume")
    facts = (
        f"{row['StorageCapacity']:,} GiB",
        config["DeploymentType"],
        f"{config['ThroughputCapacity']:,} MB/s",
        f"backups of {config.get('AutomaticBackupRetentionDays', 0)} days",
    )
    what = f"It stays as it was made: {', '.join(facts)}. podwright mounts {volume} at /fsx, and no other volume"
    result.note((*path, "existing"), what)
    return {
        "zone": subnet["AvailabilityZoneId"],
        "mount": mounts.get(id, "/home"),
        "existing": {"id": id, "security_group": security_group},
    }


def _mount_paths(running: RunningCluster) -> dict[str, str]:
    """Where HyperPod itself mounts file systems on the nodes, by their ids."""
    results: dict[str, str] = {}
    for group in groups(running.cluster):
        for each in group.get("InstanceStorageConfigs", ()):
            config = each.get("FsxLustreConfig") or each.get("FsxOpenZfsConfig") or {}
            if "MountPath" in config:
                results[config["DnsName"].partition(".")[0]] = config["MountPath"]
    return results


def _cluster(running: RunningCluster, name: str, placed: Mapping[str, Sequence[str]], result: Mapped) -> dict[str, Any]:
    """Settings of the cluster itself; what is podwright's default stays unsaid."""
    cluster = running.cluster
    settings: dict[str, Any] = {}
    if cluster["ClusterName"] != name:
        settings["name"] = cluster["ClusterName"]
    settings["zones"] = [home_zone(running, placed)]
    own = cluster.get("VpcConfig", {}).get("Subnets", ())
    if len(own) > 1:
        what = f"The cluster itself has the subnets {', '.join(own)}, and a file gives it the first one of its zone"
        result.note(("cluster", "zones"), what)
    if running.eks is None:
        settings["orchestrator"] = "slurm"
        settings["slurm"] = _slurm(running)
    else:
        settings["eks"] = _eks(running, result)
    if cluster.get("NodeRecovery") == "None":
        settings["node_recovery"] = "none"
    if cluster.get("NodeProvisioningMode") != "Continuous":
        settings["provisioning"] = "all_or_nothing"
    if "AutoScaling" in cluster:
        if cluster["AutoScaling"]["Mode"] == "Enable":
            what = "Karpenter is on; `kubectl get hyperpodnodeclasses,nodepools -o yaml` shows which groups and limits"
            result.note(("cluster", "zones"), f"{what} `autoscaling: {AUTOSCALING_EXAMPLE}` has to name")
        else:
            settings["autoscaling"] = "off"
    if tiered := cluster.get("TieredStorageConfig"):
        percent = tiered.get("InstanceMemoryAllocationPercentage")
        memory = {"memory_percent": percent} if percent else {}
        settings["tiered_checkpoints"] = memory if tiered["Mode"] == "Enable" else "off"
    if shared := cluster.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig"):
        settings["restricted_environment"] = _shared(shared)
    return settings


def home_zone(running: RunningCluster, placed: Mapping[str, Sequence[str]]) -> str:
    """The zone of the cluster's own first subnet."""
    own = running.cluster.get("VpcConfig", {}).get("Subnets", ())
    return running.subnets[own[0]]["AvailabilityZoneId"] if own else min(placed)


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that restricted groups share."""
    settings: dict[str, Any] = {}
    if lustre := config.get("DesiredFSxLustreConfig"):
        settings["lustre"] = {"capacity_gib": lustre["SizeInGiB"], "throughput": lustre["PerUnitStorageThroughput"]}
    if policy := config.get("DesiredFSxLustreDeletionPolicy"):
        settings["lustre_deletion"] = {"Keep": "keep", "DeleteIfNotUsed": "delete_if_not_used"}[policy]
    return settings


def _slurm(running: RunningCluster) -> dict[str, Any]:
    by_api = running.cluster.get("Orchestrator", {}).get("Slurm")
    if by_api is None:
        return {"configuration": "provisioning_parameters"}
    settings: dict[str, Any] = {"configuration": "api"}
    if strategy := by_api.get("SlurmConfigStrategy"):
        settings["strategy"] = _STRATEGIES[strategy]
    if database := by_api.get("AccountingDatabase"):
        existing = {"endpoint": database["Endpoint"], "port": database["Port"], "secret": database["SecretArn"]}
        settings["accounting"] = {"name": database["Name"], "existing": existing}
    return settings


def _eks(running: RunningCluster, result: Mapped) -> dict[str, Any]:
    """The EKS cluster that it runs on, with a role that charts can be applied with."""
    eks = running.eks or {}
    path: Path = ("cluster", "eks", "existing")
    role = next(iter(running.administrators), f"arn:aws:iam::{running.account}:{_NO_ROLE}")
    if not running.administrators:
        result.note((*path, "kubectl_role"), "No role with AmazonEKSClusterAdminPolicy was seen: write one here")
    else:
        result.note((*path, "kubectl_role"), "Administers the cluster; Lambda has to be able to assume it as well")
    existing: dict[str, Any] = {
        "name": eks["name"],
        "security_group": eks["resourcesVpcConfig"]["clusterSecurityGroupId"],
        "authentication": eks.get("accessConfig", {}).get("authenticationMode", "API"),
        "kubectl_role": role,
        "node_rules": _open_to_each_other(running, eks["resourcesVpcConfig"]["clusterSecurityGroupId"]),
        "dependencies_installed": True,
    }
    if existing["authentication"] == "CONFIG_MAP":
        existing["authentication"] = "API_AND_CONFIG_MAP"
        result.note((*path, "authentication"), "It is CONFIG_MAP today: `aws eks update-cluster-config` first")
    what = "HyperPod's chart is what a running cluster was made with; who installed it keeps it"
    result.note((*path, "dependencies_installed"), what)
    return {"version": eks["version"], "existing": existing}


def _open_to_each_other(running: RunningCluster, eks_group: str) -> bool:
    """Whether the security groups of nodes and of the EKS cluster have rules for each other, in both directions."""
    nodes = set(security_groups_of(running))
    if eks_group in nodes:
        return True
    ingress = {
        (row["GroupId"], row.get("ReferencedGroupInfo", {}).get("GroupId"))
        for row in running.rules
        if not row["IsEgress"]
    }
    return any({(eks_group, group), (group, eks_group)} <= ingress for group in nodes)


def _platform(running: RunningCluster, result: Mapped) -> dict[str, Any]:
    """Parts that jobs in a file need and that come as EKS add-ons."""
    parts = {part: {} for addon, part in PARTS.items() if addon in running.addons}
    if "training_operator" in parts and "cert_manager" not in parts:
        result.note(("platform",), "Certificates of the training operator come from a cert-manager of another source")
        parts["cert_manager"] = {}
    return parts


def _plan_names(running: RunningCluster) -> dict[str, str]:
    """Training plans that groups use, by ARN: each under its own name."""
    arns = dict.fromkeys(group["TrainingPlanArn"] for group in groups(running.cluster) if "TrainingPlanArn" in group)
    return {arn: arn.rpartition("/")[2] for arn in arns}


def _plan(running: RunningCluster, arn: str, result: Mapped, name: str) -> dict[str, Any]:
    """A plan with the zone of its capacity; that of the first group where the plan could not be read."""
    settings: dict[str, Any] = {"arn": arn}
    answer = running.plans.get(arn, {})
    parts = answer.get("ReservedCapacitySummaries", ())
    zone = next((part["AvailabilityZoneId"] for part in parts if part.get("AvailabilityZoneId")), None)
    if zone is None:
        group = next(group for group in groups(running.cluster) if group.get("TrainingPlanArn") == arn)
        where = group.get("OverrideVpcConfig") or running.cluster["VpcConfig"]
        zone = running.subnets[where["Subnets"][0]]["AvailabilityZoneId"]
        result.note(("training_plans", name, "zone"), "Of its first group's subnet: the plan itself was not read")
    settings["zone"] = zone
    for field, key in (("start", "StartTime"), ("end", "EndTime")):
        if key in answer:
            settings[field] = f"{answer[key]:%Y-%m-%dT%H:%MZ}"
    if fee := answer.get("UpfrontFee"):
        settings["paid_usd"] = round(float(fee))
    return settings
