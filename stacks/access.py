"""The stack of people and pods: who works with the jobs of a team, and what its pods may do in AWS."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.governance.team_access import TeamIdentities, TeamRoles
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.resolved import ResolvedEnvironment
from .eks import EksStack
from .network import NetworkStack
from .platform import PlatformStack
from .storage import StorageStack


class AccessStack(cdk.Stack):
    """Access entries of teams, and the IAM roles of their service accounts. Stateless.

    Apart from the stack of governance, because a stack holds 500 resources and both grow with the teams.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack,
        platform: PlatformStack | None,
    ) -> None:
        """Defines the stack of an environment with teams that say who works in them."""
        super().__init__(scope, construct_id, description="Access of teams: IAM roles of people and of pods")
        governance, cluster = resolved.environment.governance, eks.control_plane.cluster
        TeamRoles(self, "Roles", cluster_name=cluster.cluster_name, teams=governance.teams)
        identities = TeamIdentities(
            self,
            "Identities",
            engine=governance.engine or "hyperpod",
            teams=governance.teams,
            cluster_name=cluster.cluster_name,
            cluster_arn=cluster.cluster_arn,
            checkpoints=storage.checkpoint_bucket,
            key=network.key,
            mlflow_arn=platform.mlflow_arn if platform else None,
        )
        self.roles = identities.roles
        """ARNs of the roles of service accounts by `TEAM/SERVICE ACCOUNT`."""
        outputs = Construct(self, "Values")
        for name, arn in self.roles.items():
            # A slash cannot stand in the id of an output.
            cdk.CfnOutput(outputs, name.replace("/", "."), value=arn, description=f"{OUTPUT_DESCRIPTION}roles.{name}")
