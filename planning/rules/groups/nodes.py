"""Rules on Kubernetes labels and taints of nodes."""

from collections import Counter

from ....config.catalog.limits import limits
from ....config.settings.groups import InstanceGroup
from ..framework.rule import ERROR, Problem, Problems, rule

# Prefixes that the kubelet, EKS, HyperPod or Karpenter write themselves. Subdomains of them count too.
_RESERVED = (
    "kubernetes.io",
    "k8s.io",
    "sagemaker.amazonaws.com",
    "eks.amazonaws.com",
    "topology.k8s.aws",
    "karpenter.sh",
)


def _reserved(key: str) -> str | None:
    prefix = key.rpartition("/")[0]
    return next((owner for owner in _RESERVED if prefix == owner or prefix.endswith(f".{owner}")), None)


def _oversized(key: str) -> str | None:
    prefix, _, name = key.rpartition("/")
    if len(name) > 63:
        return f"the name of {key[:40]}… has {len(name)} characters; allowed: 63"
    return f"the prefix of {key[:40]}… has {len(prefix)} characters; allowed: 253" if len(prefix) > 253 else None


@rule("GRP020", ERROR, on=InstanceGroup, source="cfn-cluster", final=True)
def how_many(group: InstanceGroup) -> Problems:
    """More than 50 labels or taints."""
    for field in ("labels", "taints"):
        count, most = len(getattr(group, field)), getattr(limits().cluster, field)
        if count > most:
            yield Problem(
                field,
                f"{count} {field}; SageMaker takes {most} on a group",
                "remove labels and taints that nothing uses",
            )


@rule("GRP021", ERROR, on=InstanceGroup, source="k8s-labels")
def label_owner(group: InstanceGroup) -> Problems:
    """Reserved label key."""
    for key in group.labels:
        if owner := _reserved(key):
            yield Problem(
                ("labels", key),
                f"labels under {owner} are written by Kubernetes, EKS or HyperPod themselves",
                f"use a prefix of your own, such as example.com/{key.rpartition('/')[2]}, or none",
            )


@rule("GRP022", ERROR, on=InstanceGroup, source="k8s-taints")
def taint_owner(group: InstanceGroup) -> Problems:
    """Reserved taint key."""
    for index, taint in enumerate(group.taints):
        if owner := _reserved(taint.key):
            yield Problem(
                ("taints", index, "key"),
                f"taints under {owner} mark what HyperPod or Kubernetes found out about "
                "a node, and pods tolerate them for that reason",
                "use a key of your own",
            )


@rule("GRP023", ERROR, on=InstanceGroup, source="k8s-names", final=True)
def key_length(group: InstanceGroup) -> Problems:
    """Label or taint key too long."""
    for key in group.labels:
        if message := _oversized(key):
            yield Problem(("labels", key), message, "shorten it: Kubernetes refuses the node's labels")
    for index, taint in enumerate(group.taints):
        if message := _oversized(taint.key):
            yield Problem(("taints", index, "key"), message, "shorten it: Kubernetes refuses the node's taints")


@rule("GRP024", ERROR, on=InstanceGroup, source="k8s-taints", final=True)
def taint_twice(group: InstanceGroup) -> Problems:
    """Duplicate taint on a group."""
    observed: Counter[tuple[str, str]] = Counter()
    for index, taint in enumerate(group.taints):
        observed[taint.key, taint.effect] += 1
        if observed[taint.key, taint.effect] == 2:
            yield Problem(
                ("taints", index),
                f"{taint.key} is listed twice with effect {taint.effect}; a node has one taint for each key and effect",
                "keep one of them",
            )
