"""Teams and people: who may use how much of a cluster, what goes first, and the accounts of those who log in.

One specification serves every scheduler. What one of them cannot express is a finding, never silently dropped.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from .base import Settings
from .groups import GroupName

# HyperPod's pattern of team and priority class names with the upper bound that it means to set.
TeamName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
PriorityName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
# What useradd of Debian and of Amazon Linux both take (shadow-utils).
UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)]
# The types that OpenSSH 8.9 of Ubuntu 22.04 accepts as signatures, DSA left out.
SshKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
        r" [A-Za-z0-9+/]+={0,2}( [^\r\n]*)?$",
        max_length=4096,
    ),
]
# 1000 is the image's own user (ubuntu, ec2-user); the highest two mean "nobody" and "no change" to the kernel.
UnixId = Annotated[int, Field(ge=1001, le=4294967293)]


class Team(Settings):
    """A team with what it is guaranteed, and what it lends and borrows beyond that."""

    quota: dict[GroupName, Annotated[int, Field(ge=0, le=6758)]] = {}
    """Instances that are guaranteed to it, by instance group. A team without any lives on what others leave idle."""
    share: Literal["lend_and_borrow", "lend", "dont_lend"] = "lend_and_borrow"
    """What happens to idle capacity: lend its own and borrow that of others, only lend, or neither."""
    borrow_limit_percent: int = Field(default=50, ge=1, le=500)
    """How much it may borrow, in percent of its own quota; only with lend_and_borrow."""
    weight: int = Field(default=10, ge=0, le=100)
    """Its share of what several teams want to borrow at once, relative to the others' weights."""
    preempt: Literal["lower_priority", "never"] = "lower_priority"
    """Whether its own work of higher priority may stop its own work of lower priority."""
    users: tuple[UserName, ...] = ()
    """Its people: keys of `users`."""


class Governance(Settings):
    """Quotas of teams and the order of their work."""

    priorities: dict[PriorityName, Annotated[int, Field(ge=0, le=100)]] = Field(default={}, max_length=10)
    """Priority classes that jobs name, each with its weight; the highest goes first."""
    fair_share: bool = True
    """Give idle capacity by the teams' weights; first come, first served when off."""
    teams: dict[TeamName, Team] = {}
    """Teams by name. Order has no meaning."""


class User(Settings):
    """A person with an account on the nodes. Ids are fixed here, so files keep their owners on whatever node."""

    uid: UnixId
    """User id, and the id of the user's own group of the same name."""
    groups: tuple[UserName, ...] = ()
    """Further groups: keys of `user_groups`, or `docker` and `sudo`, which the image has."""
    ssh_keys: tuple[SshKey, ...] = ()
    """Public keys that may log in, each as a line of authorized_keys without options."""
