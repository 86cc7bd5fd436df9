"""Makes labels of a node's benchmark results. Runs in a pod of that node, with the standard library only.

The node's lifecycle scripts write the results before the node joins, so they cannot label it themselves. The decision
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


def metadata(record: dict[str, Any]) -> dict[str, Any]:
    """The labels and annotations that a record becomes."""
    decision = record["decision"]
    marked = {HEALTH: PENDING_REPLACEMENT} if decision["action"] == "replace" else {}
    return {
        "labels": {VERDICT: record["verdict"], **marked},
        "annotations": {CARRIED_OVER: record["started"], REASON: f"{decision['action']}: {decision['reason']}"},
    }


def carry_over(record_file: Path, name: str, cluster: Cluster) -> bool:
    """Label the node by its record, unless that was done or there is nothing decided yet. Returns whether it did."""
    if not record_file.is_file():
        return False
    record = json.loads(record_file.read_text(encoding="utf-8"))
    if record.get("decision") is None:
        return False
    annotations = cluster.node(name)["metadata"].get("annotations", {})
    if annotations.get(CARRIED_OVER) == record["started"]:
        return False
    cluster.patch(name, metadata(record))
    return True


def main() -> None:
    """Look again and again; a software update brings a new record. What goes wrong is tried again."""
    record_file, name = Path(os.environ["RECORD"]), os.environ["NODE_NAME"]
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    cluster = Cluster(Path(os.environ["SERVICE_ACCOUNT"]), f"[{host}]" if ":" in host else host, port)
    while True:
        try:
            if carry_over(record_file, name, cluster):
                sys.stdout.write(f"{name} is labelled by {record_file}\n")
        except (OSError, ValueError, KeyError) as error:
            sys.stdout.write(f"{name} is not labelled: {error!r}; next try in {os.environ['SECONDS_BETWEEN']} s\n")
        sys.stdout.flush()
        time.sleep(float(os.environ["SECONDS_BETWEEN"]))


if __name__ == "__main__":
    main()
