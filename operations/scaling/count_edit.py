"""The number of nodes of a group, as a change of the environment's own file.

A group that a file extends is not changed where it stands, for other environments have it too: the file that is scaled
gets a `count` of its own, which lies over the shared one (decision 41).
"""

from pathlib import Path
from typing import Any

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.source import read_source
from ..capacity.plan_file import FileEdit, NotWritten, edit_of, lines


def count_edit(file: Path, loaded: LoadedEnvironment, group: str, count: int) -> FileEdit:
    """The change of `file` that gives a group so many nodes. Comments stay.

    Raises:
        CommandError: the file cannot take it, as where the group is an alias; it says what to write by hand, and where.
    """
    section = "instance_groups" if group in loaded.environment.instance_groups else "restricted_instance_groups"
    own = read_source(file).data or {}
    groups = own.get(section)
    path: tuple[str, ...] = (section, group)
    values: dict[str, Any] = {"count": count}
    if not isinstance(groups, dict) or group not in groups:
        path, values = (section,), {group: values}
    if section not in own:
        path, values = (), {section: values}
    try:
        return edit_of(file, path, values, shown=loaded.source.file, own=True)
    except NotWritten as problem:
        position = loaded.source.position((section, group, "count"))
        by_hand = lines({section: {group: {"count": count}}}, 4)
        raise CommandError(
            f"{position}: the count of {group} cannot be changed in place: {problem}",
            f"write this into {loaded.source.file} by hand, and run this again:\n{by_hand}",
        ) from None
