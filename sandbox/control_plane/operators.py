"""What acts on custom kinds: Kueue and the operators of kinds of jobs, as processes outside of a pod.

An operator comes with its upstream release, less what a pod would do. It authenticates as its service account, so
upstream's RBAC holds for it.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from ...planning.helm.operators import Operator as Name
from .cluster_api import find
from .kubectl import read_objects
from .processes import Ports
from .webhooks import Manifest

OWN: Final = {"hyperpod-training-operator": Path(__file__).parents[1] / "training_operator"}
"""Folders of the operators that podwright contains, because upstream's source is closed."""
TIME_SCALE: Final = "PODWRIGHT_TIME_SCALE"
"""The variable by which podwright's own operators know what to multiply their waits by."""
CONFIGURATION: Final = "configuration.json"
"""The file in an operator's folder that it was started with, if it reads one."""
_SETTINGS: Final = "controller_manager_config.yaml"
# HyperPod's chart has it in the version of its MPI operator, which is another.
_LEFT_OUT: Final[dict[Name, str]] = {"training-operator": "mpijobs.kubeflow.org"}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, and where it listens."""

    name: Name
    program: str
    namespace: str
    account: str
    """Its service account."""
    health: int
    services: Mapping[str, int] = field(default_factory=dict)
    """The ports that it serves, by the names of its services. The first one is that of its webhooks."""
    secret: str = ""
    """The Secret that it writes the certificates of its webhooks to."""
    settings: str = ""
    """The ConfigMap that holds its configuration, if it reads one."""
    ready: str = "readyz"
    """The path at which it says that it is ready."""

    @property
    def user(self) -> str:
        """Its name to the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def health_address(self) -> str:
        """Where it says that it is ready."""
        return f"127.0.0.1:{self.health}"

    def arguments(self, folder: Path, kubeconfig: Path, settings: str) -> list[str]:
        """The arguments of its process, whose own folder is `folder`; `settings` are those of the cluster, as YAML."""
        if self.settings:
            file = folder / CONFIGURATION
            file.write_text(self.configuration(folder, settings), encoding="utf-8")
            # Kueue takes the kubeconfig from a flag that its visibility server passes on.
            return [f"--config={file}", f"--kubeconfig={kubeconfig}"]
        if self.name == "hyperpod-training-operator":
            module = ["-P", "-m", "podwright.sandbox.training_operator"]
            return [*module, f"--kubeconfig={kubeconfig}", f"--port={self.health}"]
        if self.name == "yunikorn":
            # It has no flags, and takes these from its variables.
            return []
        if self.name == "mpi-operator":
            return [f"--kubeConfig={kubeconfig}"]
        arguments = [f"--kubeconfig={kubeconfig}", f"--health-probe-bind-address={self.health_address}"]
        if self.name == "kuberay":
            return [*arguments, "--metrics-addr=0", "--enable-leader-election=false"]
        webhooks = f"--webhook-server-port={self.services['training-operator']}"
        # MPIJob is another operator's (see `_LEFT_OUT`).
        return [*arguments, "--metrics-bind-address=0", webhooks, "--enable-scheme=pytorchjob"]

    def certificates(self, folder: Path) -> Path:
        """Where it reads the certificates of its webhooks from; controller-runtime has its default below TMPDIR."""
        return folder / "k8s-webhook-server" / "serving-certs"

    def configuration(self, folder: Path, settings: str) -> str:
        """Its configuration in a cluster, for one process on loopback."""
        webhook: dict[str, Any] = {"host": "127.0.0.1", "port": next(iter(self.services.values()))}
        own: dict[str, Any] = {
            "health": {"healthProbeBindAddress": self.health_address},
            "metrics": {"bindAddress": "0"},
            "webhook": webhook,
            "leaderElection": {"leaderElect": False},
        }
        if self.name in ("kueue", "lws"):
            # The others look below TMPDIR.
            webhook["certDir"] = str(self.certificates(folder))
        if self.name == "kueue":
            own |= {
                "namespace": self.namespace,
                "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": self.services["kueue-visibility-server"]},
                "internalCertManagement": {
                    "enable": True,
                    "webhookServiceName": "kueue-webhook-service",
                    "webhookSecretName": self.secret,
                },
            }
        return json.dumps(yaml.safe_load(settings) | own)


def operator(name: Name, ports: Ports) -> Operator:
    """An operator on a control plane's ports."""
    match name:
        case "kueue":
            return Operator(
                name,
                "kueue",
                "kueue-system",
                "kueue-controller-manager",
                ports.kueue_health,
                {"kueue-webhook-service": ports.kueue_webhooks, "kueue-visibility-server": ports.kueue_visibility},
                "kueue-webhook-server-cert",
                "kueue-manager-config",
            )
        case "training-operator":
            return Operator(
                name,
                "training-operator.v1",
                "kubeflow",
                "training-operator",
                ports.training_operator_health,
                {"training-operator": ports.training_operator_webhooks},
                "training-operator-webhook-cert",
            )
        case "mpi-operator":
            return Operator(name, name, name, name, ports.mpi_operator_health, ready="healthz")
        case "kuberay":
            return Operator(name, "ray-operator", "kuberay-system", "kuberay-operator", ports.kuberay_health)
        case "jobset":
            return Operator(
                name,
                "jobset",
                "jobset-system",
                "jobset-controller-manager",
                ports.jobset_health,
                {"jobset-webhook-service": ports.jobset_webhooks},
                "jobset-webhook-server-cert",
                "jobset-manager-config",
            )
        case "trainer":
            return Operator(
                name,
                "trainer-controller-manager",
                "kubeflow-system",
                "kubeflow-trainer-controller-manager",
                ports.trainer_health,
                {"kubeflow-trainer-controller-manager": ports.trainer_webhooks},
                "kubeflow-trainer-webhook-cert",
                "kubeflow-trainer-config",
            )
        case "lws":
            return Operator(
                name,
                "cmd",
                "lws-system",
                "lws-controller-manager",
                ports.lws_health,
                {"lws-webhook-service": ports.lws_webhooks},
                "lws-webhook-server-cert",
                "lws-manager-config",
            )
        case "yunikorn":
            return Operator(name, "shim", name, "yunikorn-admin", ports.yunikorn_health)
        case "hyperpod-training-operator":
            account, health = "podwright-training-operator", ports.hyperpod_training_operator_health
            return Operator(name, sys.executable, "aws-hyperpod", account, health)


def release(operator: Operator, folder: Path, settings: Mapping[str, Any] | None = None) -> list[Manifest]:
    """The objects of an operator's installed release, without those that run it in a pod, and with other settings.

    Args:
        operator: The operator.
        folder: Of the installed part.
        settings: What its configuration has in place of the release's, by key.
    """
    objects = [
        item
        for item in read_objects(folder / "release.yaml")
        if item["kind"] != "Deployment" and item["metadata"]["name"] != _LEFT_OUT.get(operator.name)
    ]
    for item in objects:
        if is_settings(item):
            changed = yaml.safe_load(item["data"][_SETTINGS]) | (settings or {})
            stated = {key: value for key, value in changed.items() if value is not None}
            item["data"] = {_SETTINGS: json.dumps(stated, indent=1)}
    return [*_expected(operator, objects), *objects]


def _expected(operator: Operator, objects: list[Manifest]) -> list[Manifest]:
    """What an operator expects to be there, and its release leaves to who installs it: a namespace, an empty Secret."""
    expected: list[Manifest] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": operator.secret, "namespace": operator.namespace}},
    ]
    present = {(item["kind"], item["metadata"]["name"]) for item in objects}
    named = (item for item in expected if item["metadata"]["name"])
    return [item for item in named if (item["kind"], item["metadata"]["name"]) not in present]


def is_settings(item: Manifest) -> bool:
    """Whether an object of a release holds the operator's configuration."""
    return _SETTINGS in item.get("data", {})


def settings_of(operator: Operator, kubeconfig: Path) -> str:
    """The configuration that a cluster has for an operator, as YAML; empty for one without."""
    if not operator.settings:
        return ""
    item = find(kubeconfig, "ConfigMap", operator.namespace, operator.settings)
    return item["data"][_SETTINGS] if item else ""
