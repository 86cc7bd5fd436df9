"""What an environment is built of, read from its templates: network, nodes, storage, control plane, plans.

Numbers that no template has (addresses of a node, accelerators of a type) come from the rules and the catalog; the
dates of training plans from the file, or from SageMaker where they were asked for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...planning.network.cidrs import Subnet, usable
from ...planning.rules.network.addresses import control_plane_demand, demand_of_subnet
from ...planning.rules.network.network import planned
from .assembly import Assembly, Resource

Data = dict[str, Any]
_CHECKS: Final = {"InstanceStress": "stress", "InstanceConnectivity": "connectivity"}
_PLAN: Final = "Custom::PodwrightTrainingPlan"
# What stands in a region and in no subnet, with one word for it and the property that names it.
_REGIONAL: Final = {
    "AWS::S3::Bucket": ("S3 bucket", "BucketName"),
    "AWS::KMS::Key": ("KMS key", ""),
    "AWS::APS::Workspace": ("Prometheus", "Alias"),
    "AWS::Grafana::Workspace": ("Grafana", ""),
    "AWS::SNS::Topic": ("SNS topic", "TopicName"),
    "AWS::DynamoDB::Table": ("DynamoDB table", "TableName"),
    "AWS::Budgets::Budget": ("budget", ""),
    "AWS::CloudWatch::Dashboard": ("CloudWatch dashboard", ""),
    "AWS::CloudWatch::Alarm": ("CloudWatch alarm", ""),
    "AWS::Lambda::Function": ("Lambda function", ""),
    "AWS::SageMaker::MlflowApp": ("MLflow app", "Name"),
    "AWS::Batch::JobQueue": ("Batch queue", "JobQueueName"),
    "AWS::ECR::Repository": ("ECR repository", "RepositoryName"),
    "AWS::CodeBuild::Project": ("CodeBuild project", ""),
}


def architecture(environment: Environment, assembly: Assembly, windows: Mapping[str, list[Data]] | None = None) -> Data:
    """The drawing as data.

    Args:
        environment: The environment.
        assembly: Its templates.
        windows: The parts of training plans by name, as SageMaker has them now.
    """
    groups = list(_groups(environment, assembly))
    zones = _zones(environment, assembly)
    results = {
        "account": environment.account,
        "region": environment.region,
        "vpc": _vpc(environment, assembly),
        "zones": zones,
        "groups": groups,
        "file_systems": list(_file_systems(environment, assembly)),
        "control_plane": _control_plane(environment, assembly),
        "endpoints": _endpoints(assembly),
        "regional": _regional(assembly),
        "plans": list(_plans(environment, assembly, windows or {})),
    }
    accelerators = Counter[str]()
    for group in groups:
        if group["accelerator"]:
            accelerators[group["accelerator"]] += group["accelerators"] * group["count"]
    return results | {"nodes": sum(group["count"] for group in groups), "accelerators": dict(accelerators)}


def _vpc(environment: Environment, assembly: Assembly) -> Data:
    """The VPC, new or adopted."""
    adopted = environment.network.vpc
    made = assembly.of("AWS::EC2::VPC")
    name = made[0].path if made else ""
    cidrs = [vpc.properties["CidrBlock"] for vpc in made]
    cidrs += [more.properties["CidrBlock"] for more in assembly.of("AWS::EC2::VPCCidrBlock")]
    return {
        "name": adopted.id if adopted else name,
        "existing": adopted is not None,
        "cidrs": [str(adopted.cidr)] if adopted else cidrs,
        "internet": bool(assembly.of("AWS::EC2::InternetGateway")),
        "nat_gateways": len(assembly.of("AWS::EC2::NatGateway")),
        "flow_logs": bool(assembly.of("AWS::EC2::FlowLog")),
    }


def _zones(environment: Environment, assembly: Assembly) -> list[Data]:
    """Zones by id, each with its subnets by address."""
    types = environment_types(environment.instance_types)
    # A gateway belongs to the zone of its subnet.
    gateways = Counter(
        subnet.id
        for gateway in assembly.of("AWS::EC2::NatGateway")
        if (subnet := assembly.target(gateway.stack, gateway.properties["SubnetId"]))
    )
    results: dict[str, list[Data]] = {}
    for subnet in assembly.of("AWS::EC2::Subnet"):
        zone = subnet.properties["AvailabilityZoneId"]
        # The construct's id holds zone and role.
        role = subnet.path.split("/")[-2].removeprefix(f"{zone}-")
        further = role.startswith("nodes-")
        results.setdefault(zone, []).append(
            {
                "role": "nodes" if further else role.replace("-", " "),
                "further": further,
                "range": subnet.properties["CidrBlock"],
                "nat_gateways": gateways[subnet.id],
            }
        )
    # Subnets of an existing VPC are in no template.
    if environment.network.vpc:
        for subnet in planned(environment.network):
            results.setdefault(subnet.zone, []).append(
                {
                    "role": subnet.role.replace("_", " "),
                    "further": subnet.further,
                    "range": str(subnet.block),
                    "nat_gateways": 0,
                }
            )
    for zone, subnets in results.items():
        for subnet in subnets:
            subnet["usable"] = usable(IPv4Network(subnet["range"]))
            subnet |= _taken(environment, zone, subnet, types)
    return [
        # By address, as a person looks for a free range.
        {"id": zone, "subnets": sorted(subnets, key=lambda row: _address(row["range"]))}
        for zone, subnets in sorted(results.items())
    ]


def _taken(environment: Environment, zone: str, subnet: Data, types: Any) -> Data:
    """Addresses that are taken at the full count of all groups, and the arithmetic of it."""
    role = subnet["role"]
    if role == "nodes":
        need = demand_of_subnet(environment, Subnet(zone, "nodes", IPv4Network(subnet["range"])), types)
        return {"taken": need.full, "replacing": need.replacing, "sums": need.sums}
    if role == "control plane":
        parts = control_plane_demand(environment)
        sums = ", ".join(f"{count} {part}" for part, count in parts.items())
        return {"taken": sum(parts.values()), "replacing": None, "sums": sums}
    return {"taken": None, "replacing": None, "sums": ""}


def _address(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.partition("/")[0].split(".")))


def _groups(environment: Environment, assembly: Assembly) -> Iterator[Data]:
    """Instance groups of the cluster, in the order of the file."""
    types = environment_types(environment.instance_types)
    adopted = environment.network.vpc.subnets if environment.network.vpc else {}
    zone_of = {str(id): zone for zone, subnets in adopted.items() for id in (subnets.nodes, *subnets.more_nodes)}
    for cluster in assembly.of("AWS::SageMaker::Cluster"):
        ordinary = [(item, False) for item in cluster.properties.get("InstanceGroups", ())]
        restricted = [(item, True) for item in cluster.properties.get("RestrictedInstanceGroups", ())]
        # In the order of the file, which a template does not keep.
        order = list(environment.groups)
        for item, is_restricted in sorted(
            [*ordinary, *restricted], key=lambda pair: order.index(pair[0]["InstanceGroupName"])
        ):
            name = item["InstanceGroupName"]
            named = item.get("InstanceRequirements", {}).get("InstanceTypes") or [item["InstanceType"]]
            known = [row for each in named if (row := types.find(each))]
            # A group without a network of its own has the cluster's.
            subnets = item.get("OverrideVpcConfig", cluster.properties.get("VpcConfig", {})).get("Subnets", ())
            slurm = item.get("SlurmConfig", {})
            interface = item.get("NetworkInterface", {}).get("InterfaceType", "efa")
            efa = min((row.efa_interfaces for row in known), default=0)
            yield {
                "name": name,
                "types": named,
                "count": item["InstanceCount"],
                "min": item.get("MinInstanceCount"),
                "zones": sorted(
                    set(_zones_of(assembly, cluster, subnets, zone_of)) or environment.groups[name].zone_ids
                ),
                "capacity": _capacity(environment, item),
                "plan": environment.groups[name].plan,
                "accelerator": known[0].accelerator_name if known else "",
                # Of several types what is there in any case.
                "accelerators": min((row.accelerator_count for row in known), default=0),
                "efa": efa,
                "efa_only": bool(efa) and interface == "efa-only",
                "checks": [_CHECKS.get(check, check) for check in item.get("OnStartDeepHealthChecks", ())],
                "slurm": " ".join(
                    [*map(str.lower, filter(None, [slurm.get("NodeType")])), *slurm.get("PartitionNames", ())]
                ),
                "restricted": is_restricted,
            }


def _zones_of(
    assembly: Assembly, cluster: Resource, subnets: Iterable[Any], zone_of: Mapping[str, str]
) -> Iterator[str]:
    for subnet in subnets:
        made = assembly.target(cluster.stack, subnet)
        # A subnet of the user's own is named by its id, whose zone the file has.
        zone = made.properties["AvailabilityZoneId"] if made else zone_of.get(str(subnet))
        if zone:
            yield zone


def _capacity(environment: Environment, item: Mapping[str, Any]) -> str:
    """Where the group's instances come from. What the account team set aside has no word in a template."""
    group = environment.groups[item["InstanceGroupName"]]
    if "TrainingPlanArn" in item:
        return f"plan {group.plan}"
    if "Spot" in item.get("CapacityRequirements", {}):
        return "Spot"
    return "account team" if group.capacity == "account_team" else "on demand"


def _ways(policies: Data) -> str:
    """Which way files go: imported from S3, exported to it, or both."""
    ways = (bool(policies.get(each, {}).get("Events")) for each in ("AutoImportPolicy", "AutoExportPolicy"))
    return {(True, False): "←", (False, True): "→"}.get(tuple(ways), "⇄")  # type: ignore[arg-type]


def _file_systems(environment: Environment, assembly: Assembly) -> Iterator[Data]:
    """File systems and databases: what holds data and stands in a zone."""
    for system in assembly.of("AWS::FSx::FileSystem"):
        properties = system.properties
        size = properties.get("StorageCapacity")
        repositories = [
            f"{item.properties['FileSystemPath']} {_ways(item.properties['S3'])} "
            f"{assembly.text(item.stack, item.properties['DataRepositoryPath'])}"
            for item in assembly.of("AWS::FSx::DataRepositoryAssociation")
            if assembly.target(item.stack, item.properties["FileSystemId"]) == system
        ]
        subnets = [assembly.target(system.stack, subnet) for subnet in properties["SubnetIds"]]
        zones = [subnet.properties["AvailabilityZoneId"] for subnet in subnets if subnet]
        if properties["FileSystemType"] == "LUSTRE":
            name = system.path.split("/")[1].removeprefix("Lustre-")
            settings = environment.storage.lustres.get(name)
            yield {
                "name": name,
                "kind": "FSx for Lustre",
                "zones": zones or ([settings.zone] if settings and settings.zone else []),
                "facts": _lustre_facts(properties["LustreConfiguration"], size),
                "repositories": repositories,
            }
        else:
            throughput = properties["OpenZFSConfiguration"]["ThroughputCapacity"]
            yield {
                "name": "home",
                "kind": "FSx for OpenZFS",
                "zones": zones or sorted({str(subnet) for subnet in properties["SubnetIds"]}),
                "facts": [f"{size:,} GiB", f"{throughput:,} MB/s"],
                "repositories": [],
            }
    for name, lustre in environment.storage.lustres.items():
        if lustre.existing:
            yield {
                "name": name,
                "kind": "FSx for Lustre, adopted",
                "zones": [lustre.zone] if lustre.zone else [],
                "facts": [lustre.existing.id],
                "repositories": [],
            }
    home = environment.storage.home
    if home and home.openzfs.existing:
        yield {
            "name": "home",
            "kind": "FSx for OpenZFS, adopted",
            "zones": [home.openzfs.zone],
            "facts": [home.openzfs.existing.id],
            "repositories": [],
        }
    for database in assembly.of("AWS::RDS::DBCluster"):
        scaling = database.properties.get("ServerlessV2ScalingConfiguration", {})
        yield {
            "name": database.path.split("/")[1],
            "kind": "Aurora MySQL",
            "zones": [],
            "facts": [f"{scaling.get('MinCapacity', 0):g} to {scaling.get('MaxCapacity', 0):g} capacity units"],
            "repositories": [],
        }


def _lustre_facts(settings: Mapping[str, Any], size: int | None) -> list[str]:
    speed, pooled = settings.get("PerUnitStorageThroughput"), settings.get("ThroughputCapacity")
    results = [f"{size / 1024:,.1f} TiB".replace(".0 ", " ") if size else "intelligent tiering"]
    results += [f"{speed:,} MB/s/TiB"] if speed else []
    results += [f"{pooled:,} MB/s"] if pooled else []
    results += ["EFA"] if settings.get("EfaEnabled") else []
    iops = settings.get("MetadataConfiguration", {}).get("Iops")
    return results + ([f"{iops:,} metadata IOPS"] if iops else [])


def _control_plane(environment: Environment, assembly: Assembly) -> Data | None:
    """What schedules work: EKS, Slurm, or nothing where only queues of training jobs are."""
    existing = environment.cluster.eks.existing
    for cluster in assembly.of("AWS::EKS::Cluster"):
        config = cluster.properties["ResourcesVpcConfig"]
        return {
            "kind": f"EKS {cluster.properties['Version']}",
            "facts": [
                "API private" if not config.get("EndpointPublicAccess", True) else "API public, and private inside",
                "secrets encrypted" if cluster.properties.get("EncryptionConfig") else "",
            ],
            "parts": sorted(_installed(assembly)),
        }
    if environment.cluster.orchestrator == "slurm" and assembly.of("AWS::SageMaker::Cluster"):
        return {"kind": "Slurm", "facts": ["runs on the nodes of the cluster"], "parts": sorted(_installed(assembly))}
    if existing and environment.has_cluster:
        return {"kind": "EKS, adopted", "facts": [existing.name], "parts": sorted(_installed(assembly))}
    return None


def _installed(assembly: Assembly) -> Iterator[str]:
    """Add-ons and Helm releases, each with its version where the template pins one."""
    for addon in assembly.of("AWS::EKS::Addon"):
        yield " ".join(filter(None, (addon.properties["AddonName"], addon.properties.get("AddonVersion", ""))))
    for release in assembly.of("Custom::AWSCDK-EKS-HelmChart"):
        yield f"{release.properties['Release']} {release.properties.get('Version', '')}".strip()


def _endpoints(assembly: Assembly) -> Data:
    """Endpoints of the VPC, by the service's name without what all have."""
    results: dict[str, list[str]] = {"interface": [], "gateway": []}
    for endpoint in assembly.of("AWS::EC2::VPCEndpoint"):
        kind = str(endpoint.properties.get("VpcEndpointType", "Gateway")).lower()
        name = assembly.text(endpoint.stack, endpoint.properties["ServiceName"])
        # com.amazonaws.us-west-2.ecr.api is ecr.api to a reader.
        results.setdefault(kind, []).append(name.split(".", 3)[-1] if name.startswith("com.") else name)
    return {kind: sorted(names) for kind, names in results.items()}


def _regional(assembly: Assembly) -> list[Data]:
    """What stands in no subnet, counted by kind, with names where the template gives them."""
    results: dict[str, list[str]] = {}
    for resource in assembly.of(*_REGIONAL):
        # Names that only a deployment makes are left empty.
        kind, field = _REGIONAL[resource.type]
        results.setdefault(kind, []).append(assembly.text(resource.stack, resource.properties.get(field, "")))
    return [
        {"kind": kind, "count": len(results[kind]), "names": sorted(filter(None, results[kind]))}
        for kind, _ in _REGIONAL.values()
        if kind in results
    ]


def _plans(environment: Environment, assembly: Assembly, windows: Mapping[str, list[Data]]) -> Iterator[Data]:
    """Training plans of the templates, with their windows as far as somebody says when they are."""
    for resource in sorted(assembly.of(_PLAN), key=lambda each: each.properties["Plan"]):
        name = resource.properties["Plan"]
        plan = environment.training_plans[name]
        needs = [
            f"{need['Count']} × {need['InstanceType']} for {need['Group']}" for need in resource.properties["Needs"]
        ]
        results = {"name": name, "state": plan.state, "zone": plan.zone, "needs": needs}
        # What SageMaker says now is newer than what the file says.
        if name in windows:
            yield results | {"windows": windows[name], "source": "SageMaker"}
        elif plan.windows:
            parts = [
                _window(part.start, part.end, part.zone, part.count) | {"status": ""}
                for part in sorted(plan.windows, key=lambda part: part.start)
            ]
            yield results | {"windows": parts, "source": "file"}
        elif plan.start and plan.end:
            yield results | {"windows": [_window(plan.start, plan.end, plan.zone, plan.count)], "source": "file"}
        else:
            earliest = plan.start_after.isoformat() if plan.start_after else None
            latest = plan.end_before.isoformat() if plan.end_before else None
            wish = {"days": plan.days, "earliest": earliest, "latest": latest}
            yield results | {"windows": [], "source": "wish" if plan.state == "purchase" else "", "wish": wish}


def _window(start: Any, end: Any, zone: str, count: int | None) -> Data:
    return {"start": start.isoformat(), "end": end.isoformat(), "zone": zone, "count": count, "status": ""}
