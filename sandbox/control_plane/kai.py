"""KAI outside of pods: what its Deployments would run in a container runs here, as a process for each.

KAI's chart deploys an operator, and that deploys the rest: binder, groupers, controllers, and a scheduler for each pool
of nodes, with arguments and configuration that follow from the objects `Config` and `SchedulingShard`. kwok has the
Deployments' pods as objects. Their programs run here, with the same arguments, configuration and service account.
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
"""What the operator deploys for a Config; shards have their scheduler."""
_METRICS: Final = frozenset({"binder", "podgrouper", "queuecontroller", "scheduler"})
"""Programs that say that they are ready by their metrics alone."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Deployment whose container runs one of KAI's programs."""

    name: str
    template: Manifest
    """Of the Deployment's pods: another one is another process."""

    @property
    def program(self) -> str:
        """Its file, which is called like the image."""
        return self._container["image"].rpartition("/")[2].partition(":")[0]

    @property
    def user(self) -> str:
        """Its service account's name to the API server."""
        return f"system:serviceaccount:{NAMESPACE}:{self.template['spec']['serviceAccountName']}"

    @property
    def _container(self) -> Manifest:
        return self.template["spec"]["containers"][0]

    def mount(self, objects: ClusterObjects, folder: Path) -> bool:
        """Write the data of its volumes into a folder, as the kubelet does. Returns whether all are there."""
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
        """Its process.

        Args:
            folder: Its own, with what it mounts.
            part: The folder of the installed programs.
            kubeconfig: Of its service account.
            ports: Where webhooks listen.
            own: Two ports of its own.
        """
        health, other = own
        webhooks = _webhooks(ports).get(self.program)
        command = [str(part / self.program), *self._container.get("args", ())]
        # Of two values, the last one counts.
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
    """What a cluster's Deployments run of an installed part."""
    items = objects.all("apps/v1", "Deployment", NAMESPACE)
    programs = [Program(item["metadata"]["name"], item["spec"]["template"]) for item in items]
    return [program for program in programs if (part / program.program).is_file()]


def configure(objects: ClusterObjects, kubeconfig: Path, release: str, ports: Ports) -> None:
    """Give KAI's operator the Config of a Helm release, which the chart makes by a hook, and none run here."""
    hooks = helm("get", "hooks", release, "--namespace", NAMESPACE, "--kubeconfig", str(kubeconfig))
    manifests = [item for item in yaml.load_all(hooks, yaml.CSafeLoader) if item]
    for config in (item for item in manifests if (item["apiVersion"], item["kind"]) == _CONFIG[:2]):
        objects.apply(config, NAMESPACE)
    move(objects, ports)


def move(objects: ClusterObjects, ports: Ports) -> None:
    """Let KAI's webhooks lead to their ports, if KAI is there."""
    config = objects.find(*_CONFIG)
    if config is None:
        return
    service = {key: {"controllerService": {"webhook": {"port": port}}} for key, port in _services(ports).items()}
    # The chart of this version cannot say that pods get no runtime class; kwok's nodes have none.
    admission = {"webhook": {"port": ports.kai_admission_webhooks}, "gpuPodRuntimeClassName": ""}
    binder = {"resourceReservation": {"runtimeClassName": ""}}
    objects.patch(config, {"spec": {"admission": admission, "binder": binder, **service}}, "merge")


def is_deployed(objects: ClusterObjects, part: Path, ports: Ports) -> bool:
    """Whether KAI's operator has made what its Config asks for. What the Config's status says of that is too early."""
    called = {service.get("port") for item in _called(objects) for service in called_services(item)}
    programs = {program.program for program in deployed(objects, part)}
    return called == set(_webhooks(ports).values()) and programs >= _OF_CONFIG


def remove(objects: ClusterObjects) -> None:
    """Delete what a release leaves when it goes: the Config with what it owns, and what a hook of the chart deletes."""
    left = [config] if (config := objects.find(*_CONFIG)) else []
    # What the Config owns goes with it in no order: no pod can be made while a webhook is there and its service is not.
    for item in (*left, *_called(objects), *objects.all("apps/v1", "Deployment", NAMESPACE)):
        objects.remove(item)


def _called(objects: ClusterObjects) -> list[Manifest]:
    """The registrations of KAI's webhooks."""
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
