"""What others left in a VPC that is to go, and taking away what is nobody's any more.

Only a VPC that one of the stacks made and deletes is looked at. A network that an environment adopted is its owner's.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...config.errors import CommandError
from ..aws.account import Account
from ..aws.calls import change, find, get, pages
from ..output.moving import waiting_for
from .plan import Blocker

# GuardDuty's Runtime Monitoring makes an endpoint and a group with this tag in every VPC with nodes that it watches,
# and does not delete them with the nodes. Source: guardduty-cleanup in data/citations.csv.
_GUARDDUTY: Final = {"Key": "GuardDutyManaged", "Value": "true"}
# By whom an interface was made, by its description or tags; those that stay behind detached may be deleted.
_LEFT_BEHIND: Final = {
    "aws-K8S-": "the VPC CNI",
    "Amazon EKS ": "EKS",
    "AWS Lambda VPC ENI": "Lambda",
    "ELB ": "a load balancer",
}
_CNI_TAGS: Final = {"node.k8s.amazonaws.com/instance_id", "cluster.k8s.amazonaws.com/name"}
_OF_CONTROLLERS: Final = ("elbv2.k8s.aws/cluster", "ingress.k8s.aws/cluster", "kubernetes.io/cluster/")
_POLL_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 1200.0


def network_blockers(account: Account, stack: str, vpc: str, *, ours: Iterable[str] = ()) -> list[Blocker]:
    """What keeps `vpc`, which `stack` made, from being deleted. `ours` are ids of what goes with stacks."""
    known = set(ours)
    endpoints = _guardduty_endpoints(account, vpc)
    blockers = [
        Blocker(
            stack,
            "guardduty endpoint",
            item["VpcEndpointId"],
            f"GuardDuty made it in {vpc} and leaves it there",
            "podwright",
            "deleted before the network",
        )
        for item in endpoints
    ]
    blockers += [
        Blocker(
            stack,
            "guardduty group",
            group["GroupId"],
            f"GuardDuty's security group {group['GroupName']} in {vpc}",
            "podwright",
            "deleted with GuardDuty's endpoint",
        )
        for group in _guardduty_groups(account, vpc)
    ]
    blockers += _load_balancers(account, stack, vpc)
    blockers += _peerings(account, stack, vpc)
    blockers += _file_systems(account, stack, vpc, known)
    return blockers + _interfaces(account, stack, vpc, known)


def remove(account: Account, blockers: Iterable[Blocker], say: Callable[[str, str], object]) -> None:
    """Take away what podwright removes itself: endpoints first, then interfaces, then the groups that both used.

    Raises:
        CommandError: an endpoint of GuardDuty does not go.
    """
    mine = [item for item in blockers if item.by == "podwright"]
    if endpoints := [item.name for item in mine if item.kind == "guardduty endpoint"]:
        answer = change(account, "ec2", "delete_vpc_endpoints", VpcEndpointIds=endpoints)
        # The call succeeds where single endpoints are refused.
        for failure in answer.get("Unsuccessful", []):
            raise CommandError(
                f"GuardDuty's endpoint {failure['ResourceId']} is not deleted: {failure['Error']['Message']}",
                "delete it in the VPC console, then run the same command again",
            )
        _wait_until_gone(account, endpoints)
        say("guardduty", f"deleted {', '.join(endpoints)}")
    for item in mine:
        # After the endpoints, which own interfaces themselves.
        if item.kind == "interface":
            change(account, "ec2", "delete_network_interface", NetworkInterfaceId=item.name)
            say("interface", f"deleted {item.name}: {item.why}")
        elif item.kind == "peering":
            change(account, "ec2", "delete_vpc_peering_connection", VpcPeeringConnectionId=item.name)
            say("peering", f"deleted {item.name}: {item.why}")
    # Last: a group can go when no interface has it.
    for item in mine:
        if item.kind == "guardduty group":
            change(account, "ec2", "delete_security_group", GroupId=item.name)
            say("guardduty", f"deleted {item.name}")


def _wait_until_gone(account: Account, endpoints: list[str]) -> None:
    """Return once no endpoint is left. Raises CommandError where they stay."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    waiting = waiting_for(f"{', '.join(endpoints)} to go")
    while True:
        absent = ("InvalidVpcEndpointId.NotFound",)
        result = find(account, "ec2", "describe_vpc_endpoints", absent, VpcEndpointIds=endpoints)
        if result is None:
            # One that is gone is not found; with several, the others are asked for by themselves.
            for endpoint in endpoints if len(endpoints) > 1 else ():
                _wait_until_gone(account, [endpoint])
            return
        # EC2 shows an endpoint as deleted for a while before it knows it no more.
        if all(item["State"].lower() == "deleted" for item in result["VpcEndpoints"]):
            return
        if time.monotonic() > deadline:
            raise CommandError(
                f"{', '.join(endpoints)} do not go", "look at them in the VPC console, then run this again"
            )
        waiting.tick()
        time.sleep(_POLL_SECONDS)


def _of_vpc(vpc: str) -> list[dict[str, Any]]:
    return [{"Name": "vpc-id", "Values": [vpc]}]


def _guardduty_endpoints(account: Account, vpc: str) -> list[dict[str, Any]]:
    return [
        item
        for item in pages(account, "ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=_of_vpc(vpc))
        # One that is being deleted goes without us.
        if _GUARDDUTY in item.get("Tags", []) and item["State"].lower() not in ("deleted", "deleting")
    ]


def _guardduty_groups(account: Account, vpc: str) -> list[dict[str, Any]]:
    groups = pages(account, "ec2", "describe_security_groups", "SecurityGroups", Filters=_of_vpc(vpc))
    return [item for item in groups if _GUARDDUTY in item.get("Tags", [])]


def _load_balancers(account: Account, stack: str, vpc: str) -> list[Blocker]:
    """Load balancers in the VPC, of ELBv2 and classic ones, each with how to delete it."""
    result = list[Blocker]()
    for service, listed, network, key, named in (
        ("elbv2", "LoadBalancers", "VpcId", "LoadBalancerArn", "ResourceArns"),
        ("elb", "LoadBalancerDescriptions", "VPCId", "LoadBalancerName", "LoadBalancerNames"),
    ):
        # Neither service filters by VPC.
        for item in pages(account, service, "describe_load_balancers", listed):
            if item.get(network) == vpc:
                id = item[key]
                tags = get(account, service, "describe_tags", **{named: [id]})["TagDescriptions"][0]["Tags"]
                option = f"--load-balancer-{key.removeprefix('LoadBalancer').lower()} {id} --region {account.region}"
                how = f"aws {service} delete-load-balancer {option}"
                result.append(_balancer(stack, id, item["LoadBalancerName"], tags, how))
    return result


def _peerings(account: Account, stack: str, vpc: str) -> list[Blocker]:
    """Peering connections of the VPC; those that `podwright workers` made go without being asked for."""
    result = list[Blocker]()
    for item in pages(account, "ec2", "describe_vpc_peering_connections", "VpcPeeringConnections"):
        ends = {item["RequesterVpcInfo"]["VpcId"], item["AccepterVpcInfo"]["VpcId"]}
        if vpc not in ends or item["Status"]["Code"] not in ("active", "pending-acceptance", "provisioning"):
            continue
        id, why = item["VpcPeeringConnectionId"], f"peering of {vpc} with {' '.join(ends - {vpc})}"
        if any(tag["Key"] == "Name" and tag["Value"].startswith("podwright-") for tag in item.get("Tags", ())):
            how = (
                "deleted before the network; `podwright workers MANAGER --disconnect` before takes away routes as well"
            )
            result.append(Blocker(stack, "peering", id, f"{why}, made by `podwright workers`", "podwright", how))
        else:
            option = f"--vpc-peering-connection-id {id} --region {account.region}"
            how = f"`aws ec2 delete-vpc-peering-connection {option}`"
            result.append(Blocker(stack, "peering", id, f"{why}, of no stack that goes", "you", how))
    return result


def _balancer(stack: str, id: str, name: str, tags: list[dict[str, str]], how: str) -> Blocker:
    made = any(tag["Key"].startswith(_OF_CONTROLLERS) for tag in tags)
    why = f"load balancer {name} was made {'by a controller in the cluster' if made else 'outside of all stacks'}"
    first = "delete its Service or Ingress before the cluster, or " if made else ""
    return Blocker(stack, "load balancer", id, why, "you", f"{first}`{how}`")


def _file_systems(account: Account, stack: str, vpc: str, ours: set[str]) -> list[Blocker]:
    """File systems that no stack that goes has made, such as those of claims."""
    return [
        Blocker(
            stack,
            "file system",
            item["FileSystemId"],
            f"{item['FileSystemType']} file system of {item['StorageCapacity']:,} GiB in {vpc}, outside of the deleted "
            "stacks",
            "you",
            "delete the claim that made it, or `aws fsx delete-file-system --file-system-id "
            f"{item['FileSystemId']} --region {account.region}`; this deletes its data",
        )
        for item in pages(account, "fsx", "describe_file_systems", "FileSystems")
        if item.get("VpcId") == vpc and item["FileSystemId"] not in ours and item["Lifecycle"] != "DELETING"
    ]


def _interfaces(account: Account, stack: str, vpc: str, ours: set[str]) -> list[Blocker]:
    """Interfaces that nobody will delete: detached ones, and those of somebody's instances."""
    interfaces, accounted = list[Blocker](), ours | _of_resources(account, vpc)
    for item in pages(account, "ec2", "describe_network_interfaces", "NetworkInterfaces", Filters=_of_vpc(vpc)):
        id, message = item["NetworkInterfaceId"], item.get("Description", "")
        # EKS's own go with a cluster of ours, whose name ends their description.
        if id in accounted or (message.startswith("Amazon EKS ") and message.removeprefix("Amazon EKS ") in ours):
            continue
        attached = item.get("Attachment", {})
        if instance := attached.get("InstanceId"):
            if attached.get("InstanceOwnerId") == account.id:
                how = f"end it: `aws ec2 terminate-instances --instance-ids {instance} --region {account.region}`"
                why = f"interface {id} of instance {instance}, of no stack that goes"
                interfaces.append(Blocker(stack, "instance", instance, why, "you", how))
            # An instance of another account is a service's, such as a node of HyperPod, and goes with what it works
            # for.
            continue
        # What a service manages it takes away itself, some minutes after what it was made for.
        # EC2 lets nobody but the service delete what it manages.
        if item["Status"] != "available" or item.get("RequesterManaged"):
            continue
        maker = next((maker for word, maker in _LEFT_BEHIND.items() if message.startswith(word)), "")
        if _CNI_TAGS & {tag["Key"] for tag in item.get("TagSet", [])}:
            maker = "the VPC CNI"
        elif item.get("InterfaceType", "").startswith("efa"):
            maker = "EFA"
        if maker:
            why = f"{maker} left it behind, detached{f' ({message})' if message else ''}"
            interfaces.append(Blocker(stack, "interface", id, why, "podwright", "deleted before the network"))
        else:
            why = f"a detached interface of unknown origin{f' ({message})' if message else ''}"
            how = f"`aws ec2 delete-network-interface --network-interface-id {id} --region {account.region}`"
            interfaces.append(Blocker(stack, "interface", id, why, "you", how))
    return interfaces


def _of_resources(account: Account, vpc: str) -> set[str]:
    """Interfaces that go with what they belong to: endpoints, NAT gateways and file systems."""
    owners = pages(account, "ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=_of_vpc(vpc))
    owners += pages(account, "fsx", "describe_file_systems", "FileSystems")
    results = [item.get("NetworkInterfaceIds", []) for item in owners]
    gateways = pages(account, "ec2", "describe_nat_gateways", "NatGateways", Filter=_of_vpc(vpc))
    results += [
        [address["NetworkInterfaceId"]]
        for item in gateways
        for address in item.get("NatGatewayAddresses", [])
        if "NetworkInterfaceId" in address
    ]
    return {interface for interfaces in results for interface in interfaces}
