"""What nodes may do in AWS beyond what every node may, as it follows from an environment's groups."""

from dataclasses import dataclass

from ...config.catalog.instance_types import Catalog
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """A prefix of somebody else's bucket, with a group's own lifecycle scripts."""

    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True)
class NodePermissions:
    """What the role needs of the groups that name no role of their own."""

    alarms: tuple[str, ...]
    """Names of the alarms that turn updates back."""
    script_sources: tuple[ScriptSource, ...]
    """Where groups have scripts of their own."""
    writes_results: bool
    """Whether nodes write results of benchmarks."""


def node_permissions(environment: Environment, types: Catalog) -> NodePermissions | None:
    """What the role of nodes needs, or None when every group names its own role."""
    groups = [group for group in environment.groups.values() if group.role is None]
    if not groups:
        return None
    own = [group for group in groups if isinstance(group, InstanceGroup)]
    rollouts = [rollout for group in own for rollout in (group.patching, group.scheduled_update) if rollout]
    sources = sorted({group.lifecycle.source for group in own if group.lifecycle})
    return NodePermissions(
        alarms=tuple(alarm for rollout in rollouts for alarm in rollout.rollback_alarms),
        script_sources=tuple(_source(uri) for uri in sources),
        writes_results=any(benchmark_policy(group, types) != "skip" for group in own),
    )


def volume_keys(environment: Environment) -> tuple[str, ...]:
    """ARNs of the KMS keys that volumes of groups name themselves, sorted."""
    named = {volume.kms_key for group in environment.groups.values() for volume in group.volumes}
    named |= {group.root_kms_key for group in environment.instance_groups.values()}
    return tuple(sorted(filter(None, named)))


def _source(uri: str) -> ScriptSource:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return ScriptSource(bucket, prefix)
