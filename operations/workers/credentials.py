"""A worker's kubeconfig in the manager of MultiKueue: with the token of the account that the worker keeps for it."""

import base64
import json
import time
from typing import Any, Final

from ...cdk8s_charts.multikueue import MULTIKUEUE_ACCOUNT, MULTIKUEUE_NAMESPACE, worker_objects
from ...config.errors import CommandError
from ...config.settings.governance.kueue import MultiKueue
from ..kubernetes.kubectl import Kubectl, Refused

_POLL_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 30.0
_IN_NAMESPACE: Final = ("--namespace", MULTIKUEUE_NAMESPACE)


def worker_token(worker: Kubectl, settings: MultiKueue, *, renew: bool) -> str:
    """The token with which a manager comes to a worker. It does not expire.

    Args:
        worker: The worker.
        settings: Its settings of MultiKueue.
        renew: Make a new one, after which the former is worth nothing.

    Raises:
        CommandError: The worker has no such account, or makes no token.
    """
    if renew:
        worker.run("delete", "secret", MULTIKUEUE_ACCOUNT, *_IN_NAMESPACE, "--ignore-not-found")
        worker.apply([item for item in worker_objects(settings) if item["kind"] == "Secret"])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            data = worker.one("secret", MULTIKUEUE_ACCOUNT, *_IN_NAMESPACE).get("data", {})
        except Refused as refused:
            raise CommandError(
                f"the worker has no account for its manager: {refused}", "deploy the worker first"
            ) from None
        if "token" in data:
            return base64.b64decode(data["token"]).decode()
        if time.monotonic() > deadline:
            raise CommandError(
                f"the worker makes no token for {MULTIKUEUE_ACCOUNT}",
                "in the sandbox, `podwright sandbox kubernetes install` brings clusters that do",
            )
        time.sleep(_POLL_SECONDS)


def write_secret(manager: Kubectl, name: str, cluster: dict[str, Any], token: str) -> None:
    """Write the Secret by which a manager reaches a worker.

    Args:
        manager: The manager.
        name: The Secret's name.
        cluster: The worker's cluster as EKS describes it.
        token: What opens it.
    """
    end = {"server": cluster["endpoint"], "certificate-authority-data": cluster["certificateAuthority"]["data"]}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "clusters": [{"name": "worker", "cluster": end}],
        "users": [{"name": "manager", "user": {"token": token}}],
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "manager"}}],
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": MULTIKUEUE_NAMESPACE},
        "data": {"kubeconfig": base64.b64encode(json.dumps(kubeconfig).encode()).decode()},
    }
    # A client-side apply would keep the token in an annotation, too.
    manager.apply([secret], "--server-side", "--force-conflicts", "--field-manager=podwright")


def remove_secret(manager: Kubectl, name: str) -> None:
    """Take the way into a worker from its manager."""
    manager.run("delete", "secret", name, *_IN_NAMESPACE, "--ignore-not-found")


def state(manager: Kubectl, worker: str) -> tuple[bool, str]:
    """Whether Kueue of the manager reaches a worker, and what it says of it."""
    conditions = manager.one("multikueuecluster", worker).get("status", {}).get("conditions", [])
    active = next((item for item in conditions if item["type"] == "Active"), None)
    if active is None:
        return False, "Kueue says nothing of it yet"
    return active["status"] == "True", active["message"]
