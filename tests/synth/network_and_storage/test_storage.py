"""File systems, buckets and the key, by what their templates say."""

from typing import Any, get_args

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from podwright.config.catalog.names import lifecycle_bucket_name
from podwright.config.errors import InvalidValue
from podwright.config.settings.storage import Buckets, Lustre, OpenZfs, Storage
from podwright.constructs.common.protection import Protection
from podwright.constructs.storage.buckets import CheckpointBucket, LifecycleBucket
from podwright.constructs.storage.key import EnvironmentKey
from podwright.constructs.storage.lustre import LustreFileSystem
from podwright.constructs.storage.openzfs import OpenZfsHome

CLIENTS = "sg-0123456789abcdef0"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
SUBNET = "subnet-0123456789abcdef0"
EXISTING = {"id": "fs-0123456789abcdef0", "mount_name": "abcdefgh", "security_group": "sg-0123456789abcdef1"}


@pytest.fixture
def parts(stack: cdk.Stack) -> dict[str, Any]:
    """What every file system stands on."""
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "GivenVpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-west-2a"],
        private_subnet_ids=[SUBNET],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )
    return {
        "vpc": vpc,
        "subnet": vpc.private_subnets[0],
        "clients": ec2.SecurityGroup.from_security_group_id(stack, "GivenClients", CLIENTS),
        "key": kms.Key.from_key_arn(stack, "GivenKey", KEY),
        "protection": "retain",
    }


def lustre(stack: cdk.Stack, parts: dict[str, Any], **settings: Any) -> LustreFileSystem:
    settings = {"zone": "usw2-az2", "capacity_gib": 9600, "throughput": 500, **settings}
    return LustreFileSystem(stack, "Lustre", settings=Lustre.model_validate(settings), **parts)


def file_system(stack: cdk.Stack) -> dict[str, Any]:
    (resource,) = resources(stack, "AWS::FSx::FileSystem").values()
    return resource


def resources(stack: cdk.Stack, *kinds: str) -> dict[str, dict[str, Any]]:
    """All resources of these types by logical id."""
    template = Template.from_stack(stack).to_json()
    return {id: actual for id, actual in template.get("Resources", {}).items() if actual["Type"] in kinds}


RULES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")


def opened(stack: cdk.Stack) -> set[tuple[str, str, str, str, int | None, int | None]]:
    """(direction, at, peer, protocol, first, last) of all rules; `servers` is a group that the template makes."""

    def name(group: Any) -> str:
        return "servers" if isinstance(group, dict) else "clients" if group == CLIENTS else group

    actual = set[tuple[str, str, str, str, int | None, int | None]]()
    for direction, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        rules = Template.from_stack(stack).find_resources(f"AWS::EC2::SecurityGroup{direction}").values()
        for rule in (resource["Properties"] for resource in rules):
            ports = (rule.get("FromPort"), rule.get("ToPort"))
            actual.add((direction, name(rule["GroupId"]), name(rule[peer]), rule["IpProtocol"], *ports))
    return actual


def both_ends(*paths: tuple[str, str], ports: list[tuple[str, int | None, int | None]]) -> set[tuple[Any, ...]]:
    return {
        (direction, *ends, *port)
        for source, target in paths
        for direction, ends in (("Egress", (source, target)), ("Ingress", (target, source)))
        for port in ports
    }


LUSTRE_PATHS = (("servers", "servers"), ("clients", "servers"), ("servers", "clients"))
LUSTRE_PORTS: list[tuple[str, int | None, int | None]] = [("tcp", 988, 988), ("tcp", 1018, 1023)]


def test_lustre_on_ssd(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    made = lustre(stack, parts, efa=True, metadata_iops=12000, backups={"retention_days": 14, "start": "03:30"})
    resource = file_system(stack)
    group = resource["Properties"]["SecurityGroupIds"][0]["Fn::GetAtt"][0]
    assert resource["Properties"] == {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageType": "SSD",
        "StorageCapacity": 9600,
        "SubnetIds": [SUBNET],
        "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
        "KmsKeyId": KEY,
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 500,
            "EfaEnabled": True,
            "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 12000},
            "DataCompressionType": "LZ4",
            "WeeklyMaintenanceStartTime": "7:04:00",
            "AutomaticBackupRetentionDays": 14,
            "DailyAutomaticBackupStartTime": "03:30",
            "CopyTagsToBackups": True,
        },
        "Tags": [{"Key": "Name", "Value": "Test/Lustre"}],
    }
    assert stack.resolve(made.mount_name)["Fn::GetAtt"][1] == "LustreMountName"
    assert stack.resolve(made.dns_name)["Fn::GetAtt"][1] == "DNSName"


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (None, {"SizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"}),
        ({"mode": "none"}, {"SizingMode": "NO_CACHE"}),
        ({"mode": "provisioned", "size_gib": 4096}, {"SizingMode": "USER_PROVISIONED", "SizeGiB": 4096}),
    ],
)
def test_lustre_with_intelligent_tiering(
    stack: cdk.Stack, parts: dict[str, Any], cache: Any, expected: dict[str, Any]
) -> None:
    tiering = {"type": "intelligent_tiering", "throughput_capacity": 8000, "metadata_iops": 6000, "read_cache": cache}
    lustre(stack, parts, capacity_gib=None, **tiering)
    properties = file_system(stack)["Properties"]
    assert properties["StorageType"] == "INTELLIGENT_TIERING"
    assert "StorageCapacity" not in properties
    assert "PerUnitStorageThroughput" not in properties["LustreConfiguration"]
    assert properties["LustreConfiguration"]["ThroughputCapacity"] == 8000
    assert properties["LustreConfiguration"]["DataReadCacheConfiguration"] == expected
    assert properties["LustreConfiguration"]["MetadataConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 6000}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"Mode": "AUTOMATIC"}),
        ({"version": "2.12"}, None),
        ({"metadata_iops": 1500}, {"Mode": "USER_PROVISIONED", "Iops": 1500}),
    ],
)
def test_metadata_configuration(
    stack: cdk.Stack, parts: dict[str, Any], settings: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """2.12 is refused with one and the newer version needs one for EFA."""
    lustre(stack, parts, **settings)
    assert file_system(stack)["Properties"]["LustreConfiguration"].get("MetadataConfiguration") == expected


def test_no_backups_and_no_compression_unless_asked_for(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    lustre(stack, parts, compression="none")
    configuration = file_system(stack)["Properties"]["LustreConfiguration"]
    assert configuration["DataCompressionType"] == "NONE"
    assert not {"AutomaticBackupRetentionDays", "CopyTagsToBackups"} & configuration.keys()


def test_lustre_ports_both_ways(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    lustre(stack, parts)
    assert opened(stack) == both_ends(*LUSTRE_PATHS, ports=LUSTRE_PORTS)


def test_efa_lets_everything_through_among_servers_and_clients(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    lustre(stack, parts, efa=True)
    assert opened(stack) == both_ends(*LUSTRE_PATHS, ports=[("-1", None, None)])


@pytest.mark.parametrize("efa", [False, True])
def test_fsx_finds_the_rules_when_it_creates_the_file_system(
    stack: cdk.Stack, parts: dict[str, Any], efa: bool
) -> None:
    """It refuses a group that does not let Lustre's traffic, or EFA's, pass."""
    lustre(stack, parts, efa=efa)
    assert set(file_system(stack)["DependsOn"]) == set(resources(stack, *RULES))


def test_repositories(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    datasets = {"path": "/datasets", "s3": "s3://acme-datasets"}
    results = {"path": "/results/a-b", "s3": "s3://acme/results", "import": [], "export": ["new", "changed", "deleted"]}
    made = lustre(stack, parts, repositories=[datasets, results])
    template = Template.from_stack(stack)
    common = {"FileSystemId": stack.resolve(made.file_system_id), "BatchImportMetaDataOnCreate": True}
    template.has_resource_properties(
        "AWS::FSx::DataRepositoryAssociation",
        common
        | {"FileSystemPath": "/datasets", "DataRepositoryPath": "s3://acme-datasets"}
        | {"S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}, "AutoExportPolicy": Match.absent()}},
    )
    template.has_resource_properties(
        "AWS::FSx::DataRepositoryAssociation",
        common
        | {"FileSystemPath": "/results/a-b", "DataRepositoryPath": "s3://acme/results"}
        | {"S3": {"AutoExportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}, "AutoImportPolicy": Match.absent()}},
    )
    assert all(
        "DeletionPolicy" not in association
        for association in template.find_resources("AWS::FSx::DataRepositoryAssociation").values()
    )


def test_the_order_of_repositories_means_nothing() -> None:
    def ids(repositories: list[dict[str, Any]]) -> dict[str, Any]:
        stack = cdk.Stack(cdk.App(), "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
        vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
        lustre(
            stack,
            {
                "vpc": vpc,
                "subnet": ec2.Subnet.from_subnet_attributes(stack, "S", subnet_id=SUBNET, route_table_id="rtb-0"),
                "clients": ec2.SecurityGroup.from_security_group_id(stack, "Clients", CLIENTS),
                "key": kms.Key.from_key_arn(stack, "Key", KEY),
                "protection": "retain",
            },
            repositories=repositories,
        )
        return resources(stack, "AWS::FSx::DataRepositoryAssociation")

    one, two = {"path": "/a/b", "s3": "s3://acme-one"}, {"path": "/a-b", "s3": "s3://acme-two"}
    assert ids([one, two]) == ids([two, one])
    assert ids([one]).items() <= ids([two, one]).items()


@pytest.mark.parametrize("efa", [False, True])
def test_an_existing_lustre_gets_ports_and_nothing_else(stack: cdk.Stack, parts: dict[str, Any], efa: bool) -> None:
    made = lustre(stack, parts, existing=EXISTING, efa=efa)
    servers = EXISTING["security_group"]
    assert opened(stack) == both_ends(
        ("clients", servers), (servers, "clients"), ports=[("-1", None, None)] if efa else LUSTRE_PORTS
    )
    assert Template.from_stack(stack).to_json()["Resources"] == resources(stack, *RULES)
    assert (made.file_system_id, made.mount_name) == (EXISTING["id"], "abcdefgh")
    suffix = {"Ref": "AWS::URLSuffix"}
    assert stack.resolve(made.dns_name) == {"Fn::Join": ["", [f"{EXISTING['id']}.fsx.us-west-2.", suffix]]}


def test_an_existing_home_gets_ports_and_nothing_else(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    adopted = {"id": EXISTING["id"], "security_group": EXISTING["security_group"]}
    settings = OpenZfs.model_validate({"zone": "usw2-az2", "existing": adopted})
    made = OpenZfsHome(stack, "Home", settings=settings, **parts)
    assert Template.from_stack(stack).to_json()["Resources"] == resources(stack, *RULES)
    servers = EXISTING["security_group"]
    assert {rule[:3] for rule in opened(stack)} == {("Ingress", servers, "clients"), ("Egress", "clients", servers)}
    assert {rule[4] for rule in opened(stack)} == {111, 2049, 20001}
    assert made.file_system_id == EXISTING["id"]
    suffix = {"Ref": "AWS::URLSuffix"}
    assert stack.resolve(made.dns_name) == {"Fn::Join": ["", [f"{EXISTING['id']}.fsx.us-west-2.", suffix]]}


@pytest.mark.parametrize("protection", get_args(Protection))
def test_protection_of_file_systems(stack: cdk.Stack, parts: dict[str, Any], protection: Protection) -> None:
    parts |= {"protection": protection}
    lustre(stack, parts)
    OpenZfsHome(stack, "Home", settings=OpenZfs(zone="usw2-az2"), **parts)
    policies = ("Delete", "Delete") if protection == "destroy" else ("RetainExceptOnCreate", "Retain")
    lasting = resources(stack, "AWS::EC2::SecurityGroup", "AWS::FSx::FileSystem").values()
    assert [(resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) for resource in lasting] == [policies] * 4


def test_a_surviving_group_keeps_its_own_rules_and_no_others(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    """Adopting the file system opens the clients' ports again, and EC2 refuses a rule that is there already."""
    lustre(stack, parts)
    rules = resources(stack, *RULES)
    retained = {logical_id for logical_id, rule in rules.items() if "DeletionPolicy" in rule}
    assert retained == {logical_id for logical_id in rules if "AmongServers" in logical_id}
    assert len(retained) == 4


def test_openzfs(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    made = OpenZfsHome(stack, "Home", settings=OpenZfs(zone="usw2-az2", throughput=320, backup_days=0), **parts)
    properties = file_system(stack)["Properties"]
    del properties["SecurityGroupIds"]
    assert properties == {
        "FileSystemType": "OPENZFS",
        "StorageType": "SSD",
        "StorageCapacity": 512,
        "SubnetIds": [SUBNET],
        "KmsKeyId": KEY,
        "OpenZFSConfiguration": {
            "DeploymentType": "SINGLE_AZ_2",
            "ThroughputCapacity": 320,
            "AutomaticBackupRetentionDays": 0,
            "CopyTagsToBackups": True,
            "CopyTagsToVolumes": True,
            "RootVolumeConfiguration": {
                "DataCompressionType": "LZ4",
                "RecordSizeKiB": 128,
                "NfsExports": [
                    {
                        "ClientConfigurations": [
                            {"Clients": "*", "Options": ["rw", "crossmnt", "sync", "no_root_squash"]}
                        ]
                    }
                ],
            },
        },
        "Tags": [{"Key": "Name", "Value": "Test/Home"}],
    }
    ports = [
        (protocol, *range_) for protocol in ("tcp", "udp") for range_ in ((111, 111), (2049, 2049), (20001, 20003))
    ]
    assert opened(stack) == both_ends(("clients", "servers"), ports=[*ports])
    assert stack.resolve(made.dns_name)["Fn::GetAtt"][1] == "DNSName"


def test_a_home_of_another_kind(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    settings = OpenZfs(
        zone="usw2-az2", deployment="single_az_ha_1", throughput=128, iops=6000, compression="zstd", capacity_gib=1024
    )
    OpenZfsHome(stack, "Home", settings=settings, **parts)
    configuration = file_system(stack)["Properties"]["OpenZFSConfiguration"]
    assert configuration["DeploymentType"] == "SINGLE_AZ_HA_1"
    assert configuration["DiskIopsConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 6000}
    assert configuration["RootVolumeConfiguration"]["DataCompressionType"] == "ZSTD"


IN_TWO_ZONES = {"zone": "usw2-az2", "deployment": "multi_az_1", "standby_zone": "usw2-az3"}


def test_a_home_in_two_zones(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    settings = OpenZfs.model_validate(IN_TWO_ZONES | {"endpoint_cidr": "198.18.0.0/28"})
    standby = ec2.Subnet.from_subnet_id(stack, "Standby", "subnet-0123456789abcdef1")
    tables = ["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"]
    OpenZfsHome(stack, "Home", settings=settings, standby=standby, route_table_ids=tables, **parts)
    properties = file_system(stack)["Properties"]
    assert properties["SubnetIds"] == [SUBNET, "subnet-0123456789abcdef1"]
    configuration = properties["OpenZFSConfiguration"]
    assert configuration["DeploymentType"] == "MULTI_AZ_1"
    assert configuration["PreferredSubnetId"] == SUBNET
    assert configuration["EndpointIpAddressRange"] == "198.18.0.0/28"
    assert configuration["RouteTableIds"] == tables


def test_route_tables_of_the_settings_stand_for_those_of_the_network(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    settings = OpenZfs.model_validate(IN_TWO_ZONES | {"route_tables": ["rtb-0123456789abcdef9"]})
    standby = ec2.Subnet.from_subnet_id(stack, "Standby", "subnet-0123456789abcdef1")
    OpenZfsHome(stack, "Home", settings=settings, standby=standby, route_table_ids=["rtb-0123456789abcdef0"], **parts)
    assert file_system(stack)["Properties"]["OpenZFSConfiguration"]["RouteTableIds"] == ["rtb-0123456789abcdef9"]


@pytest.mark.parametrize("more", [{"route_table_ids": ["rtb-0123456789abcdef0"]}, {"standby": True}], ids=str)
def test_a_home_in_two_zones_needs_a_second_subnet_and_ways(
    stack: cdk.Stack, parts: dict[str, Any], more: dict[str, Any]
) -> None:
    if "standby" in more:
        more = {"standby": ec2.Subnet.from_subnet_id(stack, "Standby", "subnet-0123456789abcdef1")}
    with pytest.raises(InvalidValue, match="needs standby and route_table_ids"):
        OpenZfsHome(stack, "Home", settings=OpenZfs.model_validate(IN_TWO_ZONES), **more, **parts)


def test_a_home_that_may_go_takes_its_volumes_along(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    parts["protection"] = "destroy"
    OpenZfsHome(stack, "Home", settings=OpenZfs(zone="usw2-az2"), **parts)
    configuration = file_system(stack)["Properties"]["OpenZFSConfiguration"]
    assert configuration["Options"] == ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]


def test_buckets_are_private(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    name = lifecycle_bucket_name("prod", "111122223333", "us-west-2")
    common: dict[str, Any] = {"settings": Buckets(), "key": parts["key"], "protection": "retain"}
    LifecycleBucket(stack, "Lifecycle", name=name, **common)
    CheckpointBucket(stack, "Checkpoints", **common)
    template = Template.from_stack(stack)
    template.all_resources(
        "AWS::S3::Bucket",
        {
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
            "Properties": Match.object_like(
                {
                    "PublicAccessBlockConfiguration": dict.fromkeys(
                        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
                    ),
                    "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                    "VersioningConfiguration": {"Status": "Enabled"},
                    "BucketEncryption": {
                        "ServerSideEncryptionConfiguration": [
                            {
                                "BucketKeyEnabled": True,
                                "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
                            }
                        ]
                    },
                    "LifecycleConfiguration": {
                        "Rules": [
                            Match.object_like(
                                {
                                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
                                    "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
                                    "Status": "Enabled",
                                }
                            )
                        ]
                    },
                }
            ),
        },
    )
    names = [bucket["Properties"].get("BucketName") for bucket in template.find_resources("AWS::S3::Bucket").values()]
    assert names == ["sagemaker-prod-111122223333-us-west-2", None]
    for policy in template.find_resources("AWS::S3::BucketPolicy").values():
        conditions = [statement["Condition"] for statement in policy["Properties"]["PolicyDocument"]["Statement"]]
        assert {"Bool": {"aws:SecureTransport": "false"}} in conditions
        assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in conditions
    template.resource_count_is("AWS::S3::BucketPolicy", 2)


def test_existing_buckets(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    settings = Buckets(lifecycle="sagemaker-mine", checkpoints="acme-checkpoints")
    common: dict[str, Any] = {"settings": settings, "key": parts["key"], "protection": "retain"}
    assert LifecycleBucket(stack, "Lifecycle", name="unused", **common).bucket.bucket_name == "sagemaker-mine"
    assert CheckpointBucket(stack, "Checkpoints", **common).bucket.bucket_name == "acme-checkpoints"
    assert "Resources" not in Template.from_stack(stack).to_json()


def test_the_key_rotates_and_serves_log_groups(stack: cdk.Stack) -> None:
    EnvironmentKey(stack, "Key", settings=Storage(), protection="retain")
    template = Template.from_stack(stack)
    template.has_resource("AWS::KMS::Key", {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"})
    (key,) = template.find_resources("AWS::KMS::Key").values()
    assert key["Properties"]["EnableKeyRotation"] is True
    account, log_groups = key["Properties"]["KeyPolicy"]["Statement"]
    assert account["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}
    assert "Condition" not in account
    assert log_groups["Principal"] == {"Service": "logs.us-west-2.amazonaws.com"}
    assert log_groups["Condition"] == {
        "ArnLike": {"kms:EncryptionContext:aws:logs:arn": "arn:aws:logs:us-west-2:111122223333:log-group:*"}
    }


def test_an_existing_key(stack: cdk.Stack) -> None:
    assert EnvironmentKey(stack, "Key", settings=Storage(kms_key=KEY), protection="retain").key.key_arn == KEY
    assert "Resources" not in Template.from_stack(stack).to_json()
