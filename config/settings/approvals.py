"""Approvals: change sets that somebody has looked at, by their digest."""

from typing import Annotated, Any

from pydantic import BeforeValidator, StringConstraints

from .base import Settings

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class ApprovedChange(Settings):
    """One approved change set. `podwright diff` prints what to write here."""

    digest: Digest
    """Digest of the change set. Any other change has another one."""
    names: tuple[Annotated[str, StringConstraints(min_length=1, max_length=255)], ...] = ()
    """What may be replaced, deleted, bought or made smaller: resources as stack/LogicalId, groups and training plans by
    name. A change set that does such a thing to something unnamed stays refused."""
    reason: Annotated[str, StringConstraints(min_length=10)] | None = None
    """Why, for whoever reads the file later."""


def _named(value: Any) -> Any:
    return {"digest": value} if isinstance(value, str) else value


ApprovedChanges = tuple[
    Annotated[ApprovedChange, BeforeValidator(_named, json_schema_input_type=Digest | ApprovedChange)], ...
]
"""Change sets that may be deployed, each as a digest, or as a mapping that names what it harms."""
