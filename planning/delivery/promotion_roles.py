"""The roles of a promotion: one for each thing that steps do in an environment's account, and what each may."""

from dataclasses import dataclass
from typing import Final

from ...config.catalog.facts import table
from ...config.catalog.preflight_checks import preflight_checks
from ...config.catalog.regions import region
from ...config.settings.environment import Environment
from .pipeline_steps import ExecutionRole

ROLES: Final[tuple[ExecutionRole, ...]] = ("read", "prove", "deploy")
"""The places that need a role in the environment's account."""
ENVIRONMENT_TAG: Final = "podwright:environment"
_PREFLIGHT: Final = "checks of preflight look for what is not podwright's; most of these calls support no resource"


@dataclass(frozen=True, slots=True)
class Permission:
    """What a role may do. Texts in braces stand for values of the environment."""

    actions: tuple[str, ...]
    """IAM actions."""
    resource: str
    """ARN, or `*`."""
    tagged: bool
    """Whether only resources with the environment's tag are meant."""
    because: str | None
    """Why a wildcard cannot be narrower."""

    def on(self, **values: str) -> str:
        """The ARN for an environment: partition, account, region, environment, qualifier."""
        return self.resource.format(**values)


def permissions(role: ExecutionRole) -> tuple[Permission, ...]:
    """What the role of `role` may do, by `data/promotion_actions.csv` and, to read, by the checks of preflight."""
    rows = [row for row in table("promotion_actions") if row["place"] == role]
    results = [
        Permission(tuple(row["actions"].split()), row["resource"], bool(row["tagged"]), row["why"] or None)
        for row in rows
    ]
    if role == "read":
        known = {action for permission in results if permission.resource == "*" for action in permission.actions}
        asked = {action for check in preflight_checks().values() for action in check.actions} - known
        results.append(Permission(tuple(sorted(asked)), "*", False, _PREFLIGHT))
    return tuple(results)


def role_name(pipeline: str, environment: str, role: ExecutionRole) -> str:
    """Name of a role in the environment's account. A role of another account must know it before it is made."""
    return f"{pipeline}-{environment}-{role}"


def role_arn(partition: str, account: str, path: str, name: str) -> str:
    """ARN of a role; `path` begins and ends with a slash."""
    return f"arn:{partition}:iam::{account}:role{path}{name}"


def step_role_arn(pipeline: str, environment: Environment, role: ExecutionRole) -> str:
    """ARN of the role that a step takes on for one thing in an environment's account."""
    partition, name = region(environment.region).partition, role_name(pipeline, environment.name, role)
    return role_arn(partition, environment.account, environment.iam.role_path, name)


def builder_name(pipeline: str, environment: str, role: ExecutionRole) -> str:
    """Name of the pipeline's own role that may take on the one of `role_name`, and is the only one that may."""
    return f"{pipeline}-pipeline-{environment}-{role}"
