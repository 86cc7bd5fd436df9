"""What follows for the rest of an environment from what its teams say of their place in Kubernetes."""

from ...config.settings.governance.team_access import TeamAccess
from ...config.settings.governance.teams import Governance
from ..quota.team_names import team_namespace


def team_access(governance: Governance) -> dict[str, TeamAccess]:
    """What teams say of their place in Kubernetes, by team; without the teams that say nothing."""
    return {name: team.access for name, team in governance.teams.items() if team.access}


def awaited_namespaces(governance: Governance) -> tuple[str, ...]:
    """The namespaces of teams that SageMaker makes, after it has answered that the quotas are there.

    All of them where podwright has objects in any; none with the other engines, where namespaces are podwright's.
    """
    if governance.engine != "hyperpod" or not team_access(governance):
        return ()
    return tuple(team_namespace("hyperpod", team) for team in sorted(governance.teams))


def names_identities(governance: Governance) -> bool:
    """Whether a team says who works in it, as a person or as a pod."""
    return any(access.roles or access.service_accounts for access in team_access(governance).values())


def isolates_networks(governance: Governance) -> bool:
    """Whether a team's network is closed, for which the cluster's network has to obey policies."""
    return any(access.network is not None for access in team_access(governance).values())
