"""The software of instance groups as HyperPod tells it, and the request that renews it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup, Rollout
from ...planning.rules.groups.updates import batch_nodes
from ..aws.clusters import Cluster

ACTIVE: Final = ("Pending", "InProgress", "RollbackInProgress")
"""Values of SoftwareUpdateStatus while an update continues. Source: botocore 1.44.5."""
_BATCH: Final = re.compile(r"[1-9][0-9]{0,3}|(?:[1-9][0-9]?|100)%")
_LONGEST_WAIT: Final = 3600
_MOST_ALARMS: Final = 10


@dataclass(frozen=True, slots=True)
class Software:
    """A group's software: see `Group` of `aws.clusters` for what the words mean."""

    group: str
    nodes: int
    current: str
    desired: str
    state: str
    update: str
    renewed: int

    @property
    def is_active(self) -> bool:
        """Whether an update continues."""
        return self.update in ACTIVE

    @property
    def is_behind(self) -> bool:
        """Whether there is a newer image, or only some nodes have the one that was asked for."""
        # Empty where HyperPod does not say, as with images of your own; that is no reason to renew.
        return self.state not in ("UpToDate", "") or (bool(self.desired) and self.desired != self.current)


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of an update; None and nothing where the file decides."""

    group: Sequence[str] = ()
    """Only these groups."""
    release: str | None = None
    """Release of HyperPod's image; by default the newest."""
    batch: str | None = None
    """Nodes at a time, such as 2 or 20%."""
    rollback_batch: str | None = None
    """Nodes at a time on the way back."""
    wait_between: float | None = None
    """Seconds between batches."""
    rollback_alarm: Sequence[str] = ()
    """Alarms that turn it back."""
    wait: float | None = None
    """Seconds for which each group is followed at most."""


def software(cluster: Cluster) -> dict[str, Software]:
    """The software of each ordinary group, by name. Of restricted groups HyperPod tells nothing."""
    return {
        row.name: Software(
            row.name, row.target, row.release, row.desired_release, row.image_state, row.update, row.renewed
        )
        for row in cluster.groups
        if not row.restricted
    }


def in_order(environment: Environment, groups: Sequence[str]) -> list[str]:
    """Groups in the order in which they are renewed: the system group, then the smallest first.

    A bad image then shows where little is lost.
    """
    system = environment.cluster.system_group

    def key(name: str) -> tuple[bool, int, str]:
        group = environment.groups.get(name)
        return (name != system, group.count if group else 0, name)

    return sorted(groups, key=key)


def rollout(group: InstanceGroup | None, wish: Wish) -> Rollout:
    """How an update moves over a group: what the command line says, else what the file says of its own updates.

    Raises:
        CommandError: a value that HyperPod does not take.
    """
    own = (group.patching or group.scheduled_update) if group else None
    base: Rollout = own or Rollout()
    for flag, value in (("--batch", wish.batch), ("--rollback-batch", wish.rollback_batch)):
        if value is not None and not _BATCH.fullmatch(value):
            raise CommandError(f"{flag} is {value}; allowed: a number of nodes, or 1% to 100%", "write 2, or 20%", 2)
    wait = base.wait_seconds if wish.wait_between is None else int(wish.wait_between)
    if not 0 <= wait <= _LONGEST_WAIT:
        raise CommandError(f"--wait-between is {wait} s; allowed: 0 to {_LONGEST_WAIT} s", "use a time such as 10m", 2)
    alarms = tuple(wish.rollback_alarm) or base.rollback_alarms
    if len(alarms) > _MOST_ALARMS:
        raise CommandError(f"{len(alarms)} alarms; allowed: {_MOST_ALARMS}", "name those that tell most", 2)
    return Rollout(
        batch=wish.batch or base.batch,
        rollback_batch=wish.rollback_batch or base.rollback_batch,
        wait_seconds=wait,
        rollback_alarms=alarms,
    )


def request(cluster: str, group: str, release: str, how: Rollout | None) -> dict[str, Any]:
    """The arguments of UpdateClusterSoftware for one group; without `how` all its nodes go at once."""
    results: dict[str, Any] = {
        "ClusterName": cluster,
        # Without a release HyperPod takes the newest that fits.
        "InstanceGroups": [{"InstanceGroupName": group} | ({"ImageReleaseVersion": release} if release else {})],
    }
    if how is None:
        return results
    policy = {"MaximumBatchSize": _size(how.batch)}
    if how.rollback_batch:
        policy["RollbackMaximumBatchSize"] = _size(how.rollback_batch)
    config: dict[str, Any] = {"RollingUpdatePolicy": policy, "WaitIntervalInSeconds": how.wait_seconds}
    if how.rollback_alarms:
        config["AutoRollbackConfiguration"] = [{"AlarmName": name} for name in how.rollback_alarms]
    return results | {"DeploymentConfig": config}


def batches(how: Rollout, nodes: int) -> int:
    """How many batches a group of that many nodes needs."""
    # Rounded up: the last batch may be a smaller one.
    return -(-nodes // batch_nodes(how, nodes)) if nodes else 0


def _size(batch: str) -> dict[str, Any]:
    if batch.endswith("%"):
        return {"Type": "CAPACITY_PERCENTAGE", "Value": int(batch[:-1])}
    return {"Type": "INSTANCE_COUNT", "Value": int(batch)}
