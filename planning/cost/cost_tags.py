"""Tags by which bills tell environments apart."""

from typing import Final

from ...config.settings.environment import Environment

ENVIRONMENT_TAG: Final = "podwright:environment"
"""Key of the tag that everything of an environment carries; its value is the environment's name."""


def cost_tag_keys(environment: Environment) -> tuple[str, ...]:
    """Keys of the tags that have to be active as cost allocation tags in the account that pays."""
    return (ENVIRONMENT_TAG, *environment.tags)
