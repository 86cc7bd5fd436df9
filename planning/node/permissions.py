"""What nodes may do in AWS beyond what every node may, as it follows from their groups."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...config.catalog.instance_types import Catalog
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.groups import GroupBase, InstanceGroup, RestrictedInstanceGroup


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """A prefix of somebody else's bucket: a group's own lifecycle scripts, or what jobs of restricted groups use."""

    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True)
class NodePermissions:
    """What a role needs for some groups."""

    alarms: tuple[str, ...]
    """Names of the alarms that turn updates back."""
    script_sources: tuple[ScriptSource, ...]
    """Where groups have scripts of their own."""
    reads: tuple[ScriptSource, ...]
    """What jobs of restricted groups read, which have no other role."""
    writes: tuple[ScriptSource, ...]
    """What such jobs write."""
    writes_results: bool
    """Whether nodes write results of benchmarks."""
    writes_verdicts: bool
    """Whether nodes run podwright's scripts, which write what came of a set-up."""


def node_permissions(groups: Iterable[GroupBase], types: Catalog) -> NodePermissions | None:
    """What the common role needs for those of `groups` that name none of their own; None where all name one."""
    groups = [group for group in groups if group.role is None]
    if not groups:
        return None
    own = [group for group in groups if isinstance(group, InstanceGroup)]
    restricted = [group for group in groups if isinstance(group, RestrictedInstanceGroup)]
    rollouts = [rollout for group in own for rollout in (group.patching, group.scheduled_update) if rollout]
    sources = sorted({group.lifecycle.source for group in own if group.lifecycle})
    return NodePermissions(
        alarms=tuple(alarm for rollout in rollouts for alarm in rollout.rollback_alarms),
        script_sources=tuple(_source(uri) for uri in sources),
        reads=_prefixes(group.input for group in restricted),
        writes=_prefixes(group.output for group in restricted),
        writes_results=any(benchmark_policy(group, types) != "skip" for group in own),
        writes_verdicts=any(group.lifecycle is None for group in own),
    )


def volume_keys(groups: Iterable[GroupBase]) -> tuple[str, ...]:
    """ARNs of the KMS keys that volumes of groups name themselves, sorted."""
    groups = list(groups)
    named = {volume.kms_key for group in groups for volume in group.volumes}
    named |= {group.root_kms_key for group in groups if isinstance(group, InstanceGroup)}
    return tuple(sorted(filter(None, named)))


def _prefixes(uris: Iterable[str | None]) -> tuple[ScriptSource, ...]:
    return tuple(_source(uri) for uri in sorted(set(filter(None, uris))))


def _source(uri: str) -> ScriptSource:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return ScriptSource(bucket, prefix)
