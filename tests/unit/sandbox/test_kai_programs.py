"""KAI's Deployments as processes, and the versions of modules beside those of charts."""

import base64
from pathlib import Path
from typing import Any

import pytest

from podwright.sandbox.control_plane import kai
from podwright.sandbox.control_plane.kai import Program
from podwright.sandbox.control_plane.pins import mismatched_charts, pins
from podwright.sandbox.control_plane.processes import Ports

PORTS = Ports(*range(1000, 1000 + len(Ports.__dataclass_fields__)))
MISMATCHES = {"kai-scheduler": {"kai-scheduler": "v0.17.0"}, "yunikorn": {"yunikorn": "1.9.0"}}
"""Modules that the proxy has at another version than the chart's, by part."""


class Objects:
    """The objects of a cluster, and the patches that were made."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = {(item["kind"], item["metadata"]["name"]): item for item in items}
        self.patches: list[Any] = []

    def find(self, _: str, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        return self.items.get((kind, name))

    def all(self, _: str, kind: str, namespace: str = "", labels: str = "") -> list[dict[str, Any]]:
        return [item for (other, _), item in self.items.items() if other == kind]

    def patch(self, current: dict[str, Any], change: Any, form: str) -> None:
        self.patches.append(change)


def deployment(name: str, image: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    environment = [{"name": "GOGC", "value": "400"}, {"name": "NAMESPACE", "valueFrom": {}}]
    container = {"name": name, "image": f"registry:5000/{image}:0.0.0", "args": [*arguments], "env": environment}
    template = {"spec": {"serviceAccountName": image, "containers": [container], **spec}}
    return {"kind": "Deployment", "metadata": {"name": name}, "spec": {"template": template}}


def program(image: str, *arguments: str, **spec: Any) -> Program:
    return Program(image, deployment(image, image, *arguments, **spec)["spec"]["template"])


def test_only_what_the_part_has_is_run(tmp_path: Path) -> None:
    (tmp_path / "scheduler").touch()
    objects: Any = Objects(
        deployment("kai-scheduler-h100", "scheduler"), deployment("node-scale-adjuster", "nodescaleadjuster")
    )
    assert [item.name for item in kai.deployed(objects, tmp_path)] == ["kai-scheduler-h100"]


def test_a_process_has_the_deployments_arguments_and_ports_on_loopback(tmp_path: Path) -> None:
    process = program("scheduler", "--partition-label-value=h100", "--listen-address=:8080").component(
        tmp_path, Path("/part"), Path("/keys/scheduler.kubeconfig"), PORTS, (1, 2)
    )
    assert process.command == [
        "/part/scheduler",
        *("--partition-label-value=h100", "--listen-address=:8080", "--listen-address=127.0.0.1:1"),
        *("--plugin-server-port=2", f"--scheduler-conf={tmp_path}/config.yaml"),
    ]
    assert process.variables == {"GOGC": "400", "KUBECONFIG": "/keys/scheduler.kubeconfig", "TMPDIR": str(tmp_path)}
    assert process.ready == "http://127.0.0.1:1/metrics"
    assert program("scheduler").user == "system:serviceaccount:kai-scheduler:scheduler"


@pytest.mark.parametrize(
    ("image", "option"),
    [
        ("admission", f"--webhook-addr={PORTS.kai_admission_webhooks}"),
        ("queuecontroller", f"--webhook-port={PORTS.kai_queue_webhooks}"),
        ("podgroupcontroller", f"--webhook-port={PORTS.kai_podgroup_webhooks}"),
    ],
)
def test_webhooks_listen_where_the_config_leads(tmp_path: Path, image: str, option: str) -> None:
    process = program(image).component(tmp_path, Path("/part"), Path("/kubeconfig"), PORTS, (1, 2))
    assert option in process.command
    # Nobody listens there.
    assert not process.prepare()
    objects: Any = Objects({"kind": "Config", "metadata": {"name": "kai-config"}})
    kai.move(objects, PORTS)
    assert objects.patches == [
        {
            "spec": {
                "admission": {"webhook": {"port": PORTS.kai_admission_webhooks}, "gpuPodRuntimeClassName": ""},
                "binder": {"resourceReservation": {"runtimeClassName": ""}},
                "queueController": {"controllerService": {"webhook": {"port": PORTS.kai_queue_webhooks}}},
                "podGroupController": {"controllerService": {"webhook": {"port": PORTS.kai_podgroup_webhooks}}},
            }
        }
    ]


def test_a_cluster_without_kai_has_nothing_to_move() -> None:
    objects: Any = Objects()
    kai.move(objects, PORTS)
    assert (objects.patches, kai.is_deployed(objects, Path(), PORTS)) == ([], False)


def test_volumes_are_mounted_once_all_are_there(tmp_path: Path) -> None:
    volumes = [{"configMap": {"name": "shard"}}, {"secret": {"secretName": "certificates"}}]
    mounted = program("scheduler", volumes=volumes)
    configuration = {"kind": "ConfigMap", "metadata": {"name": "shard"}, "data": {"config.yaml": "actions: allocate"}}
    absent: Any = Objects(configuration)
    assert not mounted.mount(absent, tmp_path)
    certificate = base64.b64encode(b"certificate").decode()
    complete: Any = Objects(
        configuration, {"kind": "Secret", "metadata": {"name": "certificates"}, "data": {"tls.crt": certificate}}
    )
    assert mounted.mount(complete, tmp_path)
    assert (tmp_path / "config.yaml").read_text() == "actions: allocate"
    assert (tmp_path / "k8s-webhook-server/serving-certs/tls.crt").read_bytes() == b"certificate"


def test_modules_of_other_versions_than_their_charts() -> None:
    """Where a module can be had at the chart's version, it is pinned at that; docs/operator.md names the others."""
    parts = {part.name: mismatched_charts(part) for part in pins().parts}
    assert {name: charts for name, charts in parts.items() if charts} == MISMATCHES
    text = (Path(__file__).parents[3] / "docs/operator.md").read_text(encoding="utf-8")
    for name, charts in MISMATCHES.items():
        assert f"{name} | {pins().part(name).version} | {' '.join(charts.values()).removeprefix('v')} |" in text
