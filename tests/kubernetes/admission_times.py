"""How long Kueue takes to admit many jobs of many teams on the nodes of environments/governed-hundred.yaml."""

import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import LoadedEnvironment, load_environment
from podwright.operations.kubernetes.job_manifests import job_manifests
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import environment_policy
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.eks.task_governance import apply_policy, apply_quota, settings
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from real_cluster import add_nodes, api, started
from waiting import until

SCENARIO: Final = Path(__file__).resolve().parents[2] / "environments/governed-hundred.yaml"
GUARANTEED: Final = {"p5": 9, "p4d": 4, "g5": 2}
"""GPUs of each team, by group: fifty teams own 750 of the 800 that the hundred nodes have."""
ASKED: Final = {"p5": 12, "p4d": 5, "g5": 3}
"""Jobs of each team, by group, with one GPU each: twenty, of which fifteen fit."""
_SECONDS: Final = 900.0
_CLIENTS: Final = 8


@dataclass(frozen=True)
class Times:
    """Seconds from the first job until all were created, all that fit were admitted, and all pods of these ran."""

    created: float
    admitted: float
    running: float


def environment(teams: int) -> dict[str, Any]:
    """The scenario with so many teams in place of its five, which want more than they are guaranteed."""
    content = yaml.safe_load(SCENARIO.read_text(encoding="utf-8"))
    names = [f"team-{number:02}" for number in range(teams)]
    quota = {group: {"accelerators": count} for group, count in GUARANTEED.items()}
    content["governance"]["teams"] = {name: {"quota": quota, "borrow_limit_percent": 100} for name in names}
    job = {"kind": "job", "priority": "training", "image": "registry.example.com/train", "command": ["train.py"]}
    # One of each team after the other, as if all came at the same time.
    content["jobs"] = {
        f"{name}-{group}-{number}": job | {"team": name, "group": group, "accelerators": 1}
        for group, count in ASKED.items()
        for number in range(count)
        for name in names
    }
    content["acknowledge"] = []
    return content


def admit(folder: Path, teams: int) -> Times:
    """Start a control plane, give it nodes, quotas and jobs, and see when all that fit run.

    Raises:
        TimeoutError: They did not.
    """
    file = folder / "fifty-teams.yaml"
    file.write_text(json.dumps(environment(teams)), encoding="utf-8")
    loaded = load_environment(file)
    groups = loaded.environment.instance_groups
    with started(folder / "plane") as plane:
        plane.install("kueue", settings({}))
        # Fewer teams have fewer nodes: fifty own those of the scenario.
        counts = {name: math.ceil(groups[name].count * teams / 50) for name in GUARANTEED}
        add_nodes(plane, {name: (groups[name].types[0], count) for name, count in counts.items()})
        _apply_quotas(plane, loaded)
        return _measure(plane, [item for items in job_manifests(loaded).values() for item in items], fitting(teams))


def fitting(teams: int) -> int:
    """How many jobs fit: a team's guarantee holds against whoever borrowed of it, and nobody owns the rest."""
    return teams * sum(GUARANTEED.values())


def _apply_quotas(plane: ControlPlane, loaded: LoadedEnvironment) -> None:
    """What task governance makes of the environment, as the sandbox reads it."""
    objects, governance = ApiObjects(plane.kubeconfig), loaded.environment.governance
    policy = environment_policy(loaded.environment, environment_types(loaded.environment.instance_types))
    apply_policy(objects, {}, scheduler_config(governance, policy))
    for quota in compute_quotas(governance, policy).values():
        apply_quota(objects, quota)


def _measure(plane: ControlPlane, jobs: list[dict[str, Any]], fit: int) -> Times:
    connected = api(plane)

    def create(job: dict[str, Any]) -> None:
        connected.request("POST", f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs", job)

    def queues() -> Iterator[dict[str, Any]]:
        items = connected.request("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues")["items"]
        return (item.get("status", {}) for item in items)

    def seen() -> int:
        return sum(item.get("admittedWorkloads", 0) + item.get("pendingWorkloads", 0) for item in queues())

    def running() -> int:
        query = {"fieldSelector": "status.phase=Running", "labelSelector": "app.kubernetes.io/managed-by=podwright"}
        return len(connected.request("GET", "/api/v1/pods", resourceVersion="0", **query)["items"])

    start = time.monotonic()
    with ThreadPoolExecutor(_CLIENTS) as clients:
        list(clients.map(create, jobs))
    created = time.monotonic() - start
    # A team that Kueue knows no more jobs of has lent what the others now have.
    until(lambda: seen() == len(jobs) and sum(item.get("admittedWorkloads", 0) for item in queues()) == fit)
    admitted = time.monotonic() - start
    until(lambda: running() == fit)
    return Times(created, admitted, time.monotonic() - start)
