"""What acts on custom kinds: Kueue and the training operator, as processes outside of a pod.

An operator comes with its upstream release, less what a pod would do. It authenticates as its service account, so
upstream's RBAC holds for it.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from .kubectl import find, read_objects
from .processes import Ports
from .webhooks import Manifest

Name = Literal["kueue", "training-operator", "hyperpod-training-operator"]
NAMES: Final[tuple[Name, ...]] = ("kueue", "training-operator", "hyperpod-training-operator")
OWN: Final = {"hyperpod-training-operator": Path(__file__).parents[1] / "training_operator"}
"""Folders of operators that are podwright's own, where upstream's is closed."""
_KUEUE_SETTINGS: Final = "controller_manager_config.yaml"
TIME_SCALE: Final = "PODWRIGHT_TIME_SCALE"
"""The variable by which podwright's own operators know what to multiply their waits by."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, and where it listens."""

    name: Name
    program: str
    namespace: str
    account: str
    """Its service account."""
    secret: str
    """The Secret that it writes the certificates of its webhooks to; empty for one without webhooks."""
    services: Mapping[str, int]
    """The ports that it serves, by the names of its services."""
    health: int

    @property
    def user(self) -> str:
        """Its name to the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    def arguments(self, folder: Path, kubeconfig: Path, settings: str) -> list[str]:
        """The arguments of its process, whose own folder is `folder`; `settings` are those of the cluster, as YAML."""
        if self.name == "kueue":
            file = folder / "kueue.json"
            file.write_text(self.configuration(folder, settings), encoding="utf-8")
            # It takes the kubeconfig from a flag that the visibility server passes on.
            return [f"--config={file}", f"--kubeconfig={kubeconfig}"]
        if self.name == "hyperpod-training-operator":
            return ["-P", "-m", "podwright.sandbox.training_operator", str(kubeconfig), str(self.health)]
        return [
            f"--kubeconfig={kubeconfig}",
            f"--health-probe-bind-address=127.0.0.1:{self.health}",
            "--metrics-bind-address=0",
            f"--webhook-server-port={self.services['training-operator']}",
            # HyperPod's chart has an MPI operator of its own, for a newer version of the kind.
            "--enable-scheme=pytorchjob",
        ]

    def certificates(self, folder: Path) -> Path:
        """Where it reads the certificates of its webhooks from; controller-runtime has its default below TMPDIR."""
        return folder / "k8s-webhook-server" / "serving-certs"

    def configuration(self, folder: Path, settings: str) -> str:
        """Kueue's configuration in a cluster, for one process on loopback."""
        own = {
            "namespace": self.namespace,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {
                "host": "127.0.0.1",
                "port": self.services["kueue-webhook-service"],
                "certDir": str(self.certificates(folder)),
            },
            "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": self.services["kueue-visibility-server"]},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": "kueue-webhook-service",
                "webhookSecretName": self.secret,
            },
        }
        return json.dumps(yaml.safe_load(settings) | own)


def operator(name: Name, ports: Ports) -> Operator:
    """An operator on a control plane's ports."""
    if name == "kueue":
        services = {"kueue-webhook-service": ports.kueue_webhooks, "kueue-visibility-server": ports.kueue_visibility}
        return Operator(
            name,
            "kueue",
            "kueue-system",
            "kueue-controller-manager",
            "kueue-webhook-server-cert",
            services,
            ports.kueue_health,
        )
    if name == "hyperpod-training-operator":
        account, health = "podwright-training-operator", ports.hyperpod_training_operator_health
        return Operator(name, sys.executable, "aws-hyperpod", account, "", {}, health)
    return Operator(
        name,
        "training-operator.v1",
        "kubeflow",
        "training-operator",
        "training-operator-webhook-cert",
        {"training-operator": ports.training_operator_webhooks},
        ports.training_operator_health,
    )


def release(folder: Path, settings: Mapping[str, Any]) -> list[Manifest]:
    """The objects of an operator's installed release, without those that run it in a pod, and with other settings.

    Args:
        folder: Of the installed part.
        settings: What its configuration has in place of the release's, by key.
    """
    objects = [item for item in read_objects(folder / "release.yaml") if item["kind"] != "Deployment"]
    for item in objects:
        if is_settings(item):
            changed = yaml.safe_load(item["data"][_KUEUE_SETTINGS]) | settings
            stated = {key: value for key, value in changed.items() if value is not None}
            item["data"] = {_KUEUE_SETTINGS: json.dumps(stated, indent=1)}
    return objects


def is_settings(item: Manifest) -> bool:
    """Whether an object of a release holds the operator's configuration."""
    return _KUEUE_SETTINGS in item.get("data", {})


def settings_of(operator: Operator, kubeconfig: Path) -> str:
    """The configuration that a cluster has for an operator, as YAML; empty for one without."""
    if operator.name != "kueue":
        return ""
    item = find(kubeconfig, "configmap", operator.namespace, "kueue-manager-config")
    return item["data"][_KUEUE_SETTINGS] if item else ""
