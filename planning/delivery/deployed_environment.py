"""An environment as a deployment has it: with what the command line says of the numbers of nodes and of the time."""

from datetime import datetime

from ...config.settings.environment import Environment
from ..quota.overrides import with_overrides
from .canary import with_counts


def deployed_environment(environment: Environment, counts: str | None, at: str | None) -> Environment:
    """The environment with numbers of nodes as `counts_text` writes them, and with the quotas of a moment.

    Args:
        environment: As the file has it.
        counts: Numbers of nodes; those of the file without any.
        at: The moment in ISO 8601; without one the quotas are the file's own.
    """
    return with_overrides(with_counts(environment, counts), datetime.fromisoformat(at) if at else None)
