"""Runs KAI outside of pods: one process for the container of each Deployment.

KAI's chart deploys an operator, which deploys the binder, the groupers, the controllers, and a scheduler for each pool
of nodes. It derives their arguments and configuration from the objects `Config` and `SchedulingShard`. kwok simulates
the pods. Their programs run here with the same arguments, configuration and service account.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from ...operations.programs.helm import helm
from ..kubernetes.cluster_objects import ClusterObjects
from .processes import Component, Ports
from .webhooks import Manifest, called_services, write_files

NAMESPACE: Final = "kai-scheduler"
PART: Final = "kai-scheduler"
_CONFIG: Final = ("kai.scheduler/v1", "Config", "kai-config")
_REGISTRATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_CERTIFICATES: Final = "k8s-webhook-server/serving-certs"
_OF_CONFIG: Final = frozenset({"admission", "binder", "podgrouper", "podgroupcontroller", "queuecontroller"})
"""Deployments of the operator for a Config. Each shard also has a scheduler."""
_METRICS: Final = frozenset({"binder", "podgrouper", "queuecontroller", "scheduler"})
"""Programs without a readiness endpoint; their metrics show that they are ready."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Deployment whose container runs one of KAI's programs."""

    name: str
    template: Manifest
    """Of the Deployment's pods: another one is another process."""

    @property
    def program(self) -> str:
        """Name of its file, which is also the image's name."""
        return self._container["image"].rpartition("/")[2].partition(":")[0]

    @property
    def user(self) -> str:
        """User name of its service account."""
        return f"system:serviceaccount:{NAMESPACE}:{self.template['spec']['serviceAccountName']}"

    @property
    def _container(self) -> Manifest:
        return self.template["spec"]["containers"][0]

    def mount(self, objects: ClusterObjects, folder: Path) -> bool:
        """Write its volumes into a folder, as the kubelet does. Returns False if a source does not exist yet."""
        complete = True
        for volume in self.template["spec"].get("volumes", ()):
            if "secret" in volume:
                source = objects.find("v1", "Secret", volume["secret"]["secretName"], NAMESPACE)
                complete &= write_files((source or {}).get("data", {}), folder / _CERTIFICATES)
            if "configMap" in volume:
                source = objects.find("v1", "ConfigMap", volume["configMap"]["name"], NAMESPACE)
                complete &= bool(source)
                for file, text in (source or {}).get("data", {}).items():
                    (folder / file).write_text(text, encoding="utf-8")
        return complete

    def component(self, folder: Path, part: Path, kubeconfig: Path, ports: Ports, own: tuple[int, int]) -> Component:
        """Return its process.

        Args:
            folder: Its folder with the mounted volumes.
            part: The folder of the installed programs.
            kubeconfig: Kubeconfig of its service account.
            ports: Ports of the webhooks.
            own: A port for its health or metrics, and one for the scheduler's plugins.
        """
        health, other = own
        webhooks = _webhooks(ports).get(self.program)
        command = [str(part / self.program), *self._container.get("args", ())]
        # The last of two values counts.
        command += {
            "operator": ["--metrics-bind-address=0"],
            "binder": [f"--metrics-bind-address=127.0.0.1:{health}", "--health-probe-bind-address=0"],
            "podgrouper": [f"--metrics-bind-address=127.0.0.1:{health}", "--health-probe-bind-address=0"],
            "podgroupcontroller": ["--metrics-bind-address=0", f"--webhook-port={webhooks}"],
            "admission": ["--metrics-bind-address=0", f"--webhook-addr={webhooks}"],
            "queuecontroller": [f"--metrics-listen-address=127.0.0.1:{health}", f"--webhook-port={webhooks}"],
            "scheduler": [
                f"--listen-address=127.0.0.1:{health}",
                f"--plugin-server-port={other}",
                f"--scheduler-conf={folder / 'config.yaml'}",
            ],
        }[self.program]
        page = "metrics"
        if self.program not in _METRICS:
            command.append(f"--health-probe-bind-address=127.0.0.1:{health}")
            page = "readyz"
        variables = {item["name"]: item["value"] for item in self._container.get("env", ()) if "value" in item}
        return Component(
            self.name,
            command,
            f"http://127.0.0.1:{health}/{page}",
            {**variables, "KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder)},
            lambda: webhooks is None or _listens(webhooks),
        )


def deployed(objects: ClusterObjects, part: Path) -> list[Program]:
    """Return the programs of the cluster's Deployments."""
    items = objects.all("apps/v1", "Deployment", NAMESPACE)
    programs = [Program(item["metadata"]["name"], item["spec"]["template"]) for item in items]
    return [program for program in programs if (part / program.program).is_file()]


def configure(objects: ClusterObjects, kubeconfig: Path, release: str, ports: Ports) -> None:
    """Create the Config of a Helm release. The chart uses a hook for it, and hooks do not run here."""
    hooks = helm("get", "hooks", release, "--namespace", NAMESPACE, "--kubeconfig", str(kubeconfig))
    manifests = [item for item in yaml.load_all(hooks, yaml.CSafeLoader) if item]
    for config in (item for item in manifests if (item["apiVersion"], item["kind"]) == _CONFIG[:2]):
        objects.apply(config, NAMESPACE)
    move(objects, ports)


def move(objects: ClusterObjects, ports: Ports) -> None:
    """Change KAI's webhooks to their ports, if KAI is installed."""
    config = objects.find(*_CONFIG)
    if config is None:
        return
    service = {key: {"controllerService": {"webhook": {"port": port}}} for key, port in _services(ports).items()}
    # kwok's nodes have no runtime class, and this version of the chart has no setting for that.
    admission = {"webhook": {"port": ports.kai_admission_webhooks}, "gpuPodRuntimeClassName": ""}
    binder = {"resourceReservation": {"runtimeClassName": ""}}
    objects.patch(config, {"spec": {"admission": admission, "binder": binder, **service}}, "merge")


def is_deployed(objects: ClusterObjects, part: Path, ports: Ports) -> bool:
    """True if KAI's operator has created the objects of its Config. The Config's status reports this too early."""
    called = {service.get("port") for item in _called(objects) for service in called_services(item)}
    programs = {program.program for program in deployed(objects, part)}
    return called == set(_webhooks(ports).values()) and programs >= _OF_CONFIG


def remove(objects: ClusterObjects) -> None:
    """Delete the objects that remain after a release: the Config with its objects, and those of a deletion hook."""
    left = [config] if (config := objects.find(*_CONFIG)) else []
    # Kubernetes deletes them in any order. A webhook without its service would block the creation of pods.
    for item in (*left, *_called(objects), *objects.all("apps/v1", "Deployment", NAMESPACE)):
        objects.remove(item)


def _called(objects: ClusterObjects) -> list[Manifest]:
    """Return the configurations of KAI's webhooks."""
    items = [item for kind in _REGISTRATIONS for item in objects.all("admissionregistration.k8s.io/v1", kind)]
    return [item for item in items if _calls_kai(item)]


def _calls_kai(item: Manifest) -> bool:
    return any(service["namespace"] == NAMESPACE for service in called_services(item))


def _services(ports: Ports) -> Mapping[str, int]:
    return {"queueController": ports.kai_queue_webhooks, "podGroupController": ports.kai_podgroup_webhooks}


def _webhooks(ports: Ports) -> Mapping[str, int]:
    return {
        "admission": ports.kai_admission_webhooks,
        "queuecontroller": ports.kai_queue_webhooks,
        "podgroupcontroller": ports.kai_podgroup_webhooks,
    }


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
