"""Rules on gates: what they name, and what nothing could ever pass."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....config.catalog.images import Image, ecr_registry
from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.gates import Gates
from ...delivery.gate_table import can_measure_nccl, nccl_image, why_not
from ...node.collective_thresholds import all_reduce_threshold
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

# Kinds that never complete by themselves, or that something else than the cluster starts.
_ENDLESS = ("inference", "jumpstart", "leader_worker_set", "ray_cluster", "space", "recipe")


@rule("GAT001", ERROR, on=Environment, source="", final=True)
def names_nothing(environment: Environment) -> Problems:
    """Gate with an unknown group, team, priority or job."""
    if environment.gates is None:
        return
    known = {
        "instance_groups": list(environment.instance_groups),
        "governance.teams": list(environment.governance.teams),
        "governance.priorities": list(environment.governance.priorities),
        "jobs": list(environment.jobs),
    }
    for path, name, location in _names(environment.gates):
        if name not in known[location]:
            field = ".".join(str(part) for part in path)
            yield Problem(
                path, f"{field} is {name!r}; {location} has {listed(known[location], 'and')}", f"name one of {location}"
            )


class _Named(NamedTuple):
    path: Path
    name: str
    location: str
    """Where the name has to be."""


def _names(gates: Gates) -> Iterator[_Named]:
    """Every name that gates hold."""
    canary, nccl = gates.canary, gates.nccl
    for at, name in enumerate(nccl.groups):
        yield _Named(("gates", "nccl", "groups", at), name, "instance_groups")
    for name in nccl.minimum_gb_per_second:
        yield _Named(("gates", "nccl", "minimum_gb_per_second", name), name, "instance_groups")
    fields = (
        (("gates", "nccl", "team"), nccl.team, "governance.teams"),
        (("gates", "canary", "group"), canary.group, "instance_groups"),
        (("gates", "canary", "team"), canary.team, "governance.teams"),
        (("gates", "canary", "priority"), canary.priority, "governance.priorities"),
        (("gates", "canary", "job"), canary.job, "jobs"),
        (("gates", "canary", "elastic"), canary.elastic, "jobs"),
    )
    yield from (_Named(path, name, location) for path, name, location in fields if name is not None)


@rule("GAT002", ERROR, on=Environment, source="", final=True)
def job_that_cannot_pass(environment: Environment) -> Problems:
    """Canary job cannot complete or grow."""
    canary = environment.gates.canary if environment.gates else None
    if canary is None:
        return
    jobs: dict[str, Any] = environment.jobs
    job, elastic = jobs.get(canary.job or ""), jobs.get(canary.elastic or "")
    if job and job.kind in _ENDLESS:
        yield Problem(
            ("gates", "canary", "job"),
            f"gates.canary.job is {canary.job}, of kind {job.kind}, which does not complete on the cluster",
            "name a job of another kind, or leave it out for podwright's own",
        )
    if elastic and (elastic.kind not in ("hyperpod_pytorch", "pytorch") or elastic.elastic is None):
        yield Problem(
            ("gates", "canary", "elastic"),
            f"gates.canary.elastic is {canary.elastic}, of kind {elastic.kind}, which has one size only",
            "name a job of kind hyperpod_pytorch or pytorch with `elastic:`",
        )
    elif elastic and elastic.sizes[0] == elastic.sizes[-1]:
        yield Problem(
            ("gates", "canary", "elastic"),
            f"gates.canary.elastic is {canary.elastic}, whose fewest and most replicas are both {elastic.sizes[0]}",
            "raise its max_replicas",
        )


@rule("GAT003", ERROR, on=Environment, source="", final=True)
def nccl_impossible(environment: Environment, types: Catalog) -> Problems:
    """NCCL bandwidth threshold above the network's bandwidth."""
    nccl = environment.gates.nccl if environment.gates else None
    if nccl is None:
        return
    for at, name in enumerate(nccl.groups):
        group = environment.instance_groups.get(name)
        if group and not can_measure_nccl(group, types):
            yield Problem(
                ("gates", "nccl", "groups", at),
                f"gates.nccl.groups names {name}: {_holds(group)}; it takes NVIDIA GPUs, EFA and two nodes",
                "leave the group out",
            )
    for name, least in nccl.minimum_gb_per_second.items():
        group = environment.instance_groups.get(name)
        if group is None or group.count < 2:
            continue
        for count in sorted({min(nodes, group.count) for nodes in nccl.nodes}):
            bounds = [
                bound
                for instance_type in group.types
                if (bound := all_reduce_threshold(instance_type, count).bound) is not None
            ]
            if bounds and least > min(bounds):
                yield Problem(
                    ("gates", "nccl", "minimum_gb_per_second", name),
                    f"gates.nccl.minimum_gb_per_second.{name} is {least:g}, and the network of {listed(group.types)} "
                    f"carries {min(bounds):.4g} GB/s over {count} nodes at best",
                    "take the figure of a run of your own",
                )
                break


def _holds(group: Any) -> str:
    return f"it has {group.count} of {listed(group.types)}"


@rule("GAT004", WARNING, on=Environment, source="")
def settings_of_no_gate(environment: Environment, types: Catalog) -> Problems:
    """Gate settings that this environment does not use."""
    gates = environment.gates
    if gates is None:
        return
    for name in sorted({*gates.model_fields_set, *gates.timeouts} & {"verdicts", "nccl", "canary", "metrics"}):
        reason = why_not(environment, types, name)  # pyrefly: ignore[bad-argument-type]
        if reason:
            path = ("gates", name) if name in gates.model_fields_set else ("gates", "timeouts", name)
            yield Problem(path, f"gates has settings for {name}, which is not run: {reason}", "take them out")


@rule("GAT005", ERROR, on=Environment, source="eks-private")
def image_out_of_reach(environment: Environment) -> Problems:
    """NCCL image that a closed network cannot pull."""
    image = nccl_image(environment)
    named = environment.gates is not None and environment.gates.nccl.image
    if not named or environment.network.endpoints != "closed" or environment.cluster.orchestrator != "eks":
        return
    # Endpoints lead to registries of ECR in the region, and to no other.
    if Image.parse(image).ecr_region != environment.region:
        yield Problem(
            ("gates", "nccl", "image"),
            f"gates.nccl.image is {image}, and of a closed network nodes reach the ECR of {environment.region} only",
            f"copy it to {ecr_registry(environment.account, environment.region)} and name the copy",
        )
