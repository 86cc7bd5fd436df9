"""Rules on versions that have to go together when a cluster is upgraded."""

from ....config.settings.cluster import Eks
from ...delivery.kubernetes_upgrades import skew_problem
from ..framework.rule import ERROR, Problem, Problems, rule


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
