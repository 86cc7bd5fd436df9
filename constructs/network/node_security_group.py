"""The security group of nodes: everything among themselves, as EFA needs."""

from typing import cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..common.arguments import checked
from ..common.protection import Protection, removal_policy
from .traffic import ALL, Traffic

# On a group that has been completed, so that nobody completes it twice. It is in no template.
_OPEN = "podwright:open-to-itself"


@jsii.implements(ec2.IConnectable)
class NodeSecurityGroup(Construct):
    """A security group in which EFA works: a new one, or a given one that gets the rules that it lacks.

    EFA needs a rule for all traffic to the group and one from it, each naming the group itself. A rule for an address
    range does not do, and CDK's own group leaves the outgoing one away where all outbound traffic is allowed. A new
    group lets nodes open any connection besides.

    A given group keeps its rules and gets these two, unless a network of podwright's has given it them, or `complete`
    says that it has them: EC2 refuses a rule that is there.

    Example:
        ordinary = ec2.SecurityGroup(stack, "Ordinary", vpc=vpc)
        group = NodeSecurityGroup(stack, "Nodes", vpc=vpc, existing=ordinary).security_group
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        existing: ec2.ISecurityGroup | None = None,
        complete: bool = False,
        protection: Protection = "destroy",
    ) -> None:
        """Defines the group, or what it lacks.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            vpc: The VPC of a new group.
            existing: A group to use instead.
            complete: Whether the existing group has the two rules already.
            protection: Whether a new group survives its stack.

        Raises:
            InvalidSettings: something other than a VPC or a security group.
        """
        super().__init__(scope, construct_id)
        group = existing or self._create(vpc, protection)
        self.security_group: ec2.ISecurityGroup = group
        """The group."""
        self.rules: Traffic | None = None
        """The rules that were added; what runs over EFA waits for them."""
        if existing is not None:
            # Metadata of the construct: two clusters may be given the same group.
            complete |= any(entry.type == _OPEN for entry in group.node.metadata)
        if not complete and not Traffic.opens_to_itself(group):
            group.node.add_metadata(_OPEN, self.node.path)
            self.rules = Traffic(
                self,
                "AmongNodes",
                source=group,
                target=group,
                ports=[ALL],
                description="EFA and all else among nodes",
                # Rules on a group of somebody's go with the stack that added them.
                removal_policy=None if existing else removal_policy(protection),
            )

    @property
    def connections(self) -> ec2.Connections:
        """What else the nodes may talk to is added here."""
        return ec2.Connections(security_groups=[self.security_group])

    def _create(self, vpc: ec2.IVpc, protection: Protection) -> ec2.ISecurityGroup:
        group = ec2.SecurityGroup(self, "Resource", vpc=vpc, description="Nodes: everything among themselves")
        group.apply_removal_policy(removal_policy(protection))
        cdk.Tags.of(group).add("Name", self.node.path)
        return cast(ec2.ISecurityGroup, group)
