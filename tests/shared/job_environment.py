"""Environments with jobs, made from a few lines, and what becomes of them."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from needs import require
from podwright.cdk8s_charts.jobs.render import render
from podwright.config.catalog.instance_types import environment_types
from podwright.config.settings.environment import Environment
from podwright.planning.jobs.plan import JobPlan, Planner

# Put there by .ci/run: the packages alone, since what they depend on is 600 MB that their models do not need.
AWS_PACKAGES = Path(__file__).parents[2] / ".podwright/models/sagemaker_hyperpod"
IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/llm:1"
GROUPS: dict[str, Any] = {
    "system": {"instance_type": "ml.m5.4xlarge", "count": 2},
    "h100": {"instance_type": "ml.p5.48xlarge", "count": 8, "zone": "usw2-az2"},
}
TEAMS: dict[str, Any] = {"llm": {"quota": {"h100": 4}}, "other": {"quota": {"h100": 4}}}
PRIORITIES = {"inference": 100, "training": 70, "extra": 60}
COMMAND = ["python", "train.py", "--lr", "1e-4"]
PODS: dict[str, Any] = {
    "mounts": {"/fsx": "data", "/models": {"claim": "data", "sub_path": "models/llama", "read_only": True}},
    "secrets": {"hub": {"env": {"HF_TOKEN": "token"}, "path": "/secrets/hub"}},
    "config_maps": {"settings": {"env": {"LR": "lr"}, "path": "/etc/train"}},
    "scratch": "/scratch",
    "security": {"run_as_user": 1000, "run_as_group": 2000, "capabilities": ["IPC_LOCK"], "drop": ["NET_RAW"]},
    "pull": "always",
    "pull_secrets": ["registry"],
    "tolerations": [{"key": "dedicated", "value": "llm"}, {"key": "drain", "effect": "NoExecute", "seconds": 60}],
    "affinity": {
        "nodes": [{"label": "topology.k8s.aws/zone-id", "values": ["usw2-az2"]}, {"label": "old", "negated": True}],
        "prefer": [{"label": "rack", "values": ["a", "b"]}],
        "near": [{"labels": {"app": "cache"}, "topology": "topology.kubernetes.io/zone"}],
        "apart": [{"labels": {"app": "noisy"}}],
    },
    "init": {"fetch": {"command": ["fetch", "/scratch"], "env": {"FROM": "hub"}}},
    "requests": {"vcpu": 8, "memory_gib": 64},
}
"""Every setting of pods that kinds with whole pods have."""
_TRAIN = {name: value for name, value in PODS.items() if name not in ("pull", "init", "scratch")}
_TRAIN |= {"mounts": {"/models": PODS["mounts"]["/models"]}}
UPSTREAM_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "pytorch": ("pytorch", {"nodes": 4, "command": COMMAND, "auto_resume": 2, "active_deadline_seconds": 3600}),
    "pytorch elastic": ("pytorch", {"elastic": {"min_replicas": 2, "max_replicas": 4}, "command": COMMAND}),
    "ray": ("ray", {"nodes": 2, "ray_version": "2.49.0", "command": COMMAND, "active_deadline_seconds": 3600}),
    "ray that grows": ("ray", {"nodes": 1, "max_nodes": 4, "ray_version": "2.49.0", "command": COMMAND}),
    "nccl test": ("nccl_test", {"nodes": 2, "expect_gb_per_second": 430}),
    "mpi": ("mpi", {"nodes": 2, "command": ["mpirun", "hostname"], "active_deadline_seconds": 60}),
    "train": ("train", {"nodes": 2, "command": COMMAND, "mounts": {"/fsx": "data"}, "active_deadline_seconds": 60}),
    "pytorch with all of pods": ("pytorch", {**PODS, "security": {"fs_group": 2000, "privileged": True}}),
    "ray with all of pods": ("ray", {**PODS, "ray_version": "2.49.0", "command": COMMAND}),
    "mpi with all of pods": ("mpi", {**PODS, "command": ["mpirun", "hostname"]}),
    "ray with a head that has GPUs": (
        "ray",
        {"nodes": 2, "ray_version": "2.49.0", "command": COMMAND, "head": {"accelerators": 8, "vcpu": 64}},
    ),
    "ray cluster": ("ray_cluster", {"nodes": 2, "ray_version": "2.49.0"}),
    "ray cluster with all of pods": (
        "ray_cluster",
        {**PODS, "ray_version": "2.49.0", "max_nodes": 3, "head": {"accelerators": 1}},
    ),
    "jobset": ("jobset", {"nodes": 4, "slices": 2, "command": COMMAND, "retries": 3, "active_deadline_seconds": 60}),
    "jobset with all of pods": ("jobset", {**PODS, "command": COMMAND}),
    "train with what it has of pods": ("train", {**_TRAIN, "command": COMMAND}),
}
"""Jobs of kinds whose definition upstream publishes."""
GROUPED_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "groups": ("leader_worker_set", {"nodes": 2, "replicas": 2, "command": COMMAND, "leader_command": ["serve"]}),
    "groups that restart pods": ("leader_worker_set", {"nodes": 2, "restart": "pod", "wait_for_leader": True}),
    "groups with all of pods": ("leader_worker_set", {**PODS, "nodes": 2, "leader_command": ["serve"]}),
}
"""Jobs of a kind whose definition somebody else installs."""
LWS_DEFINITION = (
    Path(__file__).parents[2] / ".podwright/definitions/lws-0.9.0/leaderworkerset.x-k8s.io_leaderworkersets.yaml"
)
"""That definition, as upstream publishes it."""


def with_jobs(
    jobs: dict[str, dict[str, Any]],
    groups: dict[str, Any] | None = None,
    teams: dict[str, Any] | None = None,
    governance: dict[str, Any] | None = None,
    **settings: Any,
) -> Environment:
    """An environment with jobs of team `llm` on group `h100`, unless they say otherwise."""
    defaults = {"group": "h100", "image": IMAGE} | ({"team": "llm"} if teams is None or teams else {})
    return Environment.model_validate(
        {
            "name": "test",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"zones": ["usw2-az2", "usw2-az3"]},
            "instance_groups": GROUPS | (groups or {}),
            "governance": {"priorities": PRIORITIES, "teams": TEAMS if teams is None else teams} | (governance or {}),
            "jobs": {name: defaults | job for name, job in jobs.items()},
        }
        | settings
    )


def planned(environment: Environment, name: str = "job") -> JobPlan:
    """The plan of one job."""
    return Planner(environment, environment_types(environment.instance_types)).plan(name)


def rendered(kind: str, *, overrides: dict[str, Any] | None = None, **job: Any) -> list[dict[str, Any]]:
    """The manifests of a job of that kind, called `job`."""
    return render(planned(with_jobs({"job": {"kind": kind} | job}, **(overrides or {}))))


def aws_model(file: str, name: str) -> type[BaseModel]:
    """A model of sagemaker-hyperpod, which refuses unknown fields at every depth."""
    path = AWS_PACKAGES / file
    require(path.is_file(), "sagemaker-hyperpod in .podwright/models, where .ci/run puts it")
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    return type("Strict", (getattr(sys.modules[path.stem], name),), {"model_config": ConfigDict(extra="forbid")})
