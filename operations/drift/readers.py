"""What AWS says that resources are now, in the words of their templates. One reader for each type that matters.

CloudFormation's own drift detection knows neither counts that Karpenter sets nor quotas that SageMaker fills in, and
takes minutes a stack. These calls only read.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..aws.account import Account
from ..aws.calls import find

Live = Mapping[str, Any]
Reader = Callable[[Account, str], Live | None]
"""Gives the properties of the resource with that physical id; None when it is gone."""

# Each service has its own word for it.
_ABSENT: Final = ("ResourceNotFound", "ResourceNotFoundException", "FileSystemNotFound")
_SAME_IN_GROUPS: Final = (
    *("InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore"),
    *("OnStartDeepHealthChecks", "OverrideVpcConfig", "TrainingPlanArn", "SlurmConfig", "NetworkInterface"),
    *("CapacityRequirements", "InstanceStorageConfigs"),
)
_LUSTRE: Final = (
    *("DataCompressionType", "DeploymentType", "EfaEnabled", "MetadataConfiguration", "PerUnitStorageThroughput"),
    *("ThroughputCapacity", "WeeklyMaintenanceStartTime", "AutomaticBackupRetentionDays"),
)
_OPENZFS: Final = ("DeploymentType", "ThroughputCapacity", "AutomaticBackupRetentionDays")


def _cluster(account: Account, name: str) -> Live | None:
    result = find(account, "sagemaker", "describe_cluster", _ABSENT, ClusterName=name)
    return None if result is None else cluster_properties(result)


def cluster_properties(result: Mapping[str, Any]) -> Live:
    """DescribeCluster's answer as a template has it."""
    # What both call the same; the rest follows.
    same = (
        *("ClusterName", "NodeRecovery", "NodeProvisioningMode", "TieredStorageConfig", "VpcConfig", "ClusterRole"),
        *("Orchestrator",),
    )
    live: dict[str, Any] = {key: result[key] for key in same if key in result}
    live["InstanceGroups"] = [_group(group) for group in result.get("InstanceGroups", ())]
    live["RestrictedInstanceGroups"] = [_group(group) for group in result.get("RestrictedInstanceGroups", ())]
    if "AutoScaling" in result:
        scaling = result["AutoScaling"]
        live["AutoScaling"] = {key: scaling[key] for key in ("Mode", "AutoScalerType") if key in scaling}
    return live


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    """An instance group as a template has it: what HyperPod is to reach, not what nodes have meanwhile."""
    live: dict[str, Any] = {key: group[key] for key in _SAME_IN_GROUPS if key in group}
    live["InstanceCount"] = group.get("TargetCount", group.get("CurrentCount"))
    if "MinCount" in group:
        live["MinInstanceCount"] = group["MinCount"]
    if "InstanceRequirements" in group:
        live["InstanceRequirements"] = {"InstanceTypes": group["InstanceRequirements"]["DesiredInstanceTypes"]}
    if version := group.get("DesiredImageReleaseVersion"):
        live["ImageReleaseVersion"] = version
    if image := group.get("DesiredImageId"):
        live["ImageId"] = image
    kubernetes = group.get("KubernetesConfig", {})
    # Desired and not current: nodes get labels one after another.
    live["KubernetesConfig"] = {
        "Labels": kubernetes.get("DesiredLabels", {}),
        "Taints": kubernetes.get("DesiredTaints", []),
    }
    for name, key in (("AutoPatchConfig", "PatchingStrategy"), ("ScheduledUpdateConfig", "ScheduleExpression")):
        if name in group:
            live[name] = {each: group[name][each] for each in (key, "DeploymentConfig") if each in group[name]}
    if "EnvironmentConfig" in group:
        config = group["EnvironmentConfig"]
        live["EnvironmentConfig"] = {key: config[key] for key in ("FSxLustreConfig",) if key in config}
    return live


def _by_id(operation: str, parameter: str, keys: tuple[str, ...]) -> Reader:
    """A reader of what SageMaker describes by the last part of an ARN."""

    def read(account: Account, arn: str) -> Live | None:
        # The call takes an id, and the physical id is an ARN.
        result = find(account, "sagemaker", operation, _ABSENT, **{parameter: arn.rpartition("/")[2]})
        return None if result is None else {key: result[key] for key in keys if key in result}

    return read


def _eks_cluster(account: Account, name: str) -> Live | None:
    """Version, endpoints and protection of a control plane; None where there is none of that name."""
    answer = find(account, "eks", "describe_cluster", _ABSENT, name=name)
    if answer is None:
        return None
    cluster = answer["cluster"]
    vpc = cluster["resourcesVpcConfig"]
    live: dict[str, Any] = {
        "Version": cluster["version"],
        "ResourcesVpcConfig": {
            "EndpointPrivateAccess": vpc["endpointPrivateAccess"],
            "EndpointPublicAccess": vpc["endpointPublicAccess"],
        },
    }
    if "deletionProtection" in cluster:
        live["DeletionProtection"] = cluster["deletionProtection"]
    return live


def _addon(account: Account, identifier: str) -> Live | None:
    # CloudFormation's physical id of an add-on: cluster and name with a bar between.
    cluster, _, name = identifier.partition("|")
    answer = find(account, "eks", "describe_addon", _ABSENT, clusterName=cluster, addonName=name)
    if answer is None:
        return None
    addon = answer["addon"]
    live: dict[str, Any] = {"AddonVersion": addon["addonVersion"]} if "addonVersion" in addon else {}
    if text := addon.get("configurationValues"):
        # Compared as values: a service may write the same JSON otherwise.
        live["ConfigurationValues"] = json.loads(text)
    return live


def _file_system(account: Account, identifier: str) -> Live | None:
    answer = find(account, "fsx", "describe_file_systems", _ABSENT, FileSystemIds=[identifier])
    if answer is None:
        return None
    result = answer["FileSystems"][0]
    # FSx writes it so; CloudFormation's property has another word for the same.
    live: dict[str, Any] = {key: result[key] for key in ("StorageCapacity", "StorageType") if key in result}
    live |= {"FileSystemTypeVersion": result["FileSystemTypeVersion"]} if "FileSystemTypeVersion" in result else {}
    for name, keys in (("LustreConfiguration", _LUSTRE), ("OpenZFSConfiguration", _OPENZFS)):
        if name in result:
            live[name] = {key: result[name][key] for key in keys if key in result[name]}
    return live


def asked(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a template in the form in which readers give them: JSON within text as what it says."""
    text = properties.get("ConfigurationValues")
    return {**properties, **({"ConfigurationValues": json.loads(text)} if isinstance(text, str) else {})}


READERS: Final[Mapping[str, Reader]] = {
    "AWS::SageMaker::Cluster": _cluster,
    "AWS::SageMaker::ComputeQuota": _by_id(
        "describe_compute_quota",
        "ComputeQuotaId",
        ("Name", "ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState", "Description"),
    ),
    "AWS::SageMaker::ClusterSchedulerConfig": _by_id(
        "describe_cluster_scheduler_config", "ClusterSchedulerConfigId", ("Name", "SchedulerConfig", "Description")
    ),
    "AWS::EKS::Cluster": _eks_cluster,
    "AWS::EKS::Addon": _addon,
    "AWS::FSx::FileSystem": _file_system,
}
