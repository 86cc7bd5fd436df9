"""Rules on restricted groups, in which AWS customises Amazon Nova: what stands beside them, and what they need."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ..framework.rule import ERROR, Problem, Problems, rule

_SECTION: Final = "restricted_instance_groups"


@rule("CLU022", ERROR, on=Environment, source="hyperpod-terraform")
def alone_in_their_cluster(environment: Environment) -> Problems:
    """Setting that restricted groups do not support."""
    if not environment.restricted_instance_groups:
        return
    for path, what, instead in _beside(environment):
        yield Problem(
            path,
            f"{what} beside restricted groups {listed(environment.restricted_instance_groups, 'and')}, which AWS does "
            "not support",
            instead,
        )


class _Beside(NamedTuple):
    """Something that does not go with restricted groups."""

    path: Path
    what: str
    instead: str


def _beside(environment: Environment) -> Iterator[_Beside]:
    """What an environment with restricted groups must not have, where, and what to do about it."""
    cluster, platform = environment.cluster, environment.platform
    if environment.instance_groups:
        groups = listed(environment.instance_groups, "and")
        other = "move them, or the restricted groups, to a separate environment"
        yield _Beside((_SECTION,), f"instance_groups has {groups}", other)
    if cluster.orchestrator != "eks":
        yield _Beside(("cluster", "orchestrator"), f"orchestrator is {cluster.orchestrator}", "use eks")
    if cluster.provisioning == "continuous":
        yield _Beside(("cluster", "provisioning"), "provisioning is continuous", "set all_or_nothing")
    if cluster.karpenter:
        yield _Beside(("cluster", "autoscaling"), "Karpenter scales groups", "remove it")
    if environment.governance.engine == "hyperpod":
        yield _Beside(("governance", "engine"), "task governance is on", "use engine kueue, or no teams")
    if environment.observability:
        yield _Beside(("observability",), "observability is on", "remove it")
    if platform.training_operator:
        yield _Beside(("platform", "training_operator"), "the training operator is on", "remove it")


@rule("CLU023", ERROR, on=Environment, source="hyperpod-nova", final=True)
def has_a_file_system(environment: Environment) -> Problems:
    """Restricted group without a file system size."""
    shared = environment.cluster.restricted_environment
    for name, group in environment.restricted_instance_groups.items():
        if group.lustre is None and not (shared and shared.lustre):
            yield Problem(
                (_SECTION, name, "lustre"),
                "restricted groups keep checkpoints on a file system that HyperPod makes, and its size and throughput "
                "are not given",
                "add `lustre: {capacity_gib: 12000, throughput: 250}` as the recipe says, or to "
                "cluster.restricted_environment for all of them",
            )


@rule("CLU024", ERROR, on=Environment, source="hyperpod-nova hyperpod-terraform")
def has_places_for_data(environment: Environment) -> Problems:
    """Restricted group without access to S3."""
    for name, group in environment.restricted_instance_groups.items():
        # Whoever brings a role has said there what it may do.
        missing = [field for field in ("input", "output") if getattr(group, field) is None and group.role is None]
        for field in missing:
            yield Problem(
                (_SECTION, name, field),
                f"{field} is not given; jobs of restricted groups have no permissions but those of their group's role, "
                "which may then use no bucket",
                f"name the prefix, such as `{field}: s3://acme-nova/{field}`, or a role of your own",
            )
