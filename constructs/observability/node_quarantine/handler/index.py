"""Marks a node of Kubernetes as out of work: with a taint, a label, and who did it, when and why.

It runs where the Kubernetes API is, and is called by the function that counts faults, which runs where AWS's are.
"""

import logging
import urllib.error
from typing import Any, Final

import boto3

from .....planning.node.quarantine import MARK, MARKED, annotations
from ....common.handler_runtime.kubernetes import KubernetesApi

_ABSENT: Final = 404

logger = logging.getLogger()
logger.setLevel(logging.INFO)


def handler(event: dict[str, str], _: Any) -> dict[str, bool]:
    """Mark the node of an instance. Returns whether it is there; one that was replaced is not.

    Raises:
        OSError: Kubernetes cannot be reached, or does not take it; whoever called tries again.
    """
    api, name = KubernetesApi(boto3.Session(), event["eks_cluster"]), f"hyperpod-{event['instance']}"
    try:
        node = api.node(name)
    except urllib.error.HTTPError as error:
        if error.code != _ABSENT:
            raise
        logger.info("there is no node %s", name)
        return {"marked": False}
    others = [taint for taint in node["spec"].get("taints", []) if taint["key"] != MARK]
    taint = {"key": MARK, "value": MARKED, "effect": "NoSchedule"}
    api.patch_node(
        name,
        {
            "metadata": {
                # Taints are replaced as a whole, so one that comes meanwhile must not be lost.
                "resourceVersion": node["metadata"]["resourceVersion"],
                "labels": {MARK: MARKED},
                "annotations": annotations(event["reason"], event["by"], event["since"]),
            },
            "spec": {"taints": [*others, taint]},
        },
    )
    logger.info("%s takes no new work: %s", name, event["reason"])
    return {"marked": True}
