"""Which AWS services a private subnet calls, by the feature that calls them (`data/endpoints.csv`)."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from ...config.catalog.facts import Citation, cited, table
from ...config.errors import InvalidValue
from ...config.settings.environment import Environment

GATEWAY_SERVICE = "s3"
"""The one service that has a gateway endpoint, free of charge, on route tables instead of interfaces in subnets."""


class Call(NamedTuple):
    """One service that one feature calls from a private subnet."""

    feature: str
    """What calls: nodes, kubectl, lustre, …"""
    service: str
    """Its endpoint service, without the region's prefix, such as ecr.api."""
    caller: str
    """Who calls, and why."""
    sources: tuple[Citation, ...]
    """Where that is written."""


@cache
def calls() -> tuple[Call, ...]:
    """The whole table."""
    return tuple(
        Call(row["feature"], row["service"], row["caller"], cited(row["source"])) for row in table("endpoints")
    )


def services(features: Iterable[str]) -> list[str]:
    """The services that `features` call, sorted. Raises InvalidValue for a feature that the table does not know."""
    desired = frozenset(features)
    if unknown := desired - {call.feature for call in calls()}:
        known = ", ".join(sorted({call.feature for call in calls()}))
        raise InvalidValue(f"no such feature: {', '.join(sorted(unknown))}; known are {known}")
    return sorted({call.service for call in calls() if call.feature in desired})


def features(environment: Environment) -> frozenset[str]:
    """The features that an environment uses."""
    lustre = {"lustre"} if environment.storage.lustres else set[str]()
    observability = environment.observability
    observed = {"observability"} if observability and observability.metrics != "off" else set[str]()
    if environment.cluster.orchestrator == "none":
        return frozenset({"training_jobs"} | lustre)
    if environment.cluster.orchestrator == "eks":
        parts = {part for part in ("training_operator", "inference") if getattr(environment.platform, part) is not None}
        return frozenset({"nodes", "kubectl", "nodes_ready", "runner"} | lustre | parts | observed)
    slurm = environment.cluster.slurm
    accounting = {"slurm_accounting"} if slurm.accounting else set[str]()
    failover = {"slurm_failover"} if slurm.failover_topic else set[str]()
    return frozenset({"slurm_nodes"} | lustre | accounting | failover | observed)
