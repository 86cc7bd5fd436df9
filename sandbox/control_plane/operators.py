"""What acts on custom kinds: Kueue and the training operator, as processes outside of a pod.

An operator comes with its upstream release, less what a pod would do. It authenticates as its service account, so
upstream's RBAC holds for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from .kubectl import read_objects
from .processes import Ports
from .webhooks import Manifest

Name = Literal["kueue", "training-operator"]
NAMES: Final[tuple[Name, ...]] = ("kueue", "training-operator")
_KUEUE_CONFIGURATION: Final = "controller_manager_config.yaml"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, and where it listens."""

    name: Name
    program: str
    namespace: str
    account: str
    """Its service account."""
    secret: str
    """The Secret that it writes the certificates of its webhooks to."""
    services: Mapping[str, int]
    """The ports that it serves, by the names of its services."""
    health: int

    @property
    def user(self) -> str:
        """Its name to the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    def arguments(self, folder: Path, kubeconfig: Path, objects: list[Manifest]) -> list[str]:
        """The arguments of its process, whose own folder is `folder`; `objects` are those of its release."""
        if self.name == "kueue":
            file = folder / "kueue.json"
            file.write_text(json.dumps(self._kueue_configuration(objects, folder)), encoding="utf-8")
            # It takes the kubeconfig from a flag that the visibility server passes on.
            return [f"--config={file}", f"--kubeconfig={kubeconfig}"]
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

    def _kueue_configuration(self, objects: list[Manifest], folder: Path) -> dict[str, Any]:
        """The manager's configuration of the release, for one process on loopback."""
        configured = next(item for item in objects if _KUEUE_CONFIGURATION in item.get("data", {}))
        settings = yaml.safe_load(configured["data"][_KUEUE_CONFIGURATION])
        return settings | {
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
    return Operator(
        name,
        "training-operator.v1",
        "kubeflow",
        "training-operator",
        "training-operator-webhook-cert",
        {"training-operator": ports.training_operator_webhooks},
        ports.training_operator_health,
    )


def release(folder: Path) -> list[Manifest]:
    """The objects of an operator's installed release, without those that run it in a pod."""
    return [item for item in read_objects(folder / "release.yaml") if item["kind"] != "Deployment"]
