"""What has to be wrong for preflight's checks of storage, EKS and images to speak, and what they say."""

import json
from datetime import UTC, datetime
from typing import Any

from preflight_answers import (
    ACCOUNT,
    EKS,
    GRAFANA,
    GRAFANA_ROLE,
    KEY,
    REGION,
    SECRET,
    WORKSPACE,
    addon_schema,
    addon_versions,
    clusters,
    eks_cluster,
    file_system,
    grafana_workspace,
    hyperpod,
    identity_center,
    prometheus_workspace,
    refusal,
)
from preflight_case import Case


def only_bucket(missing: str):
    return lambda **request: refusal("404") if request["Bucket"] == missing else {"BucketRegion": REGION}


def metadata(**changed: str) -> dict[str, Any]:
    usual = {
        "KeyId": KEY[-36:],
        "KeyState": "Enabled",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyManager": "CUSTOMER",
    }
    return {"KeyMetadata": usual | changed}


def of_console(kind: str):
    """A policy or quota that somebody made by hand."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:compute-quota/aaaaaaaaaaaa"
    made = {"Name": "by-hand", "Status": "Created", "CreationTime": datetime(2026, 1, 1, tzinfo=UTC)}
    return {f"{kind}Arn": arn, f"{kind}Id": "aaaaaaaaaaaa", **made}


HOME = "storage: {lustre: null, home: {openzfs: {zone: %s, existing: {id: fs-22222222, security_group: sg-11111111}}}}"


def openzfs(**changed: Any) -> dict[str, Any]:
    """The home folders that are adopted."""
    settings = {"FileSystemId": "fs-22222222", "FileSystemType": "OPENZFS", "OpenZFSConfiguration": {}}
    return {"FileSystems": [file_system(**settings) | changed]}


CASES = [
    Case(
        "PRE050", "adopted", "no bucket checkpoints", "create it", {("s3", "head_bucket"): only_bucket("checkpoints")}
    ),
    Case(
        "PRE050",
        "adopted",
        "datasets is in us-east-1, and FSx",
        "use a bucket in us-west-2",
        {
            ("s3", "head_bucket"): lambda **request: {
                "BucketRegion": "us-east-1" if request["Bucket"] == "datasets" else REGION
            }
        },
    ),
    *(
        Case("PRE051", "adopted", says, fix, {("fsx", "describe_file_systems"): {"FileSystems": [wrong]}})
        for wrong, says, fix in (
            (file_system(Lifecycle="FAILED"), "has FAILED where AVAILABLE is expected", "correct"),
            (file_system(SubnetIds=["subnet-22222222"]), "is in usw2-az3, and the file has", "write zone: usw2-az3"),
            (file_system(LustreConfiguration={"MountName": "fsxmount"}), "was made without EFA", "write efa: false"),
            (
                file_system(LustreConfiguration={"MountName": "other", "EfaEnabled": True}),
                "has other where fsxmount is expected",
                "correct",
            ),
        )
    ),
    Case(
        "PRE051",
        "adopted",
        "no file system fs-11111111",
        "correct",
        {("fsx", "describe_file_systems"): refusal("FileSystemNotFound")},
    ),
    *(
        Case("PRE051", base, says, fix, {("fsx", "describe_file_systems"): openzfs(**changed)}, more=HOME % zone)
        for base, changed, zone, says, fix in (
            ("adopted", {"Lifecycle": "FAILED"}, "usw2-az2", "has FAILED where AVAILABLE is expected", "correct"),
            ("adopted", {"FileSystemType": "ONTAP"}, "usw2-az2", "has ONTAP where OPENZFS is expected", "correct"),
            (
                "adopted",
                {"VpcId": "vpc-22222222"},
                "usw2-az2",
                "has vpc-22222222 where vpc-11111111 is expected",
                "correct",
            ),
            ("adopted", {}, "usw2-az3", "is in usw2-az2, and the file has it in usw2-az3", "write zone: usw2-az2"),
        )
    ),
    Case("PRE052", "adopted", "no key", "correct", {("kms", "describe_key"): refusal("NotFoundException")}),
    *(
        Case("PRE052", "adopted", says, fix, {("kms", "describe_key"): metadata(**changed)})
        for changed, says, fix in (
            ({"KeyState": "PendingDeletion"}, "is PendingDeletion; needed: Enabled", "cancel its deletion"),
            ({"KeyManager": "AWS"}, "is AWS; needed: CUSTOMER", "a key of yours"),
        )
    ),
    Case(
        "PRE053",
        "adopted",
        "leaves kms:CreateGrant to no IAM policy of the account",
        f"arn:aws:iam::{ACCOUNT}:root",
        {("kms", "get_key_policy"): {"Policy": '{"Statement": []}'}},
    ),
    Case(
        "PRE053",
        "new",
        "does not let logs.us-west-2.amazonaws.com use it",
        "flow_logs_days: 0",
        more=f"storage: {{kms_key: {KEY}}}",
    ),
    Case(
        "PRE054",
        "adopted",
        "no s3://sagemaker-own/scripts/on_create.sh",
        "upload the whole folder",
        {("s3", "head_object"): refusal("404")},
    ),
    Case(
        "PRE055",
        "new",
        f"bucket sagemaker-example-{ACCOUNT}-us-west-2 exists already",
        "adopt it with",
        {("s3", "head_bucket"): {"BucketRegion": REGION}},
    ),
    Case(
        "PRE060",
        "new",
        "no cluster of Kubernetes 1.34; it offers 1.35",
        "choose one",
        {
            ("eks", "describe_cluster_versions"): {
                "clusterVersions": [
                    {"clusterVersion": "1.34", "versionStatus": "UNSUPPORTED"},
                    {"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT"},
                ]
            }
        },
    ),
    Case(
        "PRE061",
        "new",
        "ends on 2027-02-18; extended support costs more: $0.60 an hour instead of $0.10",
        "later version",
        {
            ("eks", "describe_cluster_versions"): {
                "clusterVersions": [
                    {"clusterVersion": "1.34", "endOfStandardSupportDate": datetime(2027, 2, 18, tzinfo=UTC)}
                ]
            }
        },
    ),
    Case(
        "PRE062",
        "new",
        "EKS has no coredns v1.13.2-eksbuild.7 for Kubernetes 1.34; it has v9.9.9-eksbuild.1",
        "addons: {coredns: v9.9.9-eksbuild.1}",
        {("eks", "describe_addon_versions"): addon_versions("v9.9.9-eksbuild.1")},
    ),
    Case(
        "PRE062",
        "adopted",
        "EKS has no amazon-sagemaker-hyperpod-taskgovernance v1.6.0-eksbuild.1 for Kubernetes 1.34",
        "addons: {amazon-sagemaker-hyperpod-taskgovernance: v9.9.9-eksbuild.1}",
        {("eks", "describe_addon_versions"): addon_versions("v9.9.9-eksbuild.1")},
    ),
    Case(
        "PRE069",
        "adopted",
        "does not take the configuration that it would get: $.metricsProvider: {",
        "describe-addon-configuration --addon-name amazon-sagemaker-hyperpod-observability",
        {
            ("eks", "describe_addon_configuration"): addon_schema(
                {"type": "object", "properties": {"metricsProvider": {"type": "string"}}}
            )
        },
    ),
    Case(
        "PRE069",
        "new",
        "'webhook' was unexpected",
        "describe-addon-configuration --addon-name cert-manager",
        {
            ("eks", "describe_addon_configuration"): addon_schema(
                {"properties": {"nodeSelector": {}, "tolerations": {}, "cainjector": {}}, "additionalProperties": False}
            )
        },
        more="platform: {cert_manager: {}}",
    ),
    Case(
        "PRE063",
        "adopted",
        "no EKS cluster shared",
        "correct",
        {("eks", "describe_cluster"): refusal("ResourceNotFoundException")},
    ),
    *(
        Case("PRE063", "adopted", says, fix, {("eks", "describe_cluster"): eks_cluster(**changed)})
        for changed, says, fix in (
            ({"version": "1.31"}, "has 1.31 where 1.34 is expected", "write 1.31"),
            ({"status": "DELETING"}, "has DELETING where ACTIVE is expected", "DELETING"),
            ({"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, "ConfigMap alone", "API_AND_CONFIG_MAP"),
        )
    ),
    Case("PRE064", "adopted", "belongs to the HyperPod cluster other", "another EKS", clusters("other", stated=EKS)),
    Case("PRE065", "adopted", "already has Kueue", "remove Kueue", groups=("apps", "kueue.x-k8s.io")),
    Case(
        "PRE065",
        "kueue",
        "two would keep quotas of the same jobs",
        "delete that add-on",
        {("eks", "list_addons"): {"addons": ["amazon-sagemaker-hyperpod-taskgovernance"]}},
    ),
    Case(
        "PRE065", "adopted", "has training operators already", "dependencies_installed: true", groups=("kubeflow.org",)
    ),
    *(
        Case("PRE076", "adopted", says, "enableNetworkPolicy", {("eks", "describe_addon"): answer})
        for says, answer in (
            ("does not enforce network policies", {"addon": {"addonName": "vpc-cni"}}),
            (
                "does not enforce network policies",
                {"addon": {"configurationValues": json.dumps({"enableNetworkPolicy": "false"})}},
            ),
            ("is no add-on", refusal("ResourceNotFoundException")),
        )
    ),
    Case(
        "PRE066",
        "new",
        "there is a HyperPod cluster example already (InService)",
        "another name",
        {("sagemaker", "describe_cluster"): hyperpod("example")},
    ),
    *(
        Case(
            "PRE068",
            "new",
            says,
            fix,
            {
                ("sagemaker", "describe_cluster"): hyperpod("example"),
                ("eks", "describe_cluster"): eks_cluster(version=version),
            },
        )
        for version, says, fix in (
            ("1.32", "EKS goes one version at a time: 1.34 is 2 away", "write 1.33"),
            ("1.35", "has Kubernetes 1.35, and 1.34 is older", "write 1.35"),
        )
    ),
    *(
        Case(
            "PRE067",
            "adopted",
            says,
            fix,
            {("sagemaker", "describe_cluster"): hyperpod("example"), ("sagemaker", operation): answer},
        )
        for says, fix, operation, answer in (
            (
                "has the policy by-hand already",
                "--cluster-scheduler-config-id aaaaaaaaaaaa`",
                "list_cluster_scheduler_configs",
                {"ClusterSchedulerConfigSummaries": [of_console("ClusterSchedulerConfig")]},
            ),
            (
                "has the quota by-hand of research already",
                "--compute-quota-id aaaaaaaaaaaa`",
                "list_compute_quotas",
                {
                    "ComputeQuotaSummaries": [
                        of_console("ComputeQuota") | {"ComputeQuotaTarget": {"TeamName": team}}
                        for team in ("others", "research")
                    ]
                },
            ),
        )
    ),
    Case("PRE070", "adopted", "no image ami-11111111", "copy", {("ec2", "describe_images"): {"Images": []}}),
    Case(
        "PRE070",
        "adopted",
        "is for arm64, and the group's types are x86_64",
        "x86_64",
        {
            ("ec2", "describe_images"): {
                "Images": [{"ImageId": "ami-11111111", "State": "available", "Architecture": "arm64"}]
            }
        },
    ),
    Case(
        "PRE070",
        "adopted",
        "has an encrypted snapshot",
        "root_kms_key",
        {
            ("ec2", "describe_images"): {
                "Images": [
                    {
                        "ImageId": "ami-11111111",
                        "State": "available",
                        "Architecture": "x86_64",
                        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True}}],
                    }
                ]
            }
        },
    ),
    Case(
        "PRE071",
        "adopted",
        "nodes of h200 have release 1.10.0, the file has 1.2.3: a deployment gives them an older image",
        "write the release",
        {("sagemaker", "describe_cluster"): hyperpod("example", CurrentImageReleaseVersion="1.10.0")},
    ),
    Case(
        "PRE071",
        "adopted",
        "the image of h200 is SecurityUpdateRequired",
        "patching",
        {("sagemaker", "describe_cluster"): hyperpod("example", ImageVersionStatus="SecurityUpdateRequired")},
    ),
    Case(
        "PRE072",
        "closed",
        "is not in the registry",
        "podwright images mirror example",
        {("ecr", "describe_images"): refusal("ImageNotFoundException")},
    ),
    Case(
        "PRE073",
        "slurm",
        f"secret {SECRET} is not there",
        "correct its ARN",
        {("secretsmanager", "describe_secret"): refusal("ResourceNotFoundException")},
    ),
    Case("PRE073", "slurm", "there is no topic", "create it", {("sns", "get_topic_attributes"): refusal("NotFound")}),
    *(
        Case(
            "PRE074",
            "adopted",
            f"workspace {WORKSPACE} is {says}",
            "correct its id",
            {("amp", "describe_workspace"): answer},
        )
        for says, answer in (
            ("not there", refusal("ResourceNotFoundException")),
            ("DELETING", prometheus_workspace("DELETING")),
        )
    ),
    *(
        Case(
            "PRE075",
            "adopted",
            "us-west-2 shows no active instance of IAM Identity Center",
            "grafana: false",
            {("sso-admin", "list_instances"): identity_center(*statuses)},
        )
        for statuses in ((), ("CREATE_IN_PROGRESS",))
    ),
    *(
        Case(
            "PRE077",
            "adopted",
            says,
            fix,
            {("grafana", "describe_workspace"): answer},
            more=f"observability: {{grafana: {{existing: {{id: {GRAFANA}, role: '{GRAFANA_ROLE}'}}, {more}}}}}",
        )
        for says, fix, answer, more in (
            ("g-0123456789 is not there in us-west-2", "correct its id", refusal("ResourceNotFoundException"), ""),
            ("g-0123456789 is DEGRADED in us-west-2", "bring it to ACTIVE", grafana_workspace(status="DEGRADED"), ""),
            ("has Grafana 8.4", "update the workspace", grafana_workspace(grafanaVersion="8.4"), ""),
            ("with no role", "own role", grafana_workspace(workspaceRoleArn=None), ""),
            (f"with {KEY}", "own role", grafana_workspace(workspaceRoleArn=KEY), ""),
            (
                "by SAML, which knows no groups",
                "remove viewers",
                grafana_workspace(authentication={"providers": ["SAML"]}),
                "viewers: [7a1c2e3f-1111-2222-3333-44445555666f]",
            ),
            (
                "lets only named addresses",
                "podwright dashboards export",
                grafana_workspace(networkAccessControl={"prefixListIds": ["pl-12345678"], "vpceIds": []}),
                "",
            ),
        )
    ),
]
