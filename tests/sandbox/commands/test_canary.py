"""`podwright canary` as it is typed: one node of each group, what they say, and then the fleet."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudformation_cdk import podwright
from podwright.operations.aws import sandbox_server as server

GROUPS = {
    "eks": """\
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 3, zone: usw2-az2, benchmarks: report}
""",
    "slurm": """\
instance_groups:
  head: {instance_type: ml.m5.4xlarge, count: 1, slurm: {node_type: controller}}
  h200:
    instance_type: ml.p5en.48xlarge
    count: 3
    zone: usw2-az2
    benchmarks: report
    slurm: {node_type: compute, partition: train}
""",
}
FILE = """\
account: "123456789012"
region: us-west-2
protection: destroy
network: {{zones: [usw2-az1, usw2-az2]}}
cluster: {{orchestrator: {orchestrator}}}
"""


@pytest.fixture(scope="module", params=sorted(GROUPS))
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("canary") / "cluster"
    podwright(folder.parent, "init", str(folder))
    text = FILE.format(orchestrator=request.param) + GROUPS[request.param]
    (folder / "environments/sandbox.yaml").write_text(text)
    server.start(folder, port=0, time_scale=0.25)
    yield folder
    server.stop(folder)


def run(project: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of a command."""
    answer = podwright(project, *arguments, "--json", code=None)
    return answer.code, answer.document


def run_by_itself(project: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of a command in a process of its own, which runs the CDK CLI."""
    command = [sys.executable, "-P", "-m", "podwright.operations.cli", *arguments, "--json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def counts(project: Path) -> dict[str, int]:
    _, report = run(project, "status")
    return {group["name"]: group["target"] for group in report["groups"]}


def test_one_node_of_each_group_comes_first_and_decides(project: Path, request: pytest.FixtureRequest) -> None:
    running = server.status(project)
    assert running is not None
    body = json.dumps({"verdicts": {"h200": "fail"}}).encode()
    fault = urllib.request.Request(f"{running.endpoint}/podwright/faults", data=body, method="PUT")
    # Once through the app, which has to heed the numbers of nodes that the CLI passes on.
    first = run_by_itself if request.node.callspec.params["project"] == "slurm" else run
    code, answer = first(project, "canary")
    assert (code, answer["verdict"]) == (0, "passed"), answer
    assert set(counts(project).values()) == {1}
    assert {row["setup"] for row in answer["nodes"]} == {"ready"}
    assert answer["next"].startswith("`podwright deploy sandbox`")
    urllib.request.urlopen(fault).close()
    code, answer = run(project, "canary")
    verdict = answer["verdict"]
    assert (code, verdict) == (1, "failed")
    assert any("benchmarks" in text for text in answer["failed"])


@pytest.mark.parametrize("project", ["eks"], indirect=True)
def test_a_canary_of_a_deployed_fleet_keeps_its_nodes(project: Path) -> None:
    run(project, "deploy")
    assert counts(project)["h200"] == 3
    run(project, "canary")
    assert counts(project)["h200"] == 3
