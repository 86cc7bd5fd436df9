"""Instance groups of DescribeCluster's answer in the words of an environment file."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .mapped import Mapped
from .reading import RunningCluster, ordinary, restricted

_CHECKS: Final = {"InstanceStress": "stress", "InstanceConnectivity": "connectivity"}
_PATCHING: Final = {"WhenIdle": "when_idle", "WhenAllIdle": "when_all_idle"}
_NODE_TYPES: Final = {"Controller": "controller", "Login": "login", "Compute": "compute"}
# The keys of provisioning_parameters.json, as AWS's own scripts read them.
_ROLES: Final = {"controller_group": "controller", "login_group": "login"}


def instance_groups(
    running: RunningCluster, placed: Mapping[str, Sequence[str]], plans: Mapping[str, str], result: Mapped
) -> dict[str, Any]:
    """The ordinary groups by name. `placed` are the subnets of nodes by zone, `plans` the names of training plans."""
    settings = dict[str, Any]()
    for group in sorted(ordinary(running.cluster), key=lambda group: group["InstanceGroupName"]):
        name = group["InstanceGroupName"]
        path = ("instance_groups", name)
        each = _common(running, group, placed, plans, result, path)
        _types(group, each)
        if "MinCount" in group:
            each["min_count"] = group["MinCount"]
        if "InterfaceType" in group.get("NetworkInterface", {}):
            each["network_interface"] = group["NetworkInterface"]["InterfaceType"]
        kubernetes = group.get("KubernetesConfig", {})
        if labels := kubernetes.get("DesiredLabels"):
            each["labels"] = dict(sorted(labels.items()))
        if taints := kubernetes.get("DesiredTaints"):
            each["taints"] = list(map(_taint, taints))
        _mounts(group, each)
        if (image := group.get("DesiredImageId", "default")) != "default":
            each["image_id"] = image
        _updates(group, each, result, path)
        each["lifecycle"] = _lifecycle(group.get("LifeCycleConfig", {}))
        if not each["lifecycle"]:
            del each["lifecycle"]
            result.note(path, "It has no lifecycle scripts, and podwright would publish its own")
        if running.eks is None and (slurm := _slurm(running, group)):
            each["slurm"] = slurm
        settings[name] = each
    return settings


def _taint(taint: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in taint.items()}


def restricted_groups(
    running: RunningCluster, placed: Mapping[str, Sequence[str]], plans: Mapping[str, str], result: Mapped
) -> dict[str, Any]:
    """The restricted groups by name."""
    settings = dict[str, Any]()
    for group in sorted(restricted(running.cluster), key=lambda group: group["InstanceGroupName"]):
        name = group["InstanceGroupName"]
        each = _common(running, group, placed, plans, result, ("restricted_instance_groups", name))
        _types(group, each)
        config = group.get("EnvironmentConfig", {})
        if lustre := config.get("FSxLustreConfig"):
            each["lustre"] = {"capacity_gib": lustre["SizeInGiB"], "throughput": lustre["PerUnitStorageThroughput"]}
        if config.get("S3OutputPath"):
            each["output"] = config["S3OutputPath"]
        settings[name] = each
    return settings


def _common(
    running: RunningCluster,
    group: Mapping[str, Any],
    placed: Mapping[str, Sequence[str]],
    plans: Mapping[str, str],
    result: Mapped,
    path: tuple[str, str],
) -> dict[str, Any]:
    """What both kinds of groups have."""
    count = group.get("TargetCount", group.get("CurrentCount", 0))
    settings: dict[str, Any] = {"instance_type": group.get("InstanceType"), "count": count}
    settings |= _placement(running, group, placed)
    present = (running.nodes or {}).get(path[1], count)
    if present != count:
        result.note(path, f"{present} of its nodes are there now")
    if arn := group.get("TrainingPlanArn"):
        settings["capacity"] = {"training_plan": plans[arn]}
    elif "Spot" in group.get("CapacityRequirements", {}):
        settings["capacity"] = "spot"
    settings["role"] = group["ExecutionRole"]
    if "ThreadsPerCore" in group:
        settings["threads_per_core"] = group["ThreadsPerCore"]
    checks = group.get("OnStartDeepHealthChecks", ())
    if known := [_CHECKS[check] for check in checks if check in _CHECKS]:
        settings["deep_health_checks"] = known
    if unknown := [check for check in checks if check not in _CHECKS]:
        result.note(path, f"Left out of deep_health_checks: {', '.join(unknown)}; CloudFormation has no word for it")
    if volumes := _volumes(group, root=False):
        settings["volumes"] = [
            {"size_gib": volume["VolumeSizeInGB"]}
            | ({"kms_key": volume["VolumeKmsKeyId"]} if "VolumeKmsKeyId" in volume else {})
            for volume in volumes
        ]
    return settings


def _types(group: Mapping[str, Any], settings: dict[str, Any]) -> None:
    """One type, or several in order of preference."""
    if "InstanceRequirements" in group:
        del settings["instance_type"]
        settings["instance_types"] = list(group["InstanceRequirements"]["DesiredInstanceTypes"])


def _placement(
    running: RunningCluster, group: Mapping[str, Any], placed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The zone or zones whose subnets it has; the subnets themselves where they are only some of a zone's."""
    subnets = (group.get("OverrideVpcConfig") or running.cluster["VpcConfig"])["Subnets"]
    zones = sorted({running.subnets[subnet]["AvailabilityZoneId"] for subnet in subnets})
    if set(subnets) != {subnet for zone in zones for subnet in placed[zone]}:
        return {"subnet_ids": list(subnets)}
    return {"zone": zones[0]} if len(zones) == 1 else {"zones": zones}


def _volumes(group: Mapping[str, Any], *, root: bool) -> list[Mapping[str, Any]]:
    volumes = [each["EbsVolumeConfig"] for each in group.get("InstanceStorageConfigs", ()) if "EbsVolumeConfig" in each]
    return [volume for volume in volumes if bool(volume.get("RootVolume")) == root]


def _mounts(group: Mapping[str, Any], settings: dict[str, Any]) -> None:
    """The root volume's key, and the file systems that HyperPod mounts."""
    for volume in _volumes(group, root=True):
        if "VolumeKmsKeyId" in volume:
            settings["root_kms_key"] = volume["VolumeKmsKeyId"]
    if any("FsxLustreConfig" in each for each in group.get("InstanceStorageConfigs", ())):
        settings["mount_lustre"] = True


def _updates(group: Mapping[str, Any], settings: dict[str, Any], result: Mapped, path: tuple[str, str]) -> None:
    """Patching and updates on a schedule."""
    if patching := group.get("AutoPatchConfig"):
        strategy = _PATCHING.get(patching.get("PatchingStrategy", ""))
        if strategy:
            settings["patching"] = {"strategy": strategy, **_rollout(patching.get("DeploymentConfig", {}))}
        else:
            what = f"Left out: patching by {patching.get('PatchingStrategy')}, which CloudFormation has no word for"
            result.note(path, what)
    if update := group.get("ScheduledUpdateConfig"):
        rollout = _rollout(update.get("DeploymentConfig", {}))
        settings["scheduled_update"] = {"schedule": update["ScheduleExpression"], **rollout}


def _rollout(config: Mapping[str, Any]) -> dict[str, Any]:
    """How an update moves over the nodes; what AWS does not say stays podwright's default."""
    policy = config.get("RollingUpdatePolicy", {})
    settings: dict[str, Any] = {}
    for field, key in (("batch", "MaximumBatchSize"), ("rollback_batch", "RollbackMaximumBatchSize")):
        if size := policy.get(key):
            settings[field] = f"{size['Value']}{'%' if size['Type'] == 'CAPACITY_PERCENTAGE' else ''}"
    if "WaitIntervalInSeconds" in config:
        settings["wait_seconds"] = config["WaitIntervalInSeconds"]
    if alarms := config.get("AutoRollbackConfiguration"):
        settings["rollback_alarms"] = [alarm["AlarmName"] for alarm in alarms]
    return settings


def _lifecycle(config: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"source": "SourceS3Uri", "on_create": "OnCreate", "on_init_complete": "OnInitComplete"}
    return {field: config[key] for field, key in fields.items() if config.get(key)}


def _slurm(running: RunningCluster, group: Mapping[str, Any]) -> dict[str, Any]:
    """What its nodes are to Slurm: by the API, else by the file beside its scripts."""
    if config := group.get("SlurmConfig"):
        partition = next(iter(config.get("PartitionNames", ())), None)
        return {"node_type": _NODE_TYPES[config["NodeType"]]} | ({"partition": partition} if partition else {})
    name, parameters = group["InstanceGroupName"], running.slurm or {}
    for key, node_type in _ROLES.items():
        if parameters.get(key) == name:
            return {"node_type": node_type}
    for worker in parameters.get("worker_groups", ()):
        if worker.get("instance_group_name") == name:
            return {"node_type": "compute", "partition": worker.get("partition_name", name)}
    return {}
