"""The sandbox's own services and handlers, without a server: words of refusals, fitted properties, storage rules."""

import io
import pickle
import shutil
import threading
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import kubernetes_validate
import pytest
from botocore.session import Session
from moto.core.exceptions import ServiceException

from podwright.config.errors import CommandError
from podwright.sandbox.cloudformation import schemas
from podwright.sandbox.cloudformation.evaluate import KNOWN_AFTER_APPLY
from podwright.sandbox.cloudformation.providers.api import fit
from podwright.sandbox.cloudformation.providers.recorded import attributes_of
from podwright.sandbox.cloudformation.providers.registry import is_recorded_only, real_types
from podwright.sandbox.cloudformation.validation import validate_properties
from podwright.sandbox.eks.api import EksResponse
from podwright.sandbox.eks.service import Eks, EksCluster
from podwright.sandbox.eks.upgrades import new_update, update_version
from podwright.sandbox.hyperpod.answers import kubernetes_node
from podwright.sandbox.hyperpod.cluster import Cluster, Group, Node, Shortage, Timing
from podwright.sandbox.kubernetes.store import ApiError, KubernetesStore, plural
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.protocol.contents import Contents
from podwright.sandbox.protocol.service import Refusal
from podwright.sandbox.server.persistence import Snapshots
from podwright.sandbox.services.fsx import check_lustre, check_openzfs

REGION = "us-west-2"


def failures(kind: str, **properties: Any) -> list[str]:
    return [str(failure) for failure in validate_properties(kind, properties, REGION)]


def test_refusals_have_cloudformations_words() -> None:
    group = {"InstanceGroupName": "g", "InstanceCount": -1, "ExecutionRole": "no", "Colour": 1}
    assert failures("AWS::SageMaker::Cluster", ClusterName="a_b", InstanceGroups=[group], NodeRecovery="Maybe") == [
        "#/ClusterName: failed validation constraint for keyword [pattern]",
        "#/InstanceGroups/0: extraneous key [Colour] is not permitted",
        "#/InstanceGroups/0/ExecutionRole: expected minLength: 20, actual: 2",
        "#/InstanceGroups/0/ExecutionRole: failed validation constraint for keyword [pattern]",
        "#/InstanceGroups/0/InstanceCount: -1 is not greater or equal to 0",
        "#/NodeRecovery: Maybe is not a valid enum value",
    ]
    assert failures("AWS::EC2::Subnet") == [
        "#: required key [VpcId] not found",
        "#: One of ['CidrBlock', 'Ipv4IpamPoolId', 'Ipv6IpamPoolId', 'Ipv6CidrBlock'] is a required property (sandbox)",
    ]


def test_what_only_a_deployment_knows_is_taken_as_right() -> None:
    assert failures("AWS::EC2::Subnet", VpcId=KNOWN_AFTER_APPLY, CidrBlock=KNOWN_AFTER_APPLY) == []
    assert failures("AWS::EC2::Subnet", VpcId=KNOWN_AFTER_APPLY, CidrBlock="10.0.0.0/40") != []


def test_numbers_and_booleans_may_be_text() -> None:
    assert failures("AWS::SQS::Queue", DelaySeconds="5", FifoQueue="true") == []


def test_an_unknown_type_fails() -> None:
    assert failures("AWS::No::Such") == ["#: Unrecognized resource types: [AWS::No::Such]"]


def test_create_only_properties_are_compared_by_value() -> None:
    old = {"ClusterName": "a", "Orchestrator": {"Eks": {"ClusterArn": "x"}}, "NodeRecovery": "None"}
    same = {**old, "NodeRecovery": "Automatic"}
    assert schemas.changed_create_only("AWS::SageMaker::Cluster", REGION, old, same) == []
    moved = {**old, "Orchestrator": {"Eks": {"ClusterArn": "y"}}}
    assert schemas.changed_create_only("AWS::SageMaker::Cluster", REGION, old, moved) == ["Orchestrator/Eks"]


def test_types_are_real_or_said_to_be_records() -> None:
    assert is_recorded_only("AWS::Batch::JobQueue")
    assert not is_recorded_only("AWS::EC2::VPC")
    assert not is_recorded_only("Custom::Anything")
    assert not is_recorded_only("AWS::CloudFormation::WaitConditionHandle")
    assert all(schemas.find(kind, REGION) for kind in real_types())


def test_properties_are_fitted_to_an_api() -> None:
    model: Any = Session().get_service_model("eks").operation_model("CreateCluster").input_shape
    properties = {
        "Name": "c", "Tags": [{"Key": "a", "Value": "b"}], "DeletionProtection": "true", "NotInTheApi": 1,
        "ResourcesVpcConfig": {"SubnetIds": ["s"], "EndpointPublicAccess": "false"},
    }  # fmt: skip
    assert fit(properties, model) == {
        "name": "c", "tags": {"a": "b"}, "deletionProtection": True,
        "resourcesVpcConfig": {"subnetIds": ["s"], "endpointPublicAccess": False},
    }  # fmt: skip


LUSTRE = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 500}
EFA = {**LUSTRE, "EfaEnabled": True, "MetadataConfiguration": {"Mode": "AUTOMATIC"}}
TIERED = {"DeploymentType": "PERSISTENT_2", "ThroughputCapacity": 8000, "DataReadCacheConfiguration": {}}


def lustre(configuration: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"SubnetIds": ["subnet-1"], "LustreConfiguration": configuration, **more}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lustre(LUSTRE, StorageCapacity=2400), None),
        (lustre(LUSTRE, StorageCapacity=1201), "neither 1200 nor a multiple of 2400"),
        (lustre({**LUSTRE, "PerUnitStorageThroughput": 7}, StorageCapacity=1200), "throughput 7 is not one of"),
        (lustre(EFA, StorageCapacity=9600), None),
        (lustre(EFA, StorageCapacity=2400), "not a multiple of 9600 GiB, the step with EFA at 500 MB/s/TiB"),
        (lustre({**LUSTRE, "EfaEnabled": True}, StorageCapacity=9600), "needs a MetadataConfiguration"),
        (lustre({"EfaEnabled": True, "DeploymentType": "SCRATCH_2"}, StorageCapacity=1200), "need deployment type"),
        (lustre(LUSTRE), "StorageCapacity is required"),
        ({**lustre(LUSTRE, StorageCapacity=1200), "SubnetIds": ["a", "b"]}, "exactly one subnet"),
        (lustre(TIERED, StorageType="INTELLIGENT_TIERING"), None),
        (lustre({**TIERED, "ThroughputCapacity": 5000}, StorageType="INTELLIGENT_TIERING"), "multiple of 4000"),
        (lustre(TIERED, StorageType="INTELLIGENT_TIERING", StorageCapacity=1200), "are not for storage type"),
    ],
)
def test_lustre_rules(values: dict[str, Any], message: str | None) -> None:
    if message is None:
        check_lustre(values)
        return
    with pytest.raises(ServiceException, match="(?i)" + message.replace("(", r"\(")):
        check_lustre(values)


TWO_ZONES = {"DeploymentType": "MULTI_AZ_1", "PreferredSubnetId": "a", "RouteTableIds": ["rtb-0"]}


@pytest.mark.parametrize(
    ("settings", "subnets", "message"),
    [
        (TWO_ZONES, ["a", "b"], None),
        (TWO_ZONES, ["a"], "takes two subnets"),
        (TWO_ZONES, ["b", "c"], "PreferredSubnetId that is one of them"),
        ({"DeploymentType": "SINGLE_AZ_2"}, ["a"], None),
        ({"DeploymentType": "SINGLE_AZ_2"}, ["a", "b"], "exactly one subnet"),
        (TWO_ZONES | {"DeploymentType": "SINGLE_AZ_2"}, ["a"], "none of"),
    ],
)
def test_openzfs_rules(settings: dict[str, Any], subnets: list[str], message: str | None) -> None:
    values = {"SubnetIds": subnets, "OpenZFSConfiguration": settings}
    if message is None:
        check_openzfs(values)
        return
    with pytest.raises(ServiceException, match=message):
        check_openzfs(values)


_LAYERS = tuple(f"topology.k8s.aws/network-node-layer-{number}" for number in (1, 2, 3))


class Free:
    """Gives a group whatever it asks for."""

    def obstacle(self, cluster: Cluster, group: Group) -> str | None:
        return None

    def waits(self, cluster: Cluster, group: Group) -> str | None:
        return None

    def places(self, cluster: Cluster, group: Group) -> list[dict[str, Any]] | None:
        return None

    def surplus(self, cluster: Cluster, group: Group) -> int:
        return 0


class Full(Free):
    def obstacle(self, cluster: Cluster, group: Group) -> str | None:
        return "full"


def cluster(count: int, **request: Any) -> Cluster:
    resolved_cluster = Cluster("c", "arn", REGION, {"VpcConfig": {"Subnets": ["s"]}, **request}, Timing())
    resolved_cluster.subnets = {"s": {"SubnetId": "s", "AvailabilityZoneId": "usw2-az1", "CidrBlock": "10.0.0.0/24"}}
    resolved_cluster.groups["g"] = Group(
        {"InstanceGroupName": "g", "InstanceCount": count, "InstanceType": "ml.p5.48xlarge"}
    )
    return resolved_cluster


def test_a_nodes_status_follows_from_time_alone() -> None:
    resolved_cluster = cluster(1)
    resolved_cluster.groups["g"].specification["OnStartDeepHealthChecks"] = ["InstanceStress"]
    resolved_cluster.converge(Free(), "Creating")
    [node] = resolved_cluster.nodes
    ages = (0.0, 1.9, 2.1, 3.9, 4.1)
    assert [node.status(node.launched + timedelta(seconds=age)) for age in ages] == [
        "Pending", "Pending", "DeepHealthCheckInProgress", "DeepHealthCheckInProgress", "Running",
    ]  # fmt: skip
    assert resolved_cluster.status(node.launched) == "Creating"
    assert resolved_cluster.status(node.ready) == "InService"
    node.deleted = node.ready
    assert [node.status(node.ready + timedelta(seconds=age)) for age in (0.5, 1.5)] == ["ShuttingDown", None]


def test_members_are_of_one_group_and_not_going() -> None:
    resolved_cluster = cluster(2)
    resolved_cluster.groups["other"] = Group(
        {**resolved_cluster.groups["g"].specification, "InstanceGroupName": "other"}
    )
    resolved_cluster.converge(Free(), "Creating")
    deleted, *stay = [node for node in resolved_cluster.nodes if node.group == "g"]
    deleted.deleted = now()
    assert (resolved_cluster.members("g", now()), len(resolved_cluster.nodes)) == (stay, 4)


@pytest.mark.parametrize(
    ("instance_type", "architecture"), [("ml.m5.4xlarge", "amd64"), ("ml.p6e-gb200.36xlarge", "arm64")]
)
def test_nodes_have_the_labels_of_a_kubelet(instance_type: str, architecture: str) -> None:
    node = Node("g", instance_type, "s", "us-west-2a", "usw2-az1", "10.0.0.9", 0, 0, 0)
    actual = kubernetes_node(cluster(1), node, now())
    labels = actual["metadata"]["labels"]
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", architecture)
    assert actual["status"]["nodeInfo"]["architecture"] == architecture


def test_nodes_are_ones_that_generated_clients_read() -> None:
    """`hyp list-cluster` refuses a node without what Kubernetes' API demands, and counts what it has for pods."""
    actual = kubernetes_node(
        cluster(1), Node("g", "ml.g5.8xlarge", "s", "us-west-2a", "usw2-az1", "10.0.0.9", 0, 0, 0), now()
    )
    kubernetes_validate.validate(actual, "1.34", strict=True)
    assert actual["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_nodes_have_the_labels_of_the_network_and_a_replacement_takes_its_nodes_place() -> None:
    resolved_cluster = cluster(17)
    resolved_cluster.converge(Free(), "Creating")

    def switches() -> list[list[str]]:
        objects = [
            kubernetes_node(resolved_cluster, node, now()) for node in resolved_cluster.nodes if not node.deleted
        ]
        return [[item["metadata"]["labels"][label] for label in _LAYERS] for item in objects]

    before = switches()
    # Sixteen below one switch of the lowest layer; the next has another, and shares the ones above.
    assert len({tuple(each) for each in before[:16]}) == 1
    assert [one == other for one, other in zip(before[0], before[16], strict=True)] == [True, True, False]
    resolved_cluster.nodes[16].deleted = now()
    resolved_cluster.converge(Free(), "Updating")
    assert switches() == before
    plain = Node("g", "ml.m5.4xlarge", "s", "us-west-2a", "usw2-az1", "10.0.0.9", 0, 0, 0)
    assert not {*_LAYERS} & kubernetes_node(resolved_cluster, plain, now())["metadata"]["labels"].keys()


def test_capacity_is_short_for_a_type_in_a_zone() -> None:
    resolved_cluster = cluster(1)
    assert resolved_cluster.short_of(resolved_cluster.groups["g"], [Shortage("usw2-az1")])
    assert resolved_cluster.short_of(resolved_cluster.groups["g"], [Shortage("usw2-az1", "ml.p5.48xlarge")])
    assert not resolved_cluster.short_of(resolved_cluster.groups["g"], [Shortage("usw2-az1", "ml.p5en.48xlarge")])
    assert not resolved_cluster.short_of(resolved_cluster.groups["g"], [Shortage("usw2-az2")])


def test_continuous_clusters_do_not_wait_for_nodes() -> None:
    resolved_cluster = cluster(3, NodeProvisioningMode="Continuous")
    resolved_cluster.converge(Full(), "Creating")
    assert (resolved_cluster.nodes, resolved_cluster.outcome) == ([], "InService")
    assert "full" in resolved_cluster.events[-1].description
    resolved_cluster.settle(Free(), now())
    assert len(resolved_cluster.nodes) == 3


@pytest.mark.parametrize(
    ("kind", "name"),
    [("Pod", "pods"), ("NetworkPolicy", "networkpolicies"), ("Ingress", "ingresses"), ("Endpoints", "endpoints")],
)
def test_resource_names_of_kinds(kind: str, name: str) -> None:
    assert plural(kind) == name


def definition() -> dict[str, Any]:
    properties = {"count": {"type": "integer"}, "port": {"x-kubernetes-int-or-string": True},
                  "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}  # fmt: skip
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Job", "plural": "jobs"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "jobs.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip


def job(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def test_custom_objects_are_checked_against_their_definition() -> None:
    store = KubernetesStore("1.34")
    with pytest.raises(ApiError, match="no matches for kind"):
        store.create(job())
    store.create(definition())
    store.create(job(count=1, port="http", free={"any": 1}))
    for wrong in ({"count": "1"}, {"cuont": 1}, {"port": []}):
        with pytest.raises(ApiError, match='Job "j" is invalid: spec'):
            store.apply(job(**wrong))
    assert {"groupVersion": "example.com/v1", "version": "v1"} in [
        group["preferredVersion"] for group in store.groups()
    ]


def test_nothing_comes_into_a_namespace_that_is_not_there() -> None:
    store = KubernetesStore("1.34")
    inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}}
    for write in (store.create, store.apply):
        with pytest.raises(ApiError, match='namespaces "team" not found'):
            write(inside)
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert store.apply(inside)["metadata"]["namespace"] == "team"


def test_deleting_a_namespace_empties_it() -> None:
    store = KubernetesStore("1.34")
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}})
    store.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert not [key for key in store.objects if "team" in key]


def test_snapshots_hold_what_plain_pickle_does_not(tmp_path: Path) -> None:
    offset = 40
    odd = {
        "lock": threading.RLock(), "factory": defaultdict(lambda: offset + 2), "large": b"x" * 100_000,
    }  # fmt: skip
    with pytest.raises((TypeError, AttributeError)):
        pickle.dump(odd, io.BytesIO())
    state = {"odd": odd}
    snapshots = Snapshots(tmp_path, Contents(tmp_path / "contents"), lambda: state, state.update)
    assert not snapshots.load()
    snapshots.save()
    state.clear()
    assert snapshots.load()
    with state["odd"]["lock"]:
        assert state["odd"]["factory"]["missing"] == 42
    assert state["odd"]["large"] == b"x" * 100_000
    assert snapshots.file.stat().st_size < 50_000


def test_nothing_is_saved_once_the_directory_was_deleted(tmp_path: Path) -> None:
    state, folder = {"a": 1}, tmp_path / "sandbox"
    folder.mkdir()
    snapshots = Snapshots(folder, Contents(tmp_path / "contents"), lambda: state, state.update)
    snapshots.save()
    shutil.rmtree(folder)
    # That of the next sandbox.
    folder.mkdir()
    snapshots.save()
    assert list(folder.iterdir()) == []


def test_a_snapshot_of_another_version_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"a": 1}
    snapshots = Snapshots(tmp_path, Contents(tmp_path / "contents"), lambda: state, state.update)
    snapshots.save()
    monkeypatch.setattr("podwright.sandbox.server.persistence._FORMAT", 0)
    assert not snapshots.load()
    assert snapshots.foreign


def test_recorded_attributes_follow_the_schema() -> None:
    from podwright.sandbox.cloudformation.providers.base import Request

    class Nothing:
        endpoint, account = "", "123456789012"

        def client(self, service: str, region: str) -> Any:
            raise AssertionError(service)

    request = Request("AWS::Batch::JobQueue", "Q", "s", "id", REGION, {"JobQueueName": "q"}, Nothing())
    assert attributes_of(request)["JobQueueArn"] == "arn:aws:batch:us-west-2:123456789012:job-queue/q"


def eks_with(cluster: EksCluster) -> Eks:
    """The parts of the service that an update asks."""
    kubernetes = SimpleNamespace(set_version=lambda *_: None)
    parts = {"cluster": lambda *_: cluster, "nodes": lambda *_: [], "update_seconds": 0, "kubernetes": kubernetes}
    return cast(Eks, SimpleNamespace(**parts))


def test_an_eks_cluster_takes_one_update_at_a_time() -> None:
    cluster = EksCluster({"name": "c", "arn": "arn:c", "version": "1.34", "status": "ACTIVE"})
    first = new_update("VersionUpdate", [], now() + timedelta(hours=1))
    cluster.updates[first["id"]] = first
    with pytest.raises(Refusal, match="Cluster c is being updated") as refusal:
        update_version(eks_with(cluster), "us-west-2", {"name": "c", "version": "1.35"})
    assert refusal.value.code == "ResourceInUseException"
    first["until"] = now()
    assert update_version(eks_with(cluster), "us-west-2", {"name": "c", "version": "1.35"})["type"] == "VersionUpdate"


def test_an_add_on_that_could_not_be_installed_can_be_created_again() -> None:
    cluster = EksCluster({"name": "c", "arn": "arn:c", "version": "1.34", "status": "ACTIVE"})
    failures = [CommandError("no port is free", "stop a program"), None]

    class Api(EksResponse):
        """The API of one cluster, whose installations fail as long as there are failures."""

        region = REGION

        def __init__(self) -> None:
            self.current_account = "111122223333"

        def arguments(self) -> dict[str, Any]:
            associations = [{"serviceAccount": name, "roleArn": "arn:role"} for name in ("one", "two")]
            return {"clusterName": "c", "addonName": "cert-manager", "podIdentityAssociations": associations}

        def _cluster(self, key: str = "clusterName") -> EksCluster:
            return cluster

        def _install(self, cluster: str, addon: str) -> None:
            if failure := failures.pop(0):
                raise failure

    other = Api()._add_identity(cluster, {"clusterName": "c", "namespace": "kube-system", "serviceAccount": "three"})
    with pytest.raises(CommandError, match="no port is free"):
        Api().create_addon()
    assert (cluster.addons, [*cluster.identities.values()]) == ({}, [other])
    Api()._add_identity(cluster, {"clusterName": "c", "namespace": "kube-system", "serviceAccount": "two"})
    with pytest.raises(Refusal, match="Association already exists"):
        Api().create_addon()
    assert (cluster.addons, len(cluster.identities)) == ({}, 2)
    del cluster.identities[[*cluster.identities][-1]]
    Api().create_addon()
    addon = cluster.addons["cert-manager"]
    assert addon["status"] == "ACTIVE"
    owned = [item["associationArn"] for item in cluster.identities.values() if item["ownerArn"] == addon["addonArn"]]
    assert len(owned) == 2
    assert addon["podIdentityAssociations"] == owned
