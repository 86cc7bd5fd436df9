"""Makes labels of a node's set-up and benchmark results. Runs in a pod of that node, with the standard library only.

The node's lifecycle scripts write both before the node joins, so they cannot label it themselves. The decision
is theirs as well; this only carries it to Kubernetes. What was carried over stands in an annotation of the node, in
the same request as the labels: a label that a person changes afterwards stays as it is.
"""

import json
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

VERDICT = "podwright/benchmarks"
CARRIED_OVER = "podwright/benchmarks-started"
REASON = "podwright/benchmarks-decision"
DEGRADED = "podwright/degraded"
"""Steps of the set-up that failed and cost no node; absent on a node that is as it should be."""
SET_UP = "podwright/set-up-ended"
SEEN = "podwright/degraded-steps"
LABEL_LENGTH = 63
"""Of a value. Source: Kubernetes documentation, "Labels and Selectors", 2026-11."""
HEALTH = "sagemaker.amazonaws.com/node-health-status"
PENDING_REPLACEMENT = "UnschedulablePendingReplacement"
"""What HyperPod acts on. Source: SageMaker Developer Guide, resilience-related Kubernetes labels, 2026-11."""
TIMEOUT_SECONDS = 30


class Cluster:
    """The Kubernetes API as a pod reaches it."""

    def __init__(self, account: Path, host: str, port: str) -> None:
        self._account = account
        self._url = f"https://{host}:{port}/api/v1/nodes/"
        self._tls = ssl.create_default_context(cafile=str(account / "ca.crt"))

    def node(self, name: str) -> dict[str, Any]:
        """A node."""
        return self._ask("GET", name, None)

    def patch(self, name: str, metadata: dict[str, Any]) -> None:
        """Merge labels and annotations into a node's."""
        self._ask("PATCH", name, json.dumps({"metadata": metadata}).encode())

    def _ask(self, method: str, name: str, body: bytes | None) -> dict[str, Any]:
        # Read each time: the kubelet writes a new token before the old one runs out.
        token = (self._account / "token").read_text(encoding="utf-8")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
        request = urllib.request.Request(self._url + name, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=self._tls) as answer:
            return json.load(answer)


def benchmarked(record: dict[str, Any]) -> dict[str, Any] | None:
    """The labels and annotations that a record of benchmarks becomes; None while nothing is decided."""
    decision = record.get("decision")
    if decision is None:
        return None
    marked = {HEALTH: PENDING_REPLACEMENT} if decision["action"] == "replace" else {}
    return {
        "labels": {VERDICT: record["verdict"], **marked},
        "annotations": {CARRIED_OVER: record["started"], REASON: f"{decision['action']}: {decision['reason']}"},
    }


def set_up(record: dict[str, Any]) -> dict[str, Any]:
    """The label and annotations that the verdict of a set-up becomes; a node that is well again loses them."""
    steps = record["degraded"]
    label = ".".join(sorted(steps))
    if len(label) > LABEL_LENGTH:
        # Whole names only, which a selector can be written with.
        label = label[:LABEL_LENGTH].rpartition(".")[0]
    observed = "; ".join(f"{name}: {text}" for name, text in sorted(steps.items()))
    return {"labels": {DEGRADED: label or None}, "annotations": {SET_UP: record["ended"], SEEN: observed or None}}


RECORDS = (("benchmarks.json", CARRIED_OVER, benchmarked), ("setup.json", SET_UP, set_up))
"""Files, the annotation that says which run was carried over, and what each becomes."""


def carry_over(folder: Path, name: str, cluster: Cluster) -> list[str]:
    """Label the node by its records, unless that was done or there is nothing decided yet. Returns which it did."""
    done = []
    for file, marker, read in RECORDS:
        if not (folder / file).is_file():
            continue
        made = read(json.loads((folder / file).read_text(encoding="utf-8")))
        if made is None:
            continue
        annotations = cluster.node(name)["metadata"].get("annotations", {})
        if annotations.get(marker) != made["annotations"][marker]:
            cluster.patch(name, made)
            done.append(file)
    return done


def main() -> None:
    """Look again and again; a software update brings a new record. What goes wrong is tried again."""
    folder, name = Path(os.environ["RECORDS"]), os.environ["NODE_NAME"]
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    cluster = Cluster(Path(os.environ["SERVICE_ACCOUNT"]), f"[{host}]" if ":" in host else host, port)
    while True:
        try:
            for file in carry_over(folder, name, cluster):
                sys.stdout.write(f"{name} is labelled by {file}\n")
        except (OSError, ValueError, KeyError) as error:
            sys.stdout.write(f"{name} is not labelled: {error!r}; next try in {os.environ['SECONDS_BETWEEN']} s\n")
        sys.stdout.flush()
        time.sleep(float(os.environ["SECONDS_BETWEEN"]))


if __name__ == "__main__":
    main()
