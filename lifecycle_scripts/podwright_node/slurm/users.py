"""Accounts of people, with the ids of the environment: files on shared storage have the same owner on every node.

Public keys lie in a folder of the node that only root writes, not in the home folders: a key that leaves the
environment opens no new node, and no two nodes write the same file. People's own ~/.ssh/authorized_keys still count.
Accounts that have left the environment stay until the node is replaced; their keys go at once.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.steps import Step

KEYS = "/etc/ssh/podwright_keys"
SSHD = "/etc/ssh/sshd_config.d/30-podwright-users.conf"
SSHD_TEXT = f"AuthorizedKeysFile .ssh/authorized_keys {KEYS}/%u\n"


def home_folder(node: Node) -> str:
    """The folder above the home folders: on shared storage where there is any."""
    systems = node.facts["file_systems"]
    if systems["home"]:
        return systems["home"]["path"]
    lustre = [system["path"] for _, system in sorted(systems["lustre"].items())]
    return f"{lustre[0]}/home" if lustre else "/home"


def are_there(node: Node) -> bool:
    """Whether every account, group, home folder and key is as the environment says."""
    return not list(_missing(node))


def make(node: Node) -> None:
    """Make what is missing."""
    for kind, entry in _missing(node):
        MAKERS[kind](node, entry)


def _missing(node: Node) -> list[tuple[str, dict[str, Any]]]:
    """Groups and users that the node lacks, in the order in which they have to be made."""
    slurm = node.facts["slurm"]
    groups, users = _ids(node, "/etc/group"), _ids(node, "/etc/passwd")
    own = [{"name": user["name"], "gid": user["gid"]} for user in slurm["users"]]
    desired: list[tuple[str, dict[str, Any]]] = []
    for group in [*slurm["groups"], *own]:
        if _is_free("group", group["name"], group["gid"], groups):
            desired.append(("group", group))
    for user in slurm["users"]:
        if _is_free("user", user["name"], user["uid"], users):
            desired.append(("user", user))
        # Groups of the environment are made first; those of the image, such as docker, some images lack.
        due = {group["name"] for group in slurm["groups"]} | groups.keys()
        if set(user["groups"]) & due - _memberships(node, user["name"]):
            desired.append(("membership", user))
        if not node.path(f"{home_folder(node)}/{user['name']}").is_dir():
            desired.append(("home", user))
        if node.read(f"{KEYS}/{user['name']}") != _keys(user):
            desired.append(("keys", user))
    folder = node.path(KEYS)
    left = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    left -= {user["name"] for user in slurm["users"]}
    desired += [("no keys", {"name": name}) for name in sorted(left)]
    if slurm["users"] and (node.read(SSHD) != SSHD_TEXT or node.remembered(STEP.name).get("reloaded") != SSHD_TEXT):
        desired.append(("sshd", {}))
    return desired


def _is_free(kind: str, name: str, number: int, present: dict[str, int]) -> bool:
    """Whether it has to be made.

    Raises:
        Failure: the name has another id here, or the id another name.
    """
    if present.get(name) == number:
        return False
    holder = next((other for other, taken in present.items() if taken == number), None)
    if name in present or holder:
        existing = f"{name} has id {present[name]}" if name in present else f"id {number} belongs to {holder}"
        raise Failure(
            f"the environment gives {kind} {name} the id {number}, and on this node {existing}",
            "choose another id or name in the environment, or let the node be replaced if they changed there",
        )
    return True


def _ids(node: Node, path: str) -> dict[str, int]:
    rows = [line.split(":") for line in (node.read(path) or "").splitlines() if line.count(":") >= 3]
    return {fields[0]: int(fields[2]) for fields in rows}


def _memberships(node: Node, name: str) -> set[str]:
    rows = [line.split(":") for line in (node.read("/etc/group") or "").splitlines() if line.count(":") >= 3]
    return {fields[0] for fields in rows if name in fields[3].split(",")}


def _keys(user: dict[str, Any]) -> str:
    return "".join(f"{key}\n" for key in user["ssh_keys"])


def _tool(node: Node, *words: str) -> None:
    elsewhere = () if str(node.root) == "/" else ("--prefix", str(node.root))
    node.run(words[0], *elsewhere, *words[1:])


def _add_group(node: Node, group: dict[str, Any]) -> None:
    _tool(node, "groupadd", "--gid", str(group["gid"]), group["name"])


def _add_user(node: Node, user: dict[str, Any]) -> None:
    home = f"{home_folder(node)}/{user['name']}"
    ids = ("--uid", str(user["uid"]), "--gid", str(user["gid"]))
    _tool(node, "useradd", *ids, "--no-create-home", "--home-dir", home, "--shell", "/bin/bash", user["name"])


def _add_memberships(node: Node, user: dict[str, Any]) -> None:
    present = _ids(node, "/etc/group").keys()
    lacking = sorted(set(user["groups"]) - present)
    if lacking:
        note = f"user {user['name']} belongs to {', '.join(lacking)}, which this image does not have"
        node.log.say("warning", step=STEP.name, note=note)
    _tool(node, "usermod", "--append", "--groups", ",".join(sorted(set(user["groups"]) & present)), user["name"])


def _make_home(node: Node, user: dict[str, Any]) -> None:
    """Home folders appear whole, under their name, whoever of all the nodes is first."""
    folder = node.path(home_folder(node))
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{user['name']}.{node.instance_id or os.getpid()}"
    if draft.exists():
        shutil.rmtree(draft)
    skeleton = node.path("/etc/skel")
    if skeleton.is_dir():
        shutil.copytree(skeleton, draft, symlinks=True)
    else:
        draft.mkdir()
    for path in [draft, *draft.rglob("*")]:
        os.chown(path, user["uid"], user["gid"], follow_symlinks=False)
    draft.chmod(0o700)
    home = folder / user["name"]
    if home.is_dir():
        shutil.rmtree(draft)
        return
    try:
        draft.rename(home)
    except OSError:
        # Another node was first. A folder that is not empty cannot be replaced by a rename.
        if not home.is_dir():
            raise
        shutil.rmtree(draft)


def _write_keys(node: Node, user: dict[str, Any]) -> None:
    node.write(f"{KEYS}/{user['name']}", _keys(user))


def _remove_keys(node: Node, user: dict[str, Any]) -> None:
    node.remove(f"{KEYS}/{user['name']}")


def _point_sshd(node: Node, _: dict[str, Any]) -> None:
    node.write(SSHD, SSHD_TEXT)
    node.run("systemctl", "try-reload-or-restart", "ssh")
    node.remember(STEP.name, reloaded=SSHD_TEXT)


MAKERS = {
    "group": _add_group,
    "user": _add_user,
    "membership": _add_memberships,
    "home": _make_home,
    "keys": _write_keys,
    "no keys": _remove_keys,
    "sshd": _point_sshd,
}

STEP = Step(
    "slurm-users",
    applies_to=Only(orchestrator="slurm"),
    check=are_there,
    apply=make,
    needs=("home", "lustre"),
    # useradd and its like wait for nobody who holds the lock of /etc/passwd.
    attempts=3,
)
