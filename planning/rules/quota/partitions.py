"""Rules on amounts of a quota: what may stand together, and partitions of GPUs that a type and its nodes have."""

from collections.abc import Iterator
from typing import NamedTuple

from ....config.catalog.instance_types import Catalog, UnknownInstanceType
from ....config.catalog.limits import limits
from ....config.catalog.mig import MIG_LABEL, MIG_RESOURCE
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Amount
from ...quota.amounts import Node
from ...quota.stock import Stock
from ..framework.rule import ERROR, Problem, Problems, rule
from .quotas import amounts


@rule("GOV015", ERROR, on=Amount, source="cfn-compute-quota", final=True)
def one_way(amount: Amount) -> Problems:
    """Empty or contradictory quota amount."""
    parts = [
        field for field in ("accelerators", "mig", "vcpu", "memory_gib") if getattr(amount, field) not in (None, {})
    ]
    if amount.instances is None and not parts:
        yield Problem((), "the amount is empty", "give instances, accelerators, mig, vcpu or memory_gib; 0 is one too")
    elif amount.instances is not None and parts:
        yield Problem(
            "instances",
            f"instances stands beside {listed(parts, 'and')}: whole instances bring everything that is in them",
            "give either instances or parts of them",
        )


@rule("GOV016", ERROR, on=Environment, source="", final=True)
def no_accelerators(environment: Environment, types: Catalog) -> Problems:
    """Accelerator quota on instances without accelerators."""
    for path, key, amount, nodes in _placed(environment, types):
        if amount.accelerators is not None and not any(node.accelerators for node in nodes):
            yield Problem(
                (*path, "accelerators"),
                f"instances of {key} have no accelerators, and {amount.accelerators} are counted",
                "count instances, vcpu or memory_gib",
            )


@rule("GOV017", ERROR, on=Environment, source="hyperpod-cli hyperpod-mig", final=True)
def profiles_of_the_type(environment: Environment, types: Catalog) -> Problems:
    """MIG profile that the GPU does not support."""
    for path, key, amount, nodes in _placed(environment, types):
        known = list(dict.fromkeys(f"mig-{profile}" for node in nodes for profile in node.mig_profiles))
        for profile in amount.mig:
            if profile not in known:
                yield Problem(
                    (*path, "mig", profile),
                    f"GPUs of {key} have {listed(known, 'and') if known else 'no partitions'}",
                    "use one of those" if known else "count accelerators; GB200, like GPUs without MIG, stays whole",
                )


@rule("GOV018", ERROR, on=Environment, source="cfn-compute-quota", final=True)
def profiles_of_the_service(environment: Environment, types: Catalog) -> Problems:
    """MIG profile that task governance does not count."""
    known = {f"mig-{profile}" for profile in limits().compute_quota.mig_profiles}
    for path, key, amount, nodes in _placed(environment, types):
        profiles = amount.mig.keys() if environment.governance.engine == "hyperpod" else set[str]()
        for profile in sorted(profiles - known):
            if any(profile.removeprefix("mig-") in node.mig_profiles for node in nodes):
                yield Problem(
                    (*path, "mig", profile),
                    f"a compute quota cannot name {profile} of {key}; it takes none of the B300's profiles",
                    "count accelerators there, or use engine kueue",
                )


@rule("GOV019", ERROR, on=Environment, source="hyperpod-mig")
def nodes_are_partitioned(environment: Environment, types: Catalog) -> Problems:
    """MIG quota without partitioned nodes."""
    for path, key, amount, nodes in _placed(environment, types):
        for profile in amount.mig:
            name = profile.removeprefix("mig-")
            if not any(node.brings.get(MIG_RESOURCE + name) or not node.layout_known for node in nodes) and any(
                name in node.mig_profiles for node in nodes
            ):
                have = sorted(
                    {resource for node in nodes for resource in node.brings if resource.startswith("nvidia.com")}
                )
                yield Problem(
                    (*path, "mig", profile),
                    f"nodes of {key} offer {listed(have, 'and')}, and {amount.mig[profile]} {profile} are counted",
                    f"label the group, such as `labels: {{{MIG_LABEL}: all-{name}}}`, or count what it has",
                )


@rule("GOV020", ERROR, on=Environment, source="hyperpod-mig")
def gpus_are_whole(environment: Environment, types: Catalog) -> Problems:
    """Whole-GPU quota on fully partitioned nodes."""
    for path, key, amount, nodes in _placed(environment, types):
        with_gpus = [node for node in nodes if node.accelerators]
        if amount.accelerators and with_gpus and not any(node.accelerator in node.brings for node in with_gpus):
            yield Problem(
                (*path, "accelerators"),
                f"{MIG_LABEL} cuts all GPUs of {key} into partitions, and {amount.accelerators} whole ones are counted",
                "count partitions under `mig`, or remove the label",
            )


class _Placed(NamedTuple):
    """An amount of a team with what it is an amount of."""

    path: Path
    key: str
    amount: Amount
    nodes: list[Node]
    """The node of each group that the key means."""


def _placed(environment: Environment, types: Catalog) -> Iterator[_Placed]:
    """Every amount whose key means a group."""
    if not environment.governance.teams:
        return
    try:
        stock = Stock(environment.instance_groups, types)
    except UnknownInstanceType:
        return
    for named in amounts(environment):
        if groups := stock.groups_of(named.key):
            yield _Placed(*named, [stock.nodes[name] for name in groups])
