"""`podwright drill`: what it refuses, what it does to a node, and what it prints."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drill_cluster import BROKEN, OTHER, REPLACED, DrillCluster, FakeKubectl, pod
from podwright.config.catalog.drills import HEALTH_LABEL, drill_kinds
from podwright.config.catalog.images import Image
from podwright.config.errors import CommandError
from podwright.config.settings.environment import Environment
from podwright.operations.aws.clusters import Node
from podwright.operations.cli import main
from podwright.operations.drills import command, guard, inject
from podwright.operations.kubernetes.kubectl import Kubectl, Refused
from podwright.operations.nodes import follow
from podwright.operations.nodes.timeline import Timeline
from podwright.planning.helm.own_images import BENCHMARK_LABELS_IMAGE, own_images

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {name: prod}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az2}
observability: {drills: true}
"""


@pytest.fixture
def drill_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DrillCluster:
    """A project, and a cluster whose broken node is replaced; its time passes at once."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    drill_cluster = DrillCluster(REPLACED)
    account = SimpleNamespace(endpoint=None, client=lambda _: drill_cluster)
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    monkeypatch.setattr(command, "required_way", lambda *_: drill_cluster.kubectl)
    for module in (follow, inject):
        monkeypatch.setattr(
            module,
            "time",
            SimpleNamespace(sleep=drill_cluster.sleep, time=drill_cluster.clock, monotonic=drill_cluster.clock),
        )
    monkeypatch.setattr(command, "Observer", lambda client, cluster, node, kubectl: drill_cluster.observer())
    for name, replaced in (("sleep", drill_cluster.sleep), ("clock", drill_cluster.clock)):
        monkeypatch.setitem(cast(Any, follow.follow).__kwdefaults__, name, replaced)
    return drill_cluster


def drill(*arguments: str) -> int:
    return main(["drill", "fault", "prod", *arguments])


def test_a_label_begins_a_drill_and_the_record_is_kept(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drill("--node", f"hyperpod-{BROKEN}", "--fault", "label-replace", "--yes") == 0
    (words,) = drill_cluster.kubectl.done
    assert words == (
        "label",
        "node",
        f"hyperpod-{BROKEN}",
        f"{HEALTH_LABEL}=UnschedulablePendingReplacement",
        "--overwrite",
    )
    output = capsys.readouterr()
    assert "hyperpod-ns-research/hyperpodpytorchjob/llama has 1 of its 2 running pods on it" in output.err
    assert "1400 s" not in output.out
    assert "replace: from the mark to a whole group" in output.out
    assert "As it should be." in output.out
    (file,) = Path(".podwright/drills").glob("prod-*-label-replace.json")
    assert json.loads(file.read_text())["marks"]["resumed"] == 1400
    assert main(["drill", "history", "prod"]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.split()[1:3] == ["label-replace", BROKEN]
    assert line.endswith("ok")


@pytest.mark.parametrize(
    ("text", "output"), [("{", "is not a drill: "), ("[]", "is not a drill: "), ("{}", "it lacks begun")]
)
def test_a_file_that_is_no_drill_is_named(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str], text: str, output: str
) -> None:
    Path(".podwright/drills").mkdir(parents=True)
    Path(".podwright/drills/x.json").write_text(text)
    assert main(["drill", "history", "prod"]) == 1
    assert output in capsys.readouterr().err


def test_another_action_than_expected_fails(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill("--node", BROKEN, "--fault", "label-reboot", "--yes") == 1
    assert "HyperPod did a replacement, where a reboot was expected." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "change", "output"),
    [
        (("--fault", "xid-replace"), ("drills: true", "drills: false"), "prod does not allow drills"),
        (("--fault", "xid-replace"), ("observability: {drills: true}\n", ""), "prod does not allow drills"),
        (("--fault", "slurm-reboot"), None, "prod has no drill slurm-reboot"),
        (("--fault", "xid-replace", "--node", "i-00000000000000009"), None, "no node of this cluster"),
        (
            ("--fault", "xid-replace"),
            ("cluster: {name: prod}", "cluster: {name: prod, node_recovery: none}"),
            "is none",
        ),
        (("--fault", "xid-replace"), ("ml.p5en.48xlarge", "ml.m5.8xlarge"), "has no nvidia accelerators"),
        (("--fault", "xid-replace"), None, "a confirmation needs a terminal"),
    ],
)
def test_what_is_refused(
    drill_cluster: DrillCluster,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    change: tuple[str, str] | None,
    output: str,
) -> None:
    file = Path("environments/prod.yaml")
    file.write_text(file.read_text().replace(*(change or ("", ""))))
    assert drill("--node", BROKEN, *arguments) in (1, 2)
    assert output in capsys.readouterr().err
    assert drill_cluster.kubectl.done == drill_cluster.kubectl.applied == []


def test_a_group_that_lacks_a_node_is_left_alone() -> None:
    environment = Environment.model_validate(
        {
            "name": "prod",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"zones": ["usw2-az2", "usw2-az3"]},
            "instance_groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 2, "zone": "usw2-az2"}},
        }
    )
    well = Node(BROKEN, "h200", "ml.p5en.48xlarge", "Running")
    ill = Node(OTHER, "h200", "ml.p5en.48xlarge", "Pending")
    guard.check(environment, drill_kinds()["xid-replace"], well, [well])
    with pytest.raises(CommandError, match=rf"lacks nodes already: {OTHER} \(Pending\)"):
        guard.check(environment, drill_kinds()["xid-replace"], well, [well, ill])


class PodKubectl(FakeKubectl):
    """A cluster in which the drill's pod ends in some way."""

    def __init__(self, drill_cluster: DrillCluster, phase: str) -> None:
        super().__init__(drill_cluster)
        self.phase = phase

    def one(self, kind: str, name: str, *arguments: str) -> Any:
        ended = {"state": {"terminated": {"finishedAt": "2026-11-21T12:00:30Z"}}}
        return {"status": {"phase": self.phase, "containerStatuses": [ended]}}

    def run(self, *arguments: str, specified: str = "", repeatable: bool = True) -> str:
        super().run(*arguments, specified=specified)
        return "the node has no /var/log/messages" if arguments[0] == "logs" else ""


def injected(drill_cluster: DrillCluster, phase: str) -> tuple[PodKubectl, float]:
    kubectl, member = PodKubectl(drill_cluster, phase), Node(BROKEN, "h200", "ml.p5en.48xlarge", "Running")
    return kubectl, inject.inject(
        drill_kinds()["xid-replace"],
        member,
        drill_cluster.observer().observe(),
        cast(Kubectl, kubectl),
        "registry/python:3",
    )


def test_the_pod_is_gone_whatever_becomes_of_it(drill_cluster: DrillCluster) -> None:
    kubectl, started = injected(drill_cluster, "Succeeded")
    assert started == 1795262430.0, "the end of its container, and not the moment at which somebody looked"
    assert kubectl.done[-1][:2] == ("delete", "pod")
    with pytest.raises(CommandError, match="failed: the node has no /var/log/messages"):
        injected(drill_cluster, "Failed")
    with pytest.raises(CommandError, match="did not end within 120 s"):
        injected(drill_cluster, "Pending")


def test_the_pod_writes_the_drivers_message(tmp_path: Path) -> None:
    manifest = inject.fault_pod(drill_kinds()["xid-replace"], f"hyperpod-{BROKEN}", "registry/python:3")
    (container,) = manifest["spec"]["containers"]
    assert manifest["spec"]["nodeName"] == f"hyperpod-{BROKEN}"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in container["securityContext"]
    script = container["command"][2].replace("/host/log", str(tmp_path))
    variables = {item["name"]: item["value"] for item in container["env"]}
    missing = subprocess.run(["sh", "-c", script], env=variables, capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stdout) == (3, "the node has no /var/log/messages\n")
    (tmp_path / "messages").write_text("before\n")
    subprocess.run(["sh", "-c", script], env=variables, check=True)
    before, line = (tmp_path / "messages").read_text().splitlines()
    assert before == "before"
    assert f" hyperpod-{BROKEN} kernel: NVRM: Xid (PCI:0000:53:00): 74, pid='<unknown>'" in line


def test_only_the_pods_of_jobs_on_the_node_are_deleted(drill_cluster: DrillCluster) -> None:
    drill_cluster.moments[0].pods += [pod("c", BROKEN, kind="DaemonSet")]
    kubectl = FakeKubectl(drill_cluster)
    member = Node(BROKEN, "h200", "ml.p5en.48xlarge", "Running")
    inject.inject(drill_kinds()["pod-loss"], member, drill_cluster.observer().observe(), cast(Kubectl, kubectl), "")
    drill_cluster.moments[0].pods.pop()
    assert kubectl.done == [("delete", "pods", "a", "--namespace=hyperpod-ns-research", "--wait=false")]


def test_an_api_behind_the_node_itself_is_looked_at_again(drill_cluster: DrillCluster) -> None:
    lines: list[str] = []
    observer = drill_cluster.observer()
    before, real = observer.observe(), observer.observe

    def observe() -> Any:
        if 60 <= drill_cluster.now - 1000 < 1200:
            raise Refused("connection refused")
        return real()

    observer.observe = observe
    timeline = Timeline(before, BROKEN, "replace", drill_cluster.now)
    follow.follow(
        [(observer, timeline)],
        follow.Events(drill_cluster, "prod", drill_cluster.now),
        3000,
        lines.append,
        sleep=drill_cluster.sleep,
        clock=drill_cluster.clock,
    )
    assert timeline.done
    assert sum("tried again" in line for line in lines) == 1


def test_the_wait_contains_reads_that_fail_slowly(drill_cluster: DrillCluster) -> None:
    observer, started = drill_cluster.observer(), drill_cluster.now
    timeline = Timeline(observer.observe(), BROKEN, "replace", started)

    def observe() -> Any:
        drill_cluster.sleep(40)
        raise Refused("net/http: TLS handshake timeout")

    observer.observe = observe
    follow.follow(
        [(observer, timeline)],
        follow.Events(drill_cluster, "prod", started),
        600,
        lambda line: None,
        sleep=drill_cluster.sleep,
        clock=drill_cluster.clock,
    )
    assert 600 <= drill_cluster.now - started < 650


def test_kinds_are_listed_with_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drill", "kinds", "--json"]) == 0
    assert [row["kind"] for row in json.loads(capsys.readouterr().out)] == list(drill_kinds())
    assert all(kind.sources for kind in drill_kinds().values())


@pytest.mark.parametrize("allowed", [True, False])
def test_an_environment_with_drills_mirrors_their_image(allowed: bool) -> None:
    own_scripts = {"source": "s3://sagemaker-own/scripts", "on_create": "run.sh"}
    environment = Environment.model_validate(
        {
            "name": "prod",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"zones": ["usw2-az2", "usw2-az3"]},
            # With podwright's scripts, nodes run the image anyway.
            "instance_groups": {"system": {"instance_type": "ml.m5.4xlarge", "count": 2, "lifecycle": own_scripts}},
            "observability": {"drills": allowed},
        }
    )
    assert [str(image) for image in own_images(environment)] == [BENCHMARK_LABELS_IMAGE] * allowed
    assert inject.image_of({}) == BENCHMARK_LABELS_IMAGE
    copy = Image.parse(f"111122223333.dkr.ecr.us-west-2.amazonaws.com/podwright/{BENCHMARK_LABELS_IMAGE}")
    name = Image.parse(BENCHMARK_LABELS_IMAGE).name
    assert inject.image_of({name: copy}).startswith("111122223333.dkr.ecr.us-west-2.amazonaws.com/podwright/public.ecr")
