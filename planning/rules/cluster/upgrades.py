"""Rules on versions: those that have to go together when a cluster is upgraded, and those whose support ends."""

from datetime import date, timedelta
from typing import Final

from ....config.catalog.eks_versions import eks_versions
from ....config.settings.cluster import Eks
from ...delivery.kubernetes_upgrades import skew_problem
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

NEAR: Final = timedelta(days=90)
"""How long before the end of standard support people are told: an upgrade of a cluster takes planning."""


@rule("UPG001", ERROR, on=Eks, source="kubernetes-skew")
def pinned_kube_proxy(eks: Eks) -> Problems:
    """kube-proxy version too far from the control plane's."""
    pinned = eks.addons.get("kube-proxy")
    if eks.existing is None and pinned and (problem := skew_problem("kube-proxy", pinned.lstrip("v"), eks.version)):
        yield Problem(
            ("addons", "kube-proxy"),
            problem,
            "take it out of addons, and podwright's pin for the version is used; or write one for it",
        )


@rule("UPG002", WARNING, on=Eks, source="eks-versions", dated=True)
def standard_support(eks: Eks, today: date) -> Problems:
    """Kubernetes version at the end of its standard support."""
    known = eks_versions().get(eks.version)
    end = date.fromisoformat(known.standard_until) if known and known.standard_until else None
    if end and end - today <= NEAR:
        follows = "EKS then upgrades it" if eks.support == "standard" else "extended support costs more by the hour"
        yield Problem(
            "version",
            f"standard support of Kubernetes {eks.version} {'ended' if end <= today else 'ends'} on {end}; {follows}",
            "choose a later version for a new cluster, or plan the upgrade (`podwright upgrade`); `podwright cost` "
            "says what each month costs",
        )
