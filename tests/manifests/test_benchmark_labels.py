"""Labels of benchmark results: the manifests, what the admission policy lets through, and the script in the pod."""

import copy
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import cdk8s
import cel
import kubernetes_validate
import pytest

from benchmark_services import record
from podwright.cdk8s_charts.benchmark_labels.chart import BenchmarkLabels
from podwright.cdk8s_charts.benchmark_labels.handler import benchmark_labeller
from podwright.config.catalog.images import Image
from podwright.config.settings.groups import InstanceGroup
from podwright.lifecycle_scripts.podwright_node.benchmarking.step import RECORD
from podwright.lifecycle_scripts.podwright_node.runner.verdict import RECORD as SET_UP
from podwright.sandbox.kubernetes.certificates import Authority
from waiting import until

USER = "system:serviceaccount:kube-system:podwright-benchmark-labels"
STARTED = "2026-11-21T10:00:00.000+00:00"


OWN_SCRIPTS = {"lifecycle": {"source": "s3://sagemaker-own/scripts", "on_create": "run.sh"}}


def chart(mirror: dict[str, Image] | None = None, own: str = "", **policies: str | None) -> list[dict[str, Any]]:
    """The manifests for groups with such a policy of benchmarks; those that `own` names have scripts of their own."""
    groups = {
        name: InstanceGroup.model_validate(
            {"instance_type": "ml.p5en.48xlarge", "count": 2} | (OWN_SCRIPTS if name in own else {"benchmarks": policy})
        )
        for name, policy in policies.items()
    }
    return BenchmarkLabels(cdk8s.App(), "labels", groups=groups, mirror=mirror).to_json()


def only(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (items,) = [item for item in manifests if item["kind"] == kind]
    return items


def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return only("DaemonSet", manifests)["spec"]["template"]["spec"]


@pytest.mark.parametrize("version", ["1.33", "1.34", "1.35"])
def test_manifests_fit_kubernetes(version: str) -> None:
    for manifest in chart(a="gate"):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_runs_on_the_groups_with_our_scripts_whatever_their_taints() -> None:
    actual = pod(chart(own="e", b="report", a="gate", c="skip", d=None, e=None))
    (term,) = actual["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    key = "sagemaker.amazonaws.com/instance-group-name"
    assert term["matchExpressions"] == [{"key": key, "operator": "In", "values": ["a", "b", "c", "d"]}]
    assert actual["tolerations"] == [{"operator": "Exists"}]


def test_where_all_scripts_are_the_users_there_is_nothing() -> None:
    assert chart(own="a", a=None) == []


def test_the_pod_can_do_little_on_its_node() -> None:
    actual = pod(chart(a="gate"))
    (container,) = actual["containers"]
    assert actual["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    (host,) = [volume["hostPath"]["path"] for volume in actual["volumes"] if "hostPath" in volume]
    assert {f"{host}/{file}" for file, *_ in benchmark_labeller.RECORDS} == {RECORD, SET_UP}
    assert {item["name"]: item.get("value") for item in container["env"]}["RECORDS"] == host
    assert only("ClusterRole", chart(a="gate"))["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
    ]


def test_a_mirrored_image_takes_its_place() -> None:
    copied = Image("r.example", "podwright/python", "3", "sha256:" + "d" * 64)
    actual = pod(chart({"public.ecr.aws/docker/library/python": copied}, a="gate"))
    assert actual["containers"][0]["image"] == str(copied)


def test_the_script_that_is_shipped_is_the_script_that_is_tested() -> None:
    data = only("ConfigMap", chart(a="gate"))["data"]
    assert data == {"benchmark_labeller.py": Path(benchmark_labeller.__file__).read_text()}


# --- The admission policy, by an interpreter of its language ---


def node(**metadata: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": "ip-10-0-0-1"}
    provided = {"name": "node-1", "labels": labels, "annotations": {"volumes.kubernetes.io/attach": "true"}}
    return {"metadata": provided | metadata, "spec": {"providerID": "aws:///i-1"}}


def admitted(new: dict[str, Any], old: dict[str, Any], pod_node: str | None = "node-1", user: str = USER) -> bool:
    spec = only("ValidatingAdmissionPolicy", chart(a="gate"))["spec"]
    extra = {} if pod_node is None else {"authentication.kubernetes.io/node-name": [pod_node]}
    names = {"object": new, "oldObject": old, "request": {"userInfo": {"username": user, "extra": extra}}}
    if not all(cel.evaluate(item["expression"], names) for item in spec["matchConditions"]):
        return True
    return all(cel.evaluate(item["expression"], names) for item in spec["validations"])


def merged(decided: dict[str, Any]) -> dict[str, Any]:
    made = benchmark_labeller.benchmarked(decided)
    assert made
    return made


def labelled(old: dict[str, Any], action: str = "replace") -> dict[str, Any]:
    """The node after our patch."""
    decided = record("fail", decision={"policy": "gate", "action": action, "reason": "because"})
    new = copy.deepcopy(old)
    for field, values in merged(decided).items():
        new["metadata"][field] = new["metadata"].get(field, {}) | values
    return new


@pytest.mark.parametrize("old", [node(), node(annotations={}), {"metadata": {"name": "node-1"}, "spec": {}}])
def test_the_policy_admits_what_the_script_does(old: dict[str, Any]) -> None:
    assert admitted(labelled(old), old)
    assert admitted(labelled(labelled(old), "keep"), labelled(old))


def test_the_policy_refuses_another_node_and_pods_that_cannot_say_where_they_run() -> None:
    assert not admitted(labelled(node()), node(), pod_node="node-2")
    assert not admitted(labelled(node()), node(), pod_node=None)


def test_the_policy_admits_a_node_that_is_degraded_and_well_again() -> None:
    degraded = set_up_of(node(), {"clock": "no answer"})
    assert degraded["metadata"]["labels"][benchmark_labeller.DEGRADED] == "clock"
    assert admitted(degraded, node())
    assert admitted(set_up_of(degraded, {}), degraded)
    assert not admitted(node(), labelled(node())), "a verdict stays"


def set_up_of(old: dict[str, Any], steps: dict[str, str]) -> dict[str, Any]:
    """The node after our patch for a set-up with such steps."""
    new = copy.deepcopy(old)
    for field, values in benchmark_labeller.set_up({"degraded": steps, "ended": STARTED}).items():
        both = new["metadata"].get(field, {}) | values
        new["metadata"][field] = {key: value for key, value in both.items() if value is not None}
    return new


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"kubernetes.io/hostname": "other"}},
        {"labels": {}},
        {"labels": node()["metadata"]["labels"] | {"node-role.kubernetes.io/control-plane": ""}},
        {"annotations": {}},
        {"annotations": {"volumes.kubernetes.io/attach": "false"}},
    ],
)
def test_the_policy_refuses_other_labels_and_annotations(change: dict[str, Any]) -> None:
    assert not admitted(node(**change), node())


def test_the_policy_refuses_a_change_of_the_spec() -> None:
    assert not admitted(node() | {"spec": {"unschedulable": True}}, node())


@pytest.mark.parametrize(
    "change",
    [
        {"finalizers": ["example.com/never"]},
        {"ownerReferences": [{"kind": "ConfigMap", "name": "owner"}]},
        {"labels": node()["metadata"]["labels"] | {benchmark_labeller.VERDICT: "anything"}},
        {"labels": node()["metadata"]["labels"] | {benchmark_labeller.HEALTH: "Schedulable"}},
    ],
)
def test_the_policy_refuses_other_metadata_and_values(change: dict[str, Any]) -> None:
    assert not admitted(node(**change), node())
    assert admitted(labelled(node(**change)), node(**change)), "what others did stays"


def test_the_policy_is_about_our_account_only() -> None:
    assert admitted(node(labels={}), node(), user="system:node:node-1")


# --- The script, against an API server that answers over TLS ---


class Api:
    """A Kubernetes API with one node, which merges patches as RFC 7386 says."""

    def __init__(self, folder: Path) -> None:
        self.node: dict[str, Any] = {"metadata": {"name": "node-1", "labels": {"given": "stays"}}}
        self.reads = self.patches = 0
        self.broken = False
        authority = Authority.open(folder / "tls")
        server = authority.server("api")
        self.account = folder / "account"
        self.account.mkdir()
        (self.account / "ca.crt").write_bytes(authority.file.read_bytes())
        (self.account / "token").write_text("first")
        api = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self, status: int, value: Any) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(value).encode())

            def do_GET(self) -> None:
                token = (api.account / "token").read_text()
                known = self.headers["Authorization"] == f"Bearer {token}" and self.path == "/api/v1/nodes/node-1"
                api.reads += known
                self._answer(500 if api.broken else 200 if known else 401, api.node)

            def do_PATCH(self) -> None:
                assert self.headers["Content-Type"] == "application/merge-patch+json"
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for field, values in body["metadata"].items():
                    both = api.node["metadata"].get(field, {}) | values
                    api.node["metadata"][field] = {key: value for key, value in both.items() if value is not None}
                api.patches += 1
                self._answer(200, api.node)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(server.certificate, server.key)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def labels(self) -> dict[str, str]:
        return self.node["metadata"].get("labels", {})


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    made = Api(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def labeller(api: Api, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The script as the pod runs it, looking often."""
    environment = {
        "RECORDS": str(tmp_path),
        "NODE_NAME": "node-1",
        "SERVICE_ACCOUNT": str(api.account),
        "KUBERNETES_SERVICE_HOST": "localhost",
        "KUBERNETES_SERVICE_PORT": str(api.server.server_port),
        "SECONDS_BETWEEN": "0.05",
    }
    command = [sys.executable, "-B", "-I", benchmark_labeller.__file__]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def write(folder: Path, action: str | None, verdict: str = "fail", started: str = STARTED) -> None:
    """What the node's scripts leave, in one move."""
    decision = {"policy": "gate", "action": action, "reason": "because"} if action else None
    (folder / "new").write_text(json.dumps(record(verdict, started=started, decision=decision)))
    (folder / "new").replace(folder / "benchmarks.json")


def test_a_verdict_becomes_a_label(api: Api, labeller: subprocess.Popen[str], tmp_path: Path) -> None:
    write(tmp_path, None)
    write_set_up(tmp_path, {"ssh": "no answer"}, STARTED)
    until(lambda: api.patches, "the set-up became a label")
    # A look asks for the node once, for the set-up.
    reads = api.reads
    until(lambda: api.reads > reads + 1, "the labeller has looked again")
    assert "podwright/benchmarks" not in api.labels, "the node has not decided yet"
    write(tmp_path, "keep", "pass")
    until(lambda: "podwright/benchmarks" in api.labels, "the verdict became a label")
    assert api.labels == {"given": "stays", "podwright/benchmarks": "pass", "podwright/degraded": "ssh"}
    assert api.node["metadata"]["annotations"] == {
        "podwright/degraded-steps": "ssh: no answer",
        "podwright/set-up-ended": STARTED,
        "podwright/benchmarks-started": STARTED,
        "podwright/benchmarks-decision": "keep: because",
    }


def test_a_node_to_be_replaced_is_marked_once(api: Api, labeller: subprocess.Popen[str], tmp_path: Path) -> None:
    health = "sagemaker.amazonaws.com/node-health-status"
    write(tmp_path, "replace")
    until(lambda: api.patches, "the labeller has patched the node")
    assert api.labels[health] == "UnschedulablePendingReplacement"
    api.labels[health] = "Schedulable"  # as an operator does who keeps the node
    reads = api.reads
    until(lambda: api.reads > reads + 1, "the labeller has looked again")
    assert (api.labels[health], api.patches) == ("Schedulable", 1)
    write(tmp_path, "keep", "pass", "2026-12-01T00:00:00.000+00:00")  # after a software update
    until(lambda: api.patches == 2, "the labeller has patched the node again")
    assert api.labels["podwright/benchmarks"] == "pass"


def test_a_failing_api_and_a_new_token_are_no_end(api: Api, labeller: subprocess.Popen[str], tmp_path: Path) -> None:
    api.broken = True
    write(tmp_path, "keep", "warn")
    assert labeller.stdout
    assert "node-1 is not labelled: <HTTPError 500" in labeller.stdout.readline()
    (api.account / "token").write_text("second")
    api.broken = False
    until(lambda: api.patches, "the labeller has patched the node")
    assert api.labels["podwright/benchmarks"] == "warn"


def test_failed_steps_become_a_label_that_goes_with_them(
    api: Api, labeller: subprocess.Popen[str], tmp_path: Path
) -> None:
    write_set_up(tmp_path, {"ssh": "sshd: no such file", "clock": "no answer"}, STARTED)
    until(lambda: api.patches, "the labeller has patched the node")
    assert api.labels == {"given": "stays", "podwright/degraded": "clock.ssh"}
    annotations = api.node["metadata"]["annotations"]
    assert annotations["podwright/degraded-steps"] == "clock: no answer; ssh: sshd: no such file"
    write(tmp_path, "keep", "pass")
    until(lambda: api.labels.get("podwright/benchmarks") == "pass", "the verdict became a label")
    assert api.labels["podwright/degraded"] == "clock.ssh"
    write_set_up(tmp_path, {}, "2026-12-01T00:00:00.000+00:00")  # after a software update
    until(lambda: "podwright/degraded" not in api.labels, "the label of the set-up is gone")
    assert "podwright/degraded-steps" not in api.node["metadata"]["annotations"]


def write_set_up(folder: Path, degraded: dict[str, str], ended: str) -> None:
    """The verdict of a set-up as the scripts write it, in one move."""
    (folder / "new").write_text(json.dumps({"version": 1, "verdict": "degraded", "degraded": degraded, "ended": ended}))
    (folder / "new").replace(folder / "setup.json")


def test_a_label_has_whole_names_of_steps_and_no_more_than_kubernetes_takes() -> None:
    names = [f"step-number-{number:02}" for number in range(9)]
    made = benchmark_labeller.set_up({"degraded": dict.fromkeys(names, "x"), "ended": STARTED})
    label = made["labels"][benchmark_labeller.DEGRADED]
    assert label == ".".join(names[:4])
    assert all(f"{name}: x" in made["annotations"][benchmark_labeller.SEEN] for name in names)
