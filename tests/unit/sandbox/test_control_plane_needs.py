"""The parts of the control plane that environments need, and what the sandbox makes of a cluster that lacks one."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast
from unittest.mock import ANY

import pytest
from werkzeug.test import Client

from podwright.config.errors import CommandError
from podwright.operations.aws import sandbox_clusters
from podwright.operations.aws.account import Account
from podwright.planning.helm.operators import NODE_PARTS, OPERATORS, control_plane_parts
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.eks import needed_parts
from podwright.sandbox.eks.control_planes import Clusters, ControlPlanes, Webhooks
from podwright.sandbox.eks.service import Eks, EksCluster
from podwright.sandbox.kubernetes.clusters import Kubernetes
from podwright.sandbox.protocol.service import Refusal
from synthesis import ROOT, environment, environment_of

BASE = ("etcd", "kubernetes", "kwok")
ACCOUNT = "111122223333"
AT = ("us-west-2", "eks-1")
SMALL = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
SCENARIOS = (
    "two-teams",
    "eight-and-eight",
    "governed-hundred",
    "three-projects",
    "elastic-eight",
    "ultraserver-72",
    "shared-platform-wanted",
)
"""In the order of docs/scenarios/index.md, with the wanted form of the shared platform, which installs its engine."""


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("two-teams", {"kueue", "training-operator"}),
        ("eight-and-eight", {"kueue", "training-operator", "mpi-operator"}),
        ("three-projects", {"training-operator", "kai-scheduler"}),
        ("ultraserver-72", {"kueue"}),
        ("shared-platform-wanted", {"kueue", "training-operator", "kuberay", "jobset", "trainer"}),
    ],
)
def test_an_environment_needs_what_its_charts_addons_and_jobs_bring(name: str, more: set[str]) -> None:
    parts = control_plane_parts(environment(name))
    assert (parts[:3], set(parts[3:]), len(set(parts))) == (BASE, more, len(parts))


def test_no_control_plane_without_kubernetes() -> None:
    assert control_plane_parts(environment("two-teams-slurm")) == ()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["training-operator"]),
        ("platform: {pytorch_jobs: false}", []),
        ("gates: {nccl: {image: repository/nccl-tests:1}}", ["mpi-operator", "training-operator"]),
        ("platform: {leader_worker_set: {}}", ["lws", "training-operator"]),
        ("governance: {engine: kueue}", ["kueue", "training-operator"]),
        ("governance: {engine: yunikorn}", ["training-operator", "yunikorn"]),
    ],
)
def test_settings_add_parts_and_take_them_away(more: str, expected: list[str]) -> None:
    assert sorted(control_plane_parts(environment_of(f"{SMALL}\n{more}"))[3:]) == expected


def test_every_operator_has_a_part_or_is_bundled() -> None:
    built = {part.name for part in pins().parts}
    assert set(OPERATORS) - built == {"hyperpod-training-operator"}


def test_parts_are_built_in_the_order_in_which_scenarios_need_them() -> None:
    order = [part.name for part in pins().parts if part.name not in NODE_PARTS]
    needed = dict.fromkeys(name for scenario in SCENARIOS for name in sorted_by(order, scenario))
    assert order[: len(needed)] == [*needed]
    assert set(order[:5]) == set(control_plane_parts(environment("two-teams")))


def sorted_by(order: list[str], scenario: str) -> list[str]:
    """Return the parts that a scenario needs, in an order of all."""
    return sorted(control_plane_parts(environment(scenario)), key=order.index)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """An empty cache of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Cache.of_user()


def install(cache: Cache, *names: str) -> None:
    """Install parts whose files are empty."""
    for part in map(pins().part, names):
        for name in part.files:
            file = cache.unfinished(part) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        cache.finish(part, 1)


def planes_of(folder: Path, kind: Clusters) -> ControlPlanes:
    return ControlPlanes(folder / "kubernetes", ACCOUNT, Webhooks("", folder, ""), new_clusters=kind)


def eks_of(planes: ControlPlanes) -> Eks:
    return Eks(cast(Any, None), Kubernetes(), "https://localhost/", "", planes)


def test_a_cluster_is_real_where_the_parts_of_its_environment_are_installed(cache: Cache, tmp_path: Path) -> None:
    install(cache, *BASE, "kueue")
    planes = planes_of(tmp_path, "installed")
    planes.note_needs({"one": [*BASE, "kueue"], "two": [*BASE, "kueue", "kuberay"]})
    assert planes.becomes_real("one")
    assert not planes.becomes_real("two")
    assert not planes.becomes_real("of-nobody"), "all parts are needed where nothing is announced"
    # Another process, and one that starts while the sandbox runs.
    install(cache, "kuberay")
    assert planes_of(tmp_path, "installed").becomes_real("two")
    assert not planes_of(tmp_path, "store").becomes_real("two")


def test_a_cluster_that_has_to_be_real_is_refused_by_name(cache: Cache, tmp_path: Path) -> None:
    install(cache, *BASE)
    planes = planes_of(tmp_path, "real")
    planes.note_needs({"two-teams": ["kueue", "training-operator"]})
    with pytest.raises(CommandError, match="lacks kueue, training-operator") as refused:
        planes.becomes_real("two-teams")
    assert refused.value.hint == "`podwright sandbox kubernetes install two-teams`"
    eks = eks_of(planes)
    values = {"name": "c", "tags": {"podwright:environment": "two-teams"}, "resourcesVpcConfig": {}}
    with pytest.raises(Refusal, match="kubernetes install two-teams"):
        eks.create("us-west-2", values, "creator")


@pytest.mark.parametrize(
    ("kind", "installed", "cluster", "expected"),
    [
        ("installed", False, "", ("store", ["kueue"])),
        ("installed", True, "", ("real", [])),
        ("real", False, "", ("real", ["kueue"])),
        ("store", False, "", ("store", [])),
        ("installed", False, "real", ("real", ["kueue"])),
        ("installed", False, "store", ("store", [])),
        ("installed", True, "store", ("store", [])),
    ],
)
def test_the_sandbox_describes_what_a_cluster_is_or_becomes(
    kind: Clusters, installed: bool, cluster: str, expected: tuple[str, list[str]], cache: Cache, tmp_path: Path
) -> None:
    install(cache, *BASE, *(["kueue"] if installed else []))
    planes = planes_of(tmp_path, kind)
    eks = eks_of(planes)
    if cluster:
        eks.clusters[AT] = EksCluster({"name": AT[1], "tags": {"podwright:environment": "one"}})
    if cluster == "real":
        planes._folder(*AT).mkdir(parents=True)
    client = Client(lambda environ, start: needed_parts.serve(eks, environ, start))
    answer = client.put(needed_parts.PATH, data=json.dumps({"one": [*BASE, "kueue"]}))
    described: dict[str, Any] = {"kubernetes": expected[0], "missing": expected[1]}
    if cluster == "real":
        described |= {"real_nodes": 0, "why_simulated": "`--real-nodes` is 0"}
    assert json.loads(answer.data) == {"one": described}
    # A cluster is known by its name, too: the deployment of one may not have been announced.
    listed = {"one": described} | ({AT[1]: described | {"missing": ANY}} if cluster else {})
    assert json.loads(client.get(needed_parts.PATH).data) == listed


class Plane:
    """A control plane that records the operators that were installed."""

    def __init__(self) -> None:
        self.operators: list[str] = []

    def apply_release(self, name: str, settings: dict[str, Any] | None, expected: list[str]) -> None:
        """Record an operator."""
        self.operators.append(name)


def test_the_mpi_operator_is_left_out_where_it_is_not_installed(
    cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plane, planes = Plane(), planes_of(tmp_path, "installed")
    planes.planes[AT] = cast(ControlPlane, plane)
    with caplog.at_level(logging.WARNING):
        planes.apply_releases(*AT, "hyperpod-dependencies")
    assert plane.operators == ["training-operator"]
    assert "eks-1 runs without mpi-operator" in caplog.text
    install(cache, "mpi-operator")
    planes.apply_releases(*AT, "hyperpod-dependencies")
    assert plane.operators == ["training-operator", "training-operator", "mpi-operator"]


@pytest.mark.parametrize("answer", [("store", []), ("real", []), ("store", ["kueue", "trainer"]), ("real", ["kueue"])])
def test_a_deployment_says_what_its_cluster_becomes_before_it_begins(
    answer: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, missing = answer
    asked = list[tuple[str, Any]]()

    def call(url: str, body: Any) -> Any:
        asked.append((url, body))
        return {name: {"kubernetes": kind, "missing": missing} for name in body}

    monkeypatch.setattr(sandbox_clusters, "call", call)
    account = Account(ACCOUNT, "us-east-1", "http://localhost:1", {})
    if kind == "real" and missing:
        with pytest.raises(CommandError, match="lacks kueue, which two-teams needs") as refused:
            sandbox_clusters.announce_cluster(environment("two-teams"), account)
        assert refused.value.hint == "`podwright sandbox kubernetes install two-teams`, and run this again"
    else:
        sandbox_clusters.announce_cluster(environment("two-teams"), account)
    ((url, body),) = asked
    assert url == f"http://localhost:1/podwright/control-plane?account={ACCOUNT}&new=true"
    assert body == {"two-teams": control_plane_parts(environment("two-teams"))}
    printed = " ".join(capsys.readouterr().err.split())
    announced = "lacks kueue, trainer, which two-teams needs: its cluster becomes a store" in printed
    assert announced == (kind == "store" and bool(missing))
    assert announced == ("run `podwright sandbox kubernetes install two-teams` first" in printed)


def test_slurm_asks_the_sandbox_nothing() -> None:
    sandbox_clusters.announce_cluster(environment("two-teams-slurm"), Account(ACCOUNT, "us-east-1", "http://0", {}))


def test_the_command_installs_and_lists_by_environment(cache: Cache, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("podwright")), "sandbox", "kubernetes", *arguments]
        return subprocess.run(command, cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True)

    install(cache, *BASE, "kueue", *NODE_PARTS)
    status = json.loads(run("status", "--json").stdout)["environments"]
    assert status["ultraserver-72"] == []
    assert status["two-teams"] == ["training-operator"]
    assert "two-teams-slurm" not in status
    lines = run("status").stdout.splitlines()
    assert "The installed parts are enough for ultraserver-72." in lines
    assert "two-teams lacks training-operator: `podwright sandbox kubernetes install two-teams`." in lines
    enough = run("install", "ultraserver-72")
    assert (enough.returncode, enough.stderr) == (0, "all 6 parts are installed\n")
    assert enough.stdout == "The installed parts are enough for ultraserver-72.\n"
    assert run("install", "ultraserver-72", "--json").returncode == 0
    unknown, slurm, shown = run("install", "nope"), run("install", "two-teams-slurm"), run("status", "two-teams")
    assert [unknown.returncode, slurm.returncode, shown.returncode] == [2, 2, 2]
    assert "there is no environment 'nope'" in unknown.stderr
    assert "two-teams-slurm has no Kubernetes cluster" in slurm.stderr
    assert "ENV is for `install`, not `status`" in shown.stderr
