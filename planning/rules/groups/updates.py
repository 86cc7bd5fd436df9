"""Rules on how the software of nodes is updated."""

import re

from ....config.settings.groups import InstanceGroup, Rollout, ScheduledUpdate
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

# The pattern of ScheduleExpression, field by field; SageMaker takes a part of what EventBridge takes.
_CRON = (
    ("minute", "0 to 59, or nothing", r"[0-5][0-9]|[0-9]|"),
    ("hour", "0 to 23", r"[01][0-9]|2[0-3]|[0-9]"),
    ("day of month", "1 to 31 or ?", r"[1-9]|0[1-9]|[12][0-9]|3[01]|\?"),
    ("month", "1 to 12, *, or */n", r"[1-9]|0[1-9]|1[0-2]|\*|\*/(?:[1-9]|1[0-2])|"),
    (
        "day of week",
        "MON to SUN, 1 to 7, ?, L, n#m or nL",
        r"MON|TUE|WED|THU|FRI|SAT|SUN|[1-7]|\?|L|[1-7]#[1-5]|[1-7]L",
    ),
    ("year", "2020 to 2999, *, or nothing", r"20[2-9][0-9]|\*|"),
)


@rule("GRP030", ERROR, on=ScheduledUpdate, source="cfn-cluster", final=True)
def schedule(update: ScheduledUpdate) -> Problems:
    """Invalid update schedule."""
    fields = update.schedule.removeprefix("cron(").removesuffix(")").split(" ")
    if len(fields) != len(_CRON):
        yield Problem(
            "schedule",
            f"{update.schedule} has {len(fields)} fields; needed are {len(_CRON)}: "
            f"{', '.join(name for name, _, _ in _CRON)}",
            "write it like cron(0 4 ? * SUN *)",
        )
        return
    for value, (name, allowed, pattern) in zip(fields, _CRON, strict=True):
        if not re.fullmatch(pattern, value):
            yield Problem(
                "schedule",
                f"{name} of {update.schedule} is {value!r}; allowed: {allowed}",
                "write it like cron(0 4 ? * SUN *)",
            )


@rule("GRP031", ERROR, on=InstanceGroup, source="api-patch")
def one_updater(group: InstanceGroup) -> Problems:
    """Patching and scheduled updates on the same group."""
    if group.patching and group.scheduled_update:
        yield Problem(
            "scheduled_update",
            "patching and scheduled_update both replace the node image, at different times",
            "keep patching for security patches alone, or scheduled_update for every release",
        )


@rule("GRP032", ERROR, on=InstanceGroup, source="api-group")
def one_image(group: InstanceGroup) -> Problems:
    """Custom image together with a HyperPod release."""
    if group.image_id and group.image_release:
        yield Problem(
            "image_release",
            f"image_id is {group.image_id}, so release {group.image_release} of HyperPod's own image cannot apply",
            "keep one of the two",
        )


@rule("GRP033", ERROR, on=InstanceGroup, source="api-patch api-group")
def patched_image(group: InstanceGroup) -> Problems:
    """Custom image that patching would replace."""
    updater = next((name for name in ("patching", "scheduled_update") if getattr(group, name)), None)
    if group.image_id and updater:
        yield Problem(
            updater,
            f"{updater} installs HyperPod's images, and image_id {group.image_id} is your own",
            f"remove {updater} and roll the group by changing image_id",
        )


@rule("GRP034", WARNING, on=InstanceGroup, source="api-patch cfn-cluster")
def pinned_release(group: InstanceGroup) -> Problems:
    """Pinned release that patching changes."""
    if group.image_release and (group.patching or group.scheduled_update):
        yield Problem(
            "image_release",
            f"image_release pins {group.image_release}, and updates move the nodes away from it; "
            "CloudFormation reports the drift and never takes it back",
            "remove image_release, or remove the updates and change image_release when you want",
        )


@rule("GRP035", ERROR, on=Rollout, source="cfn-cluster", final=True)
def batch(rollout: Rollout) -> Problems:
    """Batch larger than the group."""
    for field in ("batch", "rollback_batch"):
        value = getattr(rollout, field) or ""
        if value.endswith("%") and int(value[:-1]) > 100:
            yield Problem(field, f"{field} is {value}; allowed: 1% to 100%, or a number of nodes", "lower it")


@rule("GRP036", WARNING, on=InstanceGroup, source="cfn-cluster")
def whole_group(group: InstanceGroup) -> Problems:
    """Batch as large as the group."""
    for field in ("patching", "scheduled_update"):
        rollout: Rollout | None = getattr(group, field)
        if rollout and group.count > 1 and (nodes := batch_nodes(rollout, group.count)) >= group.count:
            yield Problem(
                (field, "batch"),
                f"batch {rollout.batch} of {group.count} nodes is {nodes} at a time: the whole "
                "group is away at once and no alarm can stop it half-way",
                "lower it, for example to 20%",
            )


@rule("GRP037", WARNING, on=InstanceGroup, source="hyperpod-update")
def alarm_permission(group: InstanceGroup) -> Problems:
    """Custom role without permission to read alarms."""
    for field in ("patching", "scheduled_update"):
        rollout: Rollout | None = getattr(group, field)
        if rollout and rollout.rollback_alarms and group.role:
            yield Problem(
                (field, "rollback_alarms"),
                f"HyperPod reads alarms as {group.role}, which podwright does not write",
                "allow cloudwatch:DescribeAlarms on that role",
            )


def batch_nodes(rollout: Rollout, count: int) -> int:
    """Nodes that a rollout takes at a time: a percentage counts up to the next whole node."""
    if rollout.batch.endswith("%"):
        return min(count, -(-count * int(rollout.batch[:-1]) // 100))
    return min(count, int(rollout.batch))
