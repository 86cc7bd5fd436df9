"""EC2 security groups and their rules, and what all EC2 resources share: tags, and interfaces that hold them."""

from typing import Any

from ...protocol.json_objects import JsonObject
from .base import HandlerError, Outcome, Provider, Request

_ANY_EGRESS = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}


def tag(request: Request, physical_id: str) -> JsonObject:
    """Put the template's tags on the resource."""
    tags = [{"Key": str(tag["Key"]), "Value": str(tag["Value"])} for tag in request.properties.get("Tags", [])]
    if tags:
        request.client("ec2").create_tags(Resources=[physical_id], Tags=tags)
    return {}


def refuse_while_in_use(request: Request, filter_name: str, kind: str) -> None:
    """Network interfaces (a file system's, a node's) keep subnets and security groups alive."""
    network_interfaces = request.client("ec2").describe_network_interfaces(
        Filters=[{"Name": filter_name, "Values": [request.physical_id]}]
    )["NetworkInterfaces"]
    if network_interfaces:
        # Source of the words: EC2's DependencyViolation error.
        message = (
            f"The subnet '{request.physical_id}' has dependencies and cannot be deleted."
            if kind == "subnet"
            else f"resource {request.physical_id} has a dependent object"
        )
        raise HandlerError.saying(message)


class SecurityGroup:
    """AWS::EC2::SecurityGroup with inline rules. Rules given for egress replace EC2's open default."""

    def create(self, request: Request) -> Outcome:
        """Create the group and its rules."""
        ec2, properties = request.client("ec2"), request.properties
        group = ec2.create_security_group(
            GroupName=properties.get("GroupName") or request.name(255),
            Description=properties["GroupDescription"],
            **({"VpcId": properties["VpcId"]} if "VpcId" in properties else {}),
        )["GroupId"]
        if properties.get("SecurityGroupEgress"):
            self._revoke(ec2, group, "egress", [_ANY_EGRESS])
        self._authorize(ec2, group, "ingress", properties.get("SecurityGroupIngress", []))
        self._authorize(ec2, group, "egress", properties.get("SecurityGroupEgress", []))
        tag(request, group)
        return Outcome(group, {"GroupId": group, "Id": group, "VpcId": properties.get("VpcId", "")})

    def update(self, request: Request) -> Outcome:
        """Exchange the inline rules that changed."""
        ec2, group = request.client("ec2"), request.physical_id
        for direction, key, default in (
            ("ingress", "SecurityGroupIngress", []),
            ("egress", "SecurityGroupEgress", [_ANY_EGRESS]),
        ):
            old, new = request.previous.get(key) or default, request.properties.get(key) or default
            self._revoke(ec2, group, direction, [rule for rule in old if rule not in new])
            self._authorize(ec2, group, direction, [rule for rule in new if rule not in old])
        tag(request, group)
        return Outcome(group, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the group, unless something still uses it."""
        refuse_while_in_use(request, "group-id", "group")
        request.client("ec2").delete_security_group(GroupId=request.physical_id)

    def _authorize(self, ec2: Any, group: str, direction: str, rules: list[JsonObject]) -> None:
        for rule in rules:
            getattr(ec2, f"authorize_security_group_{direction}")(GroupId=group, IpPermissions=[permission(rule)])

    def _revoke(self, ec2: Any, group: str, direction: str, rules: list[JsonObject]) -> None:
        for rule in rules:
            getattr(ec2, f"revoke_security_group_{direction}")(GroupId=group, IpPermissions=[permission(rule)])


def permission(rule: JsonObject) -> JsonObject:
    """A template's rule as the API's IpPermission."""
    described = {"Description": rule["Description"]} if "Description" in rule else {}
    result: JsonObject = {"IpProtocol": str(rule["IpProtocol"])}
    for key in ("FromPort", "ToPort"):
        if key in rule:
            result[key] = int(rule[key])
    peer_group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    peer_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    if "CidrIp" in rule:
        result["IpRanges"] = [{"CidrIp": rule["CidrIp"], **described}]
    elif "CidrIpv6" in rule:
        result["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"], **described}]
    elif peer_list:
        result["PrefixListIds"] = [{"PrefixListId": peer_list, **described}]
    elif peer_group:
        result["UserIdGroupPairs"] = [{"GroupId": peer_group, **described}]
    return result


class SecurityGroupRule:
    """AWS::EC2::SecurityGroupIngress and …Egress: a rule as a resource of its own."""

    def __init__(self, direction: str):
        self.direction = direction

    def create(self, request: Request) -> Outcome:
        """Add the rule."""
        answer = getattr(request.client("ec2"), f"authorize_security_group_{self.direction}")(
            GroupId=request.properties["GroupId"], IpPermissions=[permission(request.properties)]
        )
        rules = answer.get("SecurityGroupRules") or [{}]
        rule = rules[0].get("SecurityGroupRuleId") or request.name()
        return Outcome(rule, {"Id": rule})

    def update(self, request: Request) -> Outcome:
        """Only the description can change in place."""
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the rule out; a group that is gone took it along."""
        getattr(request.client("ec2"), f"revoke_security_group_{self.direction}")(
            GroupId=request.properties["GroupId"], IpPermissions=[permission(request.properties)]
        )


SECURITY_GROUPS: dict[str, Provider] = {
    "AWS::EC2::SecurityGroup": SecurityGroup(),
    "AWS::EC2::SecurityGroupIngress": SecurityGroupRule("ingress"),
    "AWS::EC2::SecurityGroupEgress": SecurityGroupRule("egress"),
}
