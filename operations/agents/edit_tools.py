"""Tools that edit environment files: a proposal that writes nothing, and the writing of one that was shown."""

from typing import Annotated, Any, Final

from mcp_types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.loading.project import Project
from ..environments.new_project import Beginning
from . import audit
from .declared import About, Count, EnvironmentName, Word, tool
from .edits import Proposal, new_environment, proposed
from .replies import replied
from .session import Session

EditId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="of a proposal")]
_PROPOSAL: Final[dict[str, Any]] = {
    "edit_id": {"type": ["string", "null"], "description": "for write_edit; null where the result has errors"},
    "reason": {"type": "string"},
    "file": {"type": "string"},
    "diff": {"type": "string", "description": "unified"},
    "findings": {"type": "object", "required": ["before", "after"]},
    "cost": {"type": "object", "required": ["before", "after"]},
    "quotas": {"type": "array", "description": "those that change"},
    "valid": {"type": "boolean"},
}


class Setting(BaseModel):
    """One value of a file."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(max_length=200, description="dotted, such as instance_groups.h200.count")]
    value: Annotated[Any, Field(description="JSON; lists as a whole")]


class EditTools:
    """What is between a wish and a file."""

    def __init__(self, session: Session) -> None:
        """Edits files of the project of a session."""
        self._session = session

    @tool(About("Propose an edit", "podwright check ENV --json", more=_PROPOSAL))
    def propose_edit(
        self,
        environment: EnvironmentName,
        settings: Annotated[list[Setting], Field(min_length=1, max_length=50)],
        reason: Annotated[str, Field(max_length=500)],
    ) -> CallToolResult:
        """What setting values in a file would do: difference, findings, cost, quotas. Writes nothing; comments stay."""
        changes = [(setting.path, setting.value) for setting in settings]
        return self._shown(proposed(Project.at(self._session.project), environment, changes), reason)

    @tool(About("Propose an environment", "podwright init DIR --name ENV", more=_PROPOSAL))
    def propose_environment(
        self,
        environment: EnvironmentName,
        instance_type: Annotated[Word, Field(description="of the group `training`, such as ml.g5.12xlarge")],
        count: Count,
        reason: Annotated[str, Field(max_length=500)],
        region: Word = "us-west-2",
        zones: Annotated[
            tuple[Word, ...], Field(max_length=6, description="ids; default: the region's first two")
        ] = (),
        account: Annotated[str | None, Field(pattern=r"^\d{12}$", description="default: the sandbox's")] = None,
    ) -> CallToolResult:
        """The file of a new environment: a cluster with a group of so many instances. Writes nothing."""
        beginning = Beginning(
            environment, account or SANDBOX_ACCOUNT, region, zones, instance_type=instance_type, count=count
        )
        return self._shown(new_environment(Project.at(self._session.project), beginning), reason)

    @tool(
        About(
            "Write an edit",
            "an editor, and podwright check ENV",
            changes="file",
            more={"written": {"type": "string"}, "next": {"type": "string"}},
        )
    )
    def write_edit(self, environment: EnvironmentName, edit_id: EditId) -> CallToolResult:
        """Write a proposed edit into the environment's file, once, unless the file has changed since it was shown."""
        edit = self._session.edits.get(edit_id)
        if edit is None or edit.environment != environment:
            raise CommandError(f"no edit {edit_id} of {environment} waits", "propose it again: an edit is written once")
        del self._session.edits[edit_id]
        audit.record(self._session.project, tool="write_edit", environment=environment, id=edit_id, step="begun")
        edit.write()
        audit.record(self._session.project, tool="write_edit", environment=environment, id=edit_id, step="written")
        written = {"command": f"podwright check {environment}", "written": f"environments/{edit.file.name}"}
        return replied(self._session.place(environment) | written | {"next": f"podwright diff {environment}"})

    def _shown(self, proposal: Proposal, reason: str) -> CallToolResult:
        edit, id = proposal.edit, None
        if proposal.facts["valid"] and edit.before != edit.after:
            self._session.edits[id := edit.id] = edit
        origin = self._session.place_of(proposal.settings) if proposal.settings else self._session.place(None)
        about = {"command": f"podwright check {edit.environment}", "edit_id": id, "reason": reason}
        return replied(origin | about | proposal.facts)
