"""What moving a cluster from one Kubernetes version to another takes: which APIs go, and what may be how much older."""

from functools import cache
from typing import Final, NamedTuple

from ...config.catalog.facts import Citation, cited, table

ROLLBACK_DAYS: Final = 7
"""For so many days after an update EKS takes the control plane back by one version. Source: eks-rollback."""


class RemovedApi(NamedTuple):
    """An API version that Kubernetes no longer serves from some version on."""

    version: str
    """Kubernetes version from which on it is gone."""
    api: str
    """Such as batch/v1beta1."""
    kinds: tuple[str, ...]
    """Kinds of objects that it was the API of."""
    use: str
    """The API version to use."""
    sources: tuple[Citation, ...]


class Skew(NamedTuple):
    """How far a part may be from the API server, in minor versions."""

    part: str
    older: int
    newer: int
    sources: tuple[Citation, ...]


@cache
def removed_apis() -> tuple[RemovedApi, ...]:
    """Every removal since 1.25, oldest first. The guide lists none of a later version than its last row."""
    return tuple(
        RemovedApi(row["version"], row["api"], tuple(row["kinds"].split()), row["use"], cited(row["source"]))
        for row in table("kubernetes_removals")
    )


@cache
def skews() -> dict[str, Skew]:
    """Kubernetes' policy on versions that run together, by part."""
    return {
        row["part"]: Skew(row["part"], int(row["older"]), int(row["newer"]), cited(row["source"]))
        for row in table("kubernetes_skew")
    }


def removed(api: str, kind: str, version: str) -> RemovedApi | None:
    """Why an object of that API version and kind cannot be applied to a cluster of `version`; None when it can."""
    for row in removed_apis():
        if (row.api, minor(row.version) <= minor(version)) == (api, True) and kind in row.kinds:
            return row
    return None


def skew_problem(part: str, version: str, server: str) -> str | None:
    """What is wrong with a part of `version` beside an API server of version `server`; None when nothing is."""
    # All versions are of Kubernetes 1, so the second number is the distance.
    behind, policy = minor(server) - minor(version), skews()[part]
    if behind > policy.older:
        return f"{part} {version} is {behind} versions older than {server}; allowed: {policy.older}"
    if -behind > policy.newer:
        return f"{part} {version} is newer than {server}; allowed: {policy.newer or 'no'} newer"
    return None


def step_problem(deployed: str, desired: str) -> tuple[str, str] | None:
    """Why EKS does not go from one version to another, and what to do; None when it does."""
    step = minor(desired) - minor(deployed)
    if step > 1:
        first = f"1.{minor(deployed) + 1}"
        return (
            f"the cluster has Kubernetes {deployed}, and EKS goes one version at a time: {desired} is {step} away",
            f"write {first}, deploy, renew the nodes, and resume from there",
        )
    if step < 0:
        return (
            f"the cluster has Kubernetes {deployed}, and {desired} is older",
            f"write {deployed}; for {ROLLBACK_DAYS} days after an update `aws eks update-cluster-version` takes a "
            "control plane back by one version, once no node is newer than that",
        )
    return None


def minor(version: str) -> int:
    """34 of 1.34, or of v1.34.2-eksbuild.1."""
    return int(version.removeprefix("v").split(".")[1])
