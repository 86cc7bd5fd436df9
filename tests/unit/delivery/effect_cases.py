"""Pairs of templates, each a reviewed template and an edit of it, with what the edit does.

Expected is written from the documentation of the services, case by case, and not from podwright's table; each case says
in a line what that documentation says. The reviewed templates are the snapshots, so nothing is synthesized.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SNAPSHOTS = Path(__file__).parents[2] / "snapshot" / "templates"
ORDER = (
    *("network", "storage", "capacity", "eks", "cluster", "platform", "governance", "access"),
    *("observability", "grafana"),
)
Templates = dict[str, dict[str, Any]]
Edit = Callable[[Templates], object]


@dataclass(frozen=True)
class Case:
    """An edit, and what it does."""

    name: str
    fact: str
    edit: Edit
    touches: set[str]
    """`kind action effect` of whatever is touched, by the edit or by what follows from it."""
    needs: set[str] = field(default_factory=set)
    """Approvals: id and name."""
    restarts: set[str] = field(default_factory=set)
    """Groups whose nodes are renewed or go."""
    at_risk: set[str] = field(default_factory=set)
    """What holds data that goes, or that nothing uses any more."""
    environment: str = "prod"


@cache
def _text(environment: str) -> str:
    files = {stack: SNAPSHOTS / environment / f"{stack}.json" for stack in ORDER}
    actual = {f"{environment}-{stack}": json.loads(file.read_text()) for stack, file in files.items() if file.exists()}
    return json.dumps(actual)


def reviewed(environment: str) -> Templates:
    """The reviewed templates of an environment by stack, in the order of deployment; nested ones are left out."""
    return json.loads(_text(environment))


def edited(case: Case) -> Templates:
    """The templates after the edit."""
    templates = reviewed(case.environment)
    case.edit(templates)
    return templates


def find(templates: Templates, name: str) -> tuple[dict[str, Any], str]:
    """The only resource whose id begins so: the resources of its stack, and its id."""
    actual = [
        (template["Resources"], key)
        for template in templates.values()
        for key in template["Resources"]
        if key.rstrip("0123456789ABCDEF") == name
    ]
    assert len(actual) == 1, (name, [key for _, key in actual])
    return actual[0]


def resource(templates: Templates, name: str) -> dict[str, Any]:
    resources, key = find(templates, name)
    return resources[key]


def at(templates: Templates, path: str) -> Any:
    """The value at `Resource/Property/…`; items of lists go by number or by the name of an instance group."""
    name, *way = path.split("/")
    value = resource(templates, name)["Properties"]
    for part in way:
        if isinstance(value, list):
            named = [item for item in value if isinstance(item, dict) and item.get("InstanceGroupName") == part]
            value = named[0] if named else value[int(part)]
        else:
            value = value.setdefault(part, {})
    return value


def put(path: str, value: Any) -> Edit:
    """Set a property."""
    parent, _, key = path.rpartition("/")
    return lambda templates: at(templates, parent).__setitem__(key, value)


def put_group(group: str, key: str, value: Any) -> Edit:
    """Set a property of an instance group."""
    return put(f"Cluster/InstanceGroups/{group}/{key}", value)


def drop(*names: str) -> Edit:
    """Remove resources."""

    def edit(templates: Templates) -> None:
        for name in names:
            resources, key = find(templates, name)
            del resources[key]

    return edit


def both(*edits: Edit) -> Edit:
    return lambda templates: [edit(templates) for edit in edits]


def for_good(name: str) -> Edit:
    """Take the protection of a resource away."""
    return lambda templates: resource(templates, name).update(DeletionPolicy="Delete", UpdateReplacePolicy="Delete")


def unprotected(templates: Templates) -> Templates:
    """Templates before an edit, in which no file system and no bucket is retained."""
    for template in templates.values():
        for item in template["Resources"].values():
            if item["Type"] in ("AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key"):
                item.update(DeletionPolicy="Delete", UpdateReplacePolicy="Delete")
    return templates


def another_group(templates: Templates) -> None:
    groups = at(templates, "Cluster/InstanceGroups")
    groups.insert(0, at(templates, "Cluster/InstanceGroups/burst") | {"InstanceGroupName": "another"})


def without_burst(templates: Templates) -> None:
    at(templates, "Cluster/InstanceGroups").remove(at(templates, "Cluster/InstanceGroups/burst"))


def reordered(templates: Templates) -> None:
    at(templates, "Cluster/InstanceGroups").reverse()
    at(templates, "Cluster/Tags").reverse()
    for template in templates.values():
        template["Resources"] = dict(reversed(template["Resources"].items()))


def bought(templates: Templates) -> None:
    plan = at(templates, "Plansh200q1Plan")
    del plan["Arn"]
    plan["Request"] = {"InstanceType": "ml.p5en.48xlarge", "InstanceCount": "16", "MaxUpfrontUsd": "900000"}


def new_role(templates: Templates) -> None:
    templates["prod-cluster"]["Resources"]["NewRole"] = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": {"Statement": []}},
    }


C, L = "cluster/ClusterEB0386A7", "storage/Lustrelustre6B43295E"
VOLUME = "governance/IsolationPersistentVolumepodwrightlustrerootDC449D6F"
FOLLOWS_LUSTRE = {
    "DataRepositoryAssociation replace replaces",
    "PodwrightLifecycle update later_nodes",
    "Cluster update later_nodes",
    "AWSCDK-EKS-KubernetesResource update refused",
    "Dashboard update in_place",
    "Alarm update in_place",
}
REPLACED_CLUSTER = {
    "Cluster replace replaces",
    "ComputeQuota replace replaces",
    "ClusterSchedulerConfig replace replaces",
    "Policy update in_place",
    "Dashboard update in_place",
    "Rule update in_place",
    "PodwrightNamespacesReady update in_place",
    "PodwrightServiceLogs update in_place",
}
CASES = [
    Case("nothing", "Equal templates change nothing.", lambda _: None, set()),
    Case("order", "Groups, tags and resources are known by their names.", reordered, set()),
    Case("tags", "Tags are set without interruption.", put("Cluster/Tags/0/Value", "x"), {"Cluster update in_place"}),
    Case("a role", "A new role touches nothing that is there.", new_role, {"Role create in_place"}),
    Case(
        "more nodes",
        "UpdateCluster raises a count by adding nodes.",
        put_group("h200", "InstanceCount", 20),
        {"Cluster update adds_nodes"},
    ),
    Case(
        "fewer nodes",
        "Scaling down terminates nodes that HyperPod chooses.",
        put_group("h200", "InstanceCount", 8),
        {"Cluster update removes_nodes"},
        {"CHG004 h200"},
        {"h200"},
    ),
    Case("new group", "UpdateCluster adds a group.", another_group, {"Cluster update adds_nodes"}),
    Case(
        "group gone",
        "Deleting a group terminates its nodes.",
        without_burst,
        {"Cluster update removes_nodes"},
        {"CHG004 burst"},
        {"burst"},
    ),
    Case(
        "image release",
        "The handler calls UpdateClusterSoftware: each node gets a fresh root volume.",
        put_group("h200", "ImageReleaseVersion", "1.2.3"),
        {"Cluster update rolls_nodes"},
        {f"CHG005 {C}"},
        {"h200"},
    ),
    Case(
        "scripts of a group",
        "UpdateCluster runs lifecycle scripts for new nodes only.",
        put_group("burst", "LifeCycleConfig", {"OnCreate": "a.sh", "SourceS3Uri": "s3://sagemaker-x/y"}),
        {"Cluster update later_nodes"},
    ),
    Case(
        "published scripts",
        "Published scripts get a prefix of their own, which every group names.",
        put("Lifecycle/AssetKey", "other.zip"),
        {"PodwrightLifecycle update later_nodes", "Cluster update later_nodes"},
    ),
    Case(
        "instance type",
        "UpdateCluster takes another type; no page says what becomes of nodes that run.",
        put_group("burst", "InstanceType", "ml.p5e.48xlarge"),
        {"Cluster update unknown"},
        {f"CHG006 {C}"},
    ),
    Case(
        "deep checks",
        "Checks run when a group is created or updated; for nodes that run no page says.",
        put_group("burst", "OnStartDeepHealthChecks", ["InstanceStress"]),
        {"Cluster update unknown"},
        {f"CHG006 {C}"},
    ),
    Case(
        "labels",
        "HyperPod reconciles labels on nodes of the group.",
        put_group("h200", "KubernetesConfig", {"Labels": {"tier": "gold"}}),
        {"Cluster update in_place"},
    ),
    Case(
        "taints",
        "HyperPod reconciles taints; NoExecute evicts pods.",
        put_group("h200", "KubernetesConfig", {"Taints": [{"Key": "a", "Effect": "NoExecute"}]}),
        {"Cluster update interrupts"},
        {f"CHG005 {C}"},
    ),
    Case(
        "patching on",
        "Automatic patching waits for its date and for idle nodes.",
        put_group("h200", "AutoPatchConfig", {"PatchingStrategy": "WhenIdle"}),
        {"Cluster update in_place"},
    ),
    Case(
        "subnet of the cluster",
        "VpcConfig is create-only, and a named resource is not replaced under its name.",
        put("Cluster/VpcConfig/Subnets", ["subnet-0"]),
        REPLACED_CLUSTER,
        {f"CHG001 {C}", f"CHG008 {C}", "CHG008 governance/QuotasSchedulerConfigAE5D715D"},
        {"burst", "h200", "system"},
        {"Cluster"},
    ),
    Case(
        "name of the cluster",
        "ClusterName is create-only.",
        put("Cluster/ClusterName", "other"),
        REPLACED_CLUSTER,
        {f"CHG001 {C}", f"CHG008 {C}", "CHG008 governance/QuotasSchedulerConfigAE5D715D"},
        {"burst", "h200", "system"},
        {"Cluster"},
    ),
    Case(
        "larger file system",
        "The file system may be away for minutes while servers are added.",
        put("Lustrelustre/StorageCapacity", 48000),
        {"FileSystem update interrupts"},
        {f"CHG005 {L}"},
    ),
    Case(
        "smaller file system",
        "Storage capacity only grows.",
        put("Lustrelustre/StorageCapacity", 19200),
        {"FileSystem update refused"},
        {f"CHG008 {L}"},
    ),
    Case(
        "faster file system",
        "FSx switches the file servers; the file system is away for minutes.",
        put("Lustrelustre/LustreConfiguration/PerUnitStorageThroughput", 1000),
        {"FileSystem update interrupts"},
        {f"CHG005 {L}"},
    ),
    Case(
        "file system in another zone",
        "SubnetIds is create-only; what names the file system follows.",
        put("Lustrelustre/SubnetIds", ["subnet-0"]),
        {"FileSystem replace replaces", *FOLLOWS_LUSTRE},
        {f"CHG001 {L}", f"CHG008 {L}", f"CHG008 {VOLUME}"},
        at_risk={"FileSystem"},
    ),
    Case(
        "EFA for the file system",
        "UpdateFileSystem has no EfaEnabled: EFA is chosen at creation.",
        put("Lustrelustre/LustreConfiguration/EfaEnabled", False),
        {"FileSystem replace replaces", *FOLLOWS_LUSTRE},
        {f"CHG001 {L}", f"CHG008 {L}", f"CHG008 {VOLUME}"},
        at_risk={"FileSystem"},
    ),
    Case(
        "compression",
        "Compression holds for what is written from now on.",
        put("Lustrelustre/LustreConfiguration/DataCompressionType", "NONE"),
        {"FileSystem update in_place"},
    ),
    Case(
        "no protection",
        "Policies are the template's own; nothing happens until a stack goes.",
        for_good("Lustrelustre"),
        {"FileSystem update in_place"},
    ),
    Case(
        "retained home gone",
        "RetainExceptOnCreate keeps what a stack no longer names.",
        drop("Home"),
        {"FileSystem delete in_place"},
        {"CHG008 storage/Home61B75E36"},
        at_risk={"FileSystem"},
    ),
    Case(
        "Kubernetes version",
        "EKS renews API servers one by one; running applications are not affected.",
        put("EksCluster/Version", "1.35"),
        {"Cluster update in_place"},
    ),
    Case(
        "add-on version",
        "An add-on's own pods roll.",
        put("NodeAddonsvpccni/AddonVersion", "v1.22.0-eksbuild.1"),
        {"Addon update restarts_pods"},
    ),
    Case(
        "smaller quota",
        "Usage beyond nominal quota is borrowed and can be reclaimed.",
        put("QuotasQuotaresearch/ComputeQuotaConfig/ComputeQuotaResources/1/Count", 4),
        {"ComputeQuota update interrupts"},
        {"CHG005 governance/QuotasQuotaresearch8CBB98FD"},
    ),
    Case(
        "larger quota",
        "More is admitted from now on.",
        put("QuotasQuotaresearch/ComputeQuotaConfig/ComputeQuotaResources/1/Count", 12),
        {"ComputeQuota update in_place"},
    ),
    Case(
        "quota called otherwise",
        "Name is create-only.",
        put("QuotasQuotaresearch/Name", "science"),
        {"ComputeQuota replace replaces", "PodwrightNamespacesReady update in_place"},
    ),
    Case(
        "quota turned off",
        "UpdateComputeQuota takes ActivationState; what is off guarantees nothing.",
        put("QuotasQuotaresearch/ActivationState", "Disabled"),
        {"ComputeQuota update interrupts"},
        {"CHG005 governance/QuotasQuotaresearch8CBB98FD"},
    ),
    Case(
        "end of support",
        "UpdateClusterConfig takes upgradePolicy.",
        put("EksCluster/UpgradePolicy", {"SupportType": "STANDARD"}),
        {"Cluster update in_place"},
    ),
    Case(
        "further group of EKS's interfaces",
        "UpdateClusterConfig takes resourcesVpcConfig.securityGroupIds.",
        put("EksCluster/ResourcesVpcConfig/SecurityGroupIds", ["sg-1", "sg-2"]),
        {"Cluster update in_place"},
    ),
    Case(
        "second list of people given up",
        "UpdateClusterConfig takes accessConfig; what aws-auth alone gives is gone.",
        put("EksCluster/AccessConfig/AuthenticationMode", "API_AND_CONFIG_MAP"),
        {"Cluster update interrupts"},
        {"CHG005 eks/EksClusterB2BDED5B"},
    ),
    Case(
        "operations of home",
        "UpdateFileSystem takes DiskIopsConfiguration.",
        put("Home/OpenZFSConfiguration/DiskIopsConfiguration", {"Mode": "USER_PROVISIONED", "Iops": 6000}),
        {"FileSystem update in_place"},
    ),
    Case(
        "team renamed",
        "TeamName is create-only.",
        put("QuotasQuotaresearch/ComputeQuotaTarget/TeamName", "science"),
        {"ComputeQuota replace replaces", "PodwrightNamespacesReady update in_place"},
    ),
    Case(
        "rule of EFA kept",
        "A retained rule stays in EC2.",
        drop("NetworkAmongNodesingressall"),
        {"SecurityGroupIngress delete in_place"},
    ),
    Case(
        "rule of Lustre gone",
        "What only a rule let through is cut.",
        drop("LustrelustreFromClientsingressall"),
        {"SecurityGroupIngress delete interrupts"},
        {"CHG005 storage/LustrelustreFromClientsingressall1116B094"},
    ),
    Case(
        "plan to be bought",
        "CreateTrainingPlan charges the whole price at once.",
        bought,
        {"PodwrightTrainingPlan update in_place"},
        {"CHG003 h200-q1"},
    ),
    Case(
        "shorter metrics",
        "Metrics beyond their retention are deleted.",
        put("Metrics/WorkspaceConfiguration/RetentionPeriodInDays", 1),
        {"Workspace update deletes_data"},
        {"CHG007 observability/Metrics6DBDA108"},
        at_risk={"Workspace"},
    ),
    Case(
        "code of a function",
        "A function's code is updated in place.",
        put("FleetHandlerFunction/Code/S3Key", "other.zip"),
        {"Function update in_place"},
    ),
    Case(
        "logs gone",
        "A deleted log group takes its logs along.",
        drop("RunnerLogs"),
        {"LogGroup delete deletes_data"},
        {"CHG007 eks/RunnerLogs696CEF90"},
        at_risk={"LogGroup"},
    ),
    Case(
        "accounting database",
        "BackupRetentionPeriod deletes older backups.",
        put("SlurmAccounting/BackupRetentionPeriod", 1),
        {"DBCluster update deletes_data"},
        {"CHG007 storage/SlurmAccounting717BDC9D"},
        at_risk={"DBCluster"},
        environment="slurm-classic",
    ),
]
