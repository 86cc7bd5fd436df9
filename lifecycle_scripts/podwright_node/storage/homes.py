"""Home folders of the image's own users on the shared file system, which hides those of the image."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.steps import Step

FIRST_UID, LAST_UID = 1000, 59999
# Every node does this at once on one file system: the folder appears whole, under its name, by whoever is first.
_MAKE = 'rm -rf "$1" && cp -a "$2" "$1" && chown -R "$3" "$1" && chmod 700 "$1" && { mv -T "$1" "$4" || rm -rf "$1"; }'


def owners(node: Node) -> dict[str, str]:
    """`uid:gid` by home folder, of the users whose home is on the shared file system."""
    mount = node.facts["file_systems"]["home"]["path"] if node.facts["file_systems"]["home"] else None
    if mount is None:
        return {}
    rows = [line.split(":") for line in (node.read("/etc/passwd") or "").splitlines()]
    return {
        row[5]: f"{row[2]}:{row[3]}"
        for row in rows
        if len(row) == 7 and FIRST_UID <= int(row[2]) <= LAST_UID and row[5].startswith(f"{mount}/")
    }


def all_there(node: Node) -> bool:
    """Whether each has its folder."""
    return all(node.succeeds("test", "-d", str(node.path(folder))) for folder in owners(node))


def make(node: Node) -> None:
    """Make those that are missing, from /etc/skel."""
    for folder, owner in owners(node).items():
        if not node.succeeds("test", "-d", str(node.path(folder))):
            parent, _, name = folder.rpartition("/")
            temporary = node.path(f"{parent}/.{name}-{node.instance_id or 'node'}")
            paths = (str(temporary), str(node.path("/etc/skel")), owner, str(node.path(folder)))
            node.run("sh", "-c", _MAKE, "sh", *paths)


STEP = Step(
    "homes",
    applies_to=Only(also=lambda node: bool(node.group_facts.get("mounts_home"))),
    check=all_there,
    apply=make,
    needs=("home",),
)
