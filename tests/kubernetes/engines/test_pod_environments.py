"""Pods that the running operators make have exactly the environment that tests/shared/pod_environments.py derives.

tests/manifests/shapes/test_rendezvous.py starts the commands of jobs with these environments.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api_server import ApiServer, Object
from control_plane_parts import require_parts
from job_environment import rendered
from pod_environments import HOSTFILE, derived_pods, environment, expanded
from podwright.cdk8s_charts.training_runtime import torch_runtime
from podwright.planning.helm.operators import Operator
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from waiting import until

TEAM = "hyperpod-ns-llm"
TRAIN = ["torchrun", "train.py"]
ELASTIC = {"command": TRAIN, "elastic": {"min_replicas": 2, "max_replicas": 3}}
LEAD = ["torchrun", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)", "train.py"]
FIXED = {"nodes": 2, "command": TRAIN}
CASES: dict[str, tuple[tuple[Operator, ...], str, dict[str, Any]]] = {
    "fixed size": (("training-operator",), "pytorch", FIXED),
    "elastic": (("training-operator",), "pytorch", ELASTIC),
    "slices": (("jobset",), "jobset", {"nodes": 4, "slices": 2, "command": ["sh", "-c", "torchrun train.py"]}),
    "train job": (("jobset", "trainer"), "train", FIXED),
    "groups": (("lws",), "leader_worker_set", {"nodes": 2, "replicas": 2, "command": LEAD, "leader_command": LEAD}),
    "mpirun": (("mpi-operator",), "mpi", {"nodes": 2, "command": ["mpirun", "train.py"]}),
}


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ApiServer]]:
    """Installs operators in one control plane, each once, and returns its API server."""
    require_parts()
    plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), Cache.of_user())
    installed: set[Operator] = set()
    plane.start()

    def installed_plane(*operators: Operator) -> ApiServer:
        require_parts(*operators)
        for operator in operators:
            if operator not in installed:
                plane.install(operator)
                installed.add(operator)
        return ApiServer.of(plane.kubeconfig)

    try:
        yield installed_plane
    finally:
        plane.stop()


def of_kind(kind: str, name: str) -> Object:
    """An object of the team by its name."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": TEAM}}


def made(server: ApiServer, count: int) -> list[Object]:
    """The pods of the team, once so many are there."""

    def all_of_them() -> list[Object]:
        pods = server.items("v1", "Pod", TEAM)
        return pods if len(pods) == count else []

    return until(all_of_them)


def service(server: ApiServer, name: str) -> Object | None:
    """A Service of the team; None before it is there."""
    return next((each for each in server.items("v1", "Service", TEAM) if each["metadata"]["name"] == name), None)


def container_of(pod: Object) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment of a pod's container and its command, as the kubelet starts it."""
    (container,) = pod["spec"]["containers"]
    env = environment(container.get("env", []), pod["metadata"])
    words = [*container.get("command", []), *container.get("args", [])]
    return env, tuple(expanded(word, env) for word in words)


@pytest.mark.parametrize("name", CASES)
def test_pods_have_the_derived_environment(install: Callable[..., ApiServer], name: str) -> None:
    operators, kind, settings = CASES[name]
    server = install(*operators)
    job = rendered(kind, **settings)[-1]
    # No queue admits it here, and the operator alone makes its pods.
    job["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    if kind == "train":
        server.apply(torch_runtime())
    derived = derived_pods(job)
    if kind == "mpi":
        # The launcher starts when its workers run, and none does without nodes.
        job["spec"]["launcherCreationPolicy"] = "AtStartup"
    until(lambda: server.accepts(job))
    try:
        pods = made(server, len(derived))
        for own in derived:
            # The names of a Job's pods end with five random characters.
            named = re.compile(rf"{own.name}(-[a-z0-9]{{5}})?")
            (pod,) = (each for each in pods if named.fullmatch(each["metadata"]["name"]))
            env, command = container_of(pod)
            if kind == "mpi":
                hosts = server.read(of_kind("ConfigMap", "job-config"))["data"]["hostfile"]
                env |= {key: hosts for key in env if key == HOSTFILE}
                env = {key: value for key, value in env.items() if key in own.env}
            assert (env, command) == (dict(own.env), own.command)
            if kind == "pytorch":
                # The operator makes Services after pods.
                assert until(lambda name=own.address: service(server, name))["spec"]["clusterIP"] == "None"
            elif kind in ("jobset", "train"):
                spec = pod["spec"]
                assert f"{spec['hostname']}.{spec['subdomain']}" == own.address
    finally:
        server.delete(job)
        until(lambda: not server.items("v1", "Pod", TEAM))
