"""Collecting a bundle from an account: what AWS and Kubernetes say of an environment's cluster, secrets taken out.

Only calls that read are made; a private Kubernetes API takes a run of kubectl in the runner, which reads too. What
cannot be looked at is named with the reason, and the rest continues.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.redact import redact
from ...config.settings.environment import Environment
from ..aws.account import Account, Patience
from ..aws.calls import Reader
from ..aws.deployed import eks_cluster_name
from ..aws.quarantines import quarantines
from ..aws.unseen import Unseen
from ..cdk.deployment import deployed_stacks
from .bundle import INDEX, Bundle, Index
from .collect_kubernetes import collect_kubernetes
from .collect_logs import collect_logs
from .collection import Collection
from .scene import scene_of

_DAY: Final = timedelta(days=1)
_MOST_EVENTS: Final = 500
_MOST_DETAILS: Final = 60
"""Of events and of nodes, the newest: each takes a call."""
_CALLS_AT_ONCE: Final = 8
_ABSENT: Final = ("ResourceNotFound", "ResourceNotFoundException", "ValidationException")


def collect(environment: Environment, account: Account, project: Path, *, runner: bool = True) -> Bundle:
    """The bundle of an environment. With `runner`, a private Kubernetes API is read from inside the VPC.

    Raises:
        CommandError: nothing of the environment is there.
    """
    now = datetime.now(UTC)
    # More patience than a check has: a bundle is taken once, and somebody else reads it later.
    collection = Collection(account.reader(Patience(3, 20, attempts=4, connections=16)), now)
    name = environment.cluster.name
    cluster = collection.take(
        "cluster", lambda: collection.aws.find("sagemaker", "describe_cluster", ("ResourceNotFound",), ClusterName=name)
    )
    stacks = _stacks(collection, environment, account, project)
    # Where neither could be asked, it may well be there.
    if not cluster and not stacks and not {"cluster", "stacks"} & collection.unseen.keys():
        raise CommandError(
            f"there is no cluster {name} in {account}, and no stack of {environment.name}",
            f"`podwright deploy {environment.name}` makes them",
        )
    if cluster:
        _cluster(collection, cluster)
        collection.take("quarantines", lambda: _quarantines(environment, account))
    if environment.cluster.orchestrator == "eks":
        _eks(collection, environment, account)
        collect_kubernetes(collection, environment, account, project, runner=runner)
    index = Index(
        podwright=version("podwright"),
        taken=now,
        cluster=name,
        environment=environment.name,
        orchestrator=environment.cluster.orchestrator,
        account=account.id,
        region=account.region,
    )
    if cluster:
        nodes = scene_of(Bundle(index, collection.files)).nodes.values()
        collect_logs(collection, cluster, {node.id for node in nodes if not node.healthy})
    files, counts = redact(collection.files)
    unseen, redacted = dict(sorted(collection.unseen.items())), dict(sorted(counts.items()))
    index = index.model_copy(update={"unseen": unseen, "redacted": redacted})
    return Bundle.of({INDEX: index.model_dump_json(indent=1) + "\n", **files})


def _cluster(collection: Collection, cluster: dict[str, Any]) -> None:
    """Take what AWS says of a cluster: nodes with details of the unhealthy, plans, quotas and network."""
    aws, name = collection.aws, cluster["ClusterName"]
    groups = [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]
    nodes = collection.take("nodes", lambda: _listed(aws, "list_cluster_nodes", "ClusterNodeSummaries", name)) or {}
    unhealthy = [
        node["InstanceId"]
        for node in nodes.get("ClusterNodeSummaries", ())
        # A node may run and still have a message about what is wrong with it.
        if node["InstanceStatus"]["Status"] != "Running" or node["InstanceStatus"].get("Message")
    ]
    collection.each(
        "node_details",
        unhealthy[:_MOST_DETAILS],
        lambda id: aws.find("sagemaker", "describe_cluster_node", _ABSENT, ClusterName=name, NodeId=id),
    )
    # HyperPod keeps events of such clusters only.
    if cluster.get("NodeProvisioningMode") == "Continuous":
        _events(collection, name)
    plans = sorted({group["TrainingPlanArn"] for group in groups if group.get("TrainingPlanArn")})
    collection.each(
        "plans", plans, lambda arn: aws.find("sagemaker", "describe_training_plan", _ABSENT, TrainingPlanName=arn)
    )
    if (cluster.get("Orchestrator") or {}).get("Eks"):
        _quotas(collection, cluster["ClusterArn"])
    elif cluster.get("NodeProvisioningMode") == "Continuous":
        collection.take("extensions", lambda: _extensions(aws, cluster["ClusterArn"]))
    _network(collection, cluster, groups)
    collection.take(
        "service_quotas",
        lambda: {
            "Quotas": [
                quota
                for quota in aws.pages("service-quotas", "list_service_quotas", "Quotas", ServiceCode="sagemaker")
                # SageMaker has thousands of quotas, of which these are HyperPod's.
                if "cluster" in quota.get("QuotaName", "").lower()
            ]
        },
    )


def _quarantines(environment: Environment, account: Account) -> dict[str, Any] | None:
    return {id: asdict(item) for id, item in quarantines(environment, account).items()} or None


def _events(collection: Collection, name: str) -> None:
    """Take the events of a day with details of all but the informational, and the operations."""
    aws = collection.aws
    events = collection.take(
        "events",
        lambda: {
            "Events": aws.pages(
                "sagemaker",
                "list_cluster_events",
                "Events",
                until=lambda result: len(result) >= _MOST_EVENTS,
                ClusterName=name,
                EventTimeAfter=collection.now - _DAY,
                SortBy="EventTime",
                SortOrder="Descending",
            )
        },
    )
    # Informational events say that something went as it should.
    bad = [event["EventId"] for event in (events or {}).get("Events", ()) if event.get("EventLevel") != "Info"]
    collection.each(
        "event_details",
        bad[:_MOST_DETAILS],
        lambda id: (aws.find("sagemaker", "describe_cluster_event", _ABSENT, ClusterName=name, EventId=id) or {}).get(
            "EventDetails"
        ),
    )
    collection.take("operations", lambda: _listed(aws, "list_cluster_operations", "ClusterOperationSummaries", name))


def _quotas(collection: Collection, arn: str) -> None:
    """Take the quotas of teams and the scheduler's priorities, each described in full."""
    for source, kind, name in (
        ("compute_quotas", "ComputeQuota", "compute_quota"),
        ("scheduler", "ClusterSchedulerConfig", "cluster_scheduler_config"),
    ):
        collection.take(source, partial(_described, collection.aws, arn, kind, name))


def _described(aws: Reader, arn: str, kind: str, name: str) -> dict[str, Any]:
    id = f"{kind}Id"
    summaries = aws.pages("sagemaker", f"list_{name}s", f"{kind}Summaries", ClusterArn=arn)
    return {f"{kind}s": [aws.get("sagemaker", f"describe_{name}", **{id: item[id]}) for item in summaries]}


def _extensions(aws: Reader, arn: str) -> dict[str, Any]:
    pages = aws.pages("sagemaker", "list_cluster_extensions", "Extensions", ClusterArn=arn)
    return {
        "ClusterExtensions": [
            aws.get("sagemaker", "describe_cluster_extension", ClusterArn=arn, ExtensionArn=item["ExtensionArn"])
            for item in pages
        ]
    }


def _network(collection: Collection, cluster: dict[str, Any], groups: list[dict[str, Any]]) -> None:
    """Take subnets and security groups that the cluster or a group names, and the file systems of their VPCs."""
    aws = collection.aws
    locations = [cluster.get("VpcConfig") or {}, *(group.get("OverrideVpcConfig") or {} for group in groups)]
    subnets = sorted({id for file in locations for id in file.get("Subnets", ())})
    rules = sorted({id for file in locations for id in file.get("SecurityGroupIds", ())})
    result: Any = None
    if subnets:
        result = collection.take("subnets", lambda: aws.get("ec2", "describe_subnets", SubnetIds=subnets))
    if rules:
        collection.take("security_groups", lambda: aws.get("ec2", "describe_security_groups", GroupIds=rules))
    networks = {subnet["VpcId"] for subnet in (result or {}).get("Subnets", ()) if subnet.get("VpcId")}
    collection.take(
        "file_systems",
        lambda: {
            "FileSystems": [
                system
                for system in aws.pages("fsx", "describe_file_systems", "FileSystems")
                if not networks or system.get("VpcId") in networks
            ]
        },
    )


def _stacks(collection: Collection, environment: Environment, account: Account, project: Path) -> list[Any]:
    """The environment's stacks; with the events of those that failed among the files."""
    stacks = collection.take(
        "stacks",
        lambda: {
            "Stacks": [item.description for item in deployed_stacks(account, environment.name, project, nested=True)]
        },
    )
    failed = [
        stack["StackName"]
        for stack in (stacks or {}).get("Stacks", ())
        if "FAILED" in stack["StackStatus"] or "ROLLBACK" in stack["StackStatus"]
    ]
    collection.each(
        "stack_events",
        failed,
        lambda name: collection.aws.pages(
            "cloudformation",
            "describe_stack_events",
            "StackEvents",
            until=lambda result: len(result) >= _MOST_EVENTS,
            StackName=name,
        ),
    )
    return (stacks or {}).get("Stacks", [])


def _eks(collection: Collection, environment: Environment, account: Account) -> None:
    """Take the control plane and its add-ons."""
    aws = collection.aws
    result = collection.take(
        "eks_cluster", lambda: aws.get("eks", "describe_cluster", name=eks_cluster_name(account, environment))
    )
    if not result:
        return
    name = result["cluster"]["name"]
    try:
        addons = aws.pages("eks", "list_addons", "addons", clusterName=name)
    except Unseen as error:
        collection.unseen["addons"] = str(error)
        return
    collection.each(
        "addons", addons, lambda addon: aws.get("eks", "describe_addon", clusterName=name, addonName=addon)["addon"]
    )


def _listed(aws: Reader, operation: str, key: str, cluster: str) -> dict[str, Any]:
    return {key: aws.pages("sagemaker", operation, key, ClusterName=cluster)}
