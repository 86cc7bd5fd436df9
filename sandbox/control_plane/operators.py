"""Kueue and the operators of job kinds, as processes outside of pods.

An operator is installed with the objects of its upstream release, except for its Deployment. It authenticates as its
service account, so upstream's RBAC applies.
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
"""Folders of the operators that are part of podwright, because upstream's source is closed."""
TIME_SCALE: Final = "PODWRIGHT_TIME_SCALE"
"""Variable with the factor for the waits of podwright's own operators."""
CONFIGURATION: Final = "configuration.json"
"""Configuration file in an operator's folder, for operators that read one."""
_SETTINGS: Final = "controller_manager_config.yaml"
# HyperPod's chart contains it in the version of its own MPI operator.
_LEFT_OUT: Final[dict[Name, str]] = {"training-operator": "mpijobs.kubeflow.org"}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator with its ports."""

    name: Name
    program: str
    namespace: str
    account: str
    """Its service account."""
    health: int
    services: Mapping[str, int] = field(default_factory=dict)
    """Its ports by the names of its services. The first is that of its webhooks."""
    secret: str = ""
    """Secret with the certificates of its webhooks, which it writes itself."""
    settings: str = ""
    """ConfigMap with its configuration; empty if it reads none."""
    ready: str = "readyz"
    """Path of its readiness endpoint."""

    @property
    def user(self) -> str:
        """User name of its service account."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def health_address(self) -> str:
        """Address of its readiness endpoint."""
        return f"127.0.0.1:{self.health}"

    def arguments(self, folder: Path, kubeconfig: Path, settings: str) -> list[str]:
        """Return the arguments of its process in `folder`. `settings` is the cluster's configuration as YAML."""
        if self.settings:
            file = folder / CONFIGURATION
            file.write_text(self.configuration(folder, settings), encoding="utf-8")
            # Kueue has a flag for the kubeconfig, which its visibility server also uses.
            return [f"--config={file}", f"--kubeconfig={kubeconfig}"]
        if self.name == "hyperpod-training-operator":
            module = ["-P", "-m", "podwright.sandbox.training_operator"]
            return [*module, f"--kubeconfig={kubeconfig}", f"--port={self.health}"]
        if self.name == "yunikorn":
            # It has no flags, but reads variables.
            return []
        if self.name == "mpi-operator":
            return [f"--kubeConfig={kubeconfig}"]
        arguments = [f"--kubeconfig={kubeconfig}", f"--health-probe-bind-address={self.health_address}"]
        if self.name == "kuberay":
            return [*arguments, "--metrics-addr=0", "--enable-leader-election=false"]
        webhooks = f"--webhook-server-port={self.services['training-operator']}"
        # Another operator runs MPIJobs (see `_LEFT_OUT`).
        return [*arguments, "--metrics-bind-address=0", webhooks, "--enable-scheme=pytorchjob"]

    def certificates(self, folder: Path) -> Path:
        """Return the folder of its webhook certificates. Controller-runtime's default is below TMPDIR."""
        return folder / "k8s-webhook-server" / "serving-certs"

    def configuration(self, folder: Path, settings: str) -> str:
        """Return its configuration in a cluster, changed for one process on loopback."""
        webhook: dict[str, Any] = {"host": "127.0.0.1", "port": next(iter(self.services.values()))}
        own: dict[str, Any] = {
            "health": {"healthProbeBindAddress": self.health_address},
            "metrics": {"bindAddress": "0"},
            "webhook": webhook,
            "leaderElection": {"leaderElect": False},
        }
        if self.name in ("kueue", "lws"):
            # The other operators use the default below TMPDIR.
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
    """Return an operator with a control plane's ports."""
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
    """Return the objects of an operator's installed release without its Deployment, with changed settings.

    Args:
        operator: The operator.
        folder: Folder of the installed part.
        settings: Changes of the release's configuration, by key.
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
    """Return the objects that an operator needs and its release lacks: a namespace and an empty Secret."""
    expected: list[Manifest] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": operator.secret, "namespace": operator.namespace}},
    ]
    present = {(item["kind"], item["metadata"]["name"]) for item in objects}
    named = (item for item in expected if item["metadata"]["name"])
    return [item for item in named if (item["kind"], item["metadata"]["name"]) not in present]


def is_settings(item: Manifest) -> bool:
    """True if an object of a release contains the operator's configuration."""
    return _SETTINGS in item.get("data", {})


def settings_of(operator: Operator, kubeconfig: Path) -> str:
    """Return an operator's configuration in the cluster as YAML; empty if it has none."""
    if not operator.settings:
        return ""
    item = find(kubeconfig, "ConfigMap", operator.namespace, operator.settings)
    return item["data"][_SETTINGS] if item else ""
