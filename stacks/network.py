"""The stack under everything: the key and the network."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.network.network import EnvironmentNetwork
from ..constructs.storage.key import EnvironmentKey
from ..planning.network.endpoints import features
from ..planning.resolved import ResolvedEnvironment
from .adopted import keep_deployable


class NetworkStack(cdk.Stack):
    """Key and network of an environment. Stateful: nodes and file systems stand in its subnets.

    What other stacks may need is exported whether one uses it today or not, so a group that moves to another zone
    never asks CloudFormation to drop an export that the cluster stack still imports.
    """

    def __init__(self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment) -> None:
        """Defines the stack of an environment."""
        environment = resolved.environment
        protection, settings = environment.protection, environment.network
        super().__init__(
            scope, construct_id, termination_protection=protection == "retain", description="Key and network"
        )

        self.key = EnvironmentKey(self, "Key", settings=environment.storage, protection=protection).key
        """Encrypts everything of the environment at rest."""
        self.network = EnvironmentNetwork(
            self,
            "Network",
            settings=settings,
            features=features(environment),
            endpoint_zones=resolved.endpoint_zones,
            protection=protection,
            key=self.key,
        )
        """VPC, subnets and node security group."""

        own = [] if environment.storage.kms_key else [self.key.key_arn]
        # Of an adopted VPC the ids are in the file, and no stack has to hand them on.
        if settings.vpc is None:
            subnets = [*self.network.node_subnets.values(), *self.network.control_plane_subnets.values()]
            subnets += [subnet for further in self.network.more_node_subnets.values() for subnet in further]
            own += [self.network.vpc.vpc_id, *(subnet.subnet_id for subnet in subnets)]
        if settings.vpc is None or settings.vpc.security_group is None:
            own.append(self.network.node_security_group.security_group_id)
        for value in own:
            self.export_value(value)
        keep_deployable(self)
