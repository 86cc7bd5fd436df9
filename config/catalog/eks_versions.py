"""Kubernetes versions of EKS, and what is known of HyperPod on each."""

from functools import cache
from typing import Literal, NamedTuple, cast

from .facts import Citation, cited, table


class EksVersion(NamedTuple):
    """One Kubernetes minor version."""

    version: str
    """Such as 1.34."""
    hyperpod: Literal["documented", "seen", "unknown"]
    """In HyperPod's documentation; only in AWS's own HyperPod samples; or in neither."""
    standard_until: str | None
    """ISO date on which standard support ends; None when not announced."""
    extended_until: str | None
    """ISO date on which extended support ends and EKS upgrades the cluster itself; None when not announced."""
    sources: tuple[Citation, ...]


@cache
def eks_versions() -> dict[str, EksVersion]:
    """All known versions, oldest first."""
    return {
        row["version"]: EksVersion(
            row["version"],
            cast(Literal["documented", "seen", "unknown"], row["hyperpod"]),
            row["standard_until"] or None,
            row["extended_until"] or None,
            cited(row["source"]),
        )
        for row in table("eks_versions")
    }
