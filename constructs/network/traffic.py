"""Traffic between security groups, opened at both ends by group id.

EFA traffic is matched by rules that name a group and by no other: an address range, be it 0.0.0.0/0, does not let it
pass. CDK's `SecurityGroup` leaves such an egress rule out when the group allows all outbound traffic, so the rules
are resources of their own here. Source: Amazon EC2 User Guide, "Prepare an EFA-enabled security group", 2026-11.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


@dataclass(frozen=True, slots=True)
class Ports:
    """A protocol and an inclusive range of ports."""

    protocol: str
    """tcp, udp, or -1 for all."""
    first: int | None = None
    last: int | None = None

    @classmethod
    def of(cls, protocol: str, ports: str) -> "Ports":
        """Ports written as `988` or `1018-1023`."""
        first, _, last = ports.partition("-")
        return cls(protocol, int(first), int(last or first))

    def __str__(self) -> str:
        return "all" if self.first is None else f"{self.protocol}-{self.first}-{self.last}"


ALL = Ports("-1")
"""Every protocol and port."""


class Traffic(Construct):
    """Egress from `source` to `target` and ingress at `target` from `source`, for each of `ports`.

    The rules belong to the stack of `scope`, so groups of earlier stacks can be given. Source and target may be one.

    Example:
        group = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
        Traffic(stack, "AmongNodes", source=group, target=group, ports=[ALL], description="EFA among nodes")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: ec2.ISecurityGroup,
        target: ec2.ISecurityGroup,
        ports: Iterable[Ports],
        description: str,
        removal_policy: cdk.RemovalPolicy | None = None,
    ) -> None:
        """Defines the rules.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            source: Group of those who open connections.
            target: Group of those who accept them.
            ports: What is let through.
            description: Of every rule; EC2 takes letters, digits, spaces and a few signs.
            removal_policy: Whether the rules survive their stack, as a retained group that names itself needs; they go
                with it when absent.
        """
        super().__init__(scope, construct_id)
        ports = list(ports)
        self._among_themselves = source is target and ALL in ports
        self._source = source

        self.rules: list[cdk.CfnResource] = []
        """The rules. FSx looks at them when it creates a file system, so that has to wait for them."""
        # Read once: each is a call into the CDK's process.
        source_id, target_id = source.security_group_id, target.security_group_id
        for opened in ports:
            egress = ec2.CfnSecurityGroupEgress(
                self,
                f"egress-{opened}",
                group_id=source_id,
                destination_security_group_id=target_id,
                ip_protocol=opened.protocol,
                from_port=opened.first,
                to_port=opened.last,
                description=description,
            )
            ingress = ec2.CfnSecurityGroupIngress(
                self,
                f"ingress-{opened}",
                group_id=target_id,
                source_security_group_id=source_id,
                ip_protocol=opened.protocol,
                from_port=opened.first,
                to_port=opened.last,
                description=description,
            )
            self.rules += [egress, ingress]
        if removal_policy is not None:
            for rule in self.rules:
                rule.apply_removal_policy(removal_policy)

    @staticmethod
    def opens_to_itself(group: ec2.ISecurityGroup) -> bool:
        # By reference: a group of another stack is another construct.
        """Whether a construct beside `group` opens everything within it already, as that of our networks does."""
        scope = group.node.scope
        return scope is not None and any(
            isinstance(child, Traffic) and child._among_themselves and child._source is group
            for child in scope.node.children
        )
