"""The pods that operators make of a rendered job, each with its environment, by rules read from the operators' source.

tests/kubernetes/engines/test_pod_environments.py holds these rules to the pods of the running operators. Sources:
Kubeflow Training Operator 1.9.3, `pkg/controller.v1/pytorch/{envvar,master,elastic}.go` and
`pkg/controller.v1/common/pod.go`; JobSet 0.11.0, `pkg/controllers/jobset_controller.go`; Kubernetes 1.34,
`pkg/controller/job/indexed_job_utils.go` and `third_party/forked/golang/expansion`; LeaderWorkerSet 0.9.0,
`pkg/utils/pod/pod_utils.go`; Kubeflow Trainer 2.2.1, `pkg/runtime/framework/plugins/torch/torch.go`; MPI operator
0.8.2, `pkg/controller/mpi_job_controller.go`.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
_VARIABLE = re.compile(r"\$(?:\$|\(([-._a-zA-Z0-9]+)\))")
_FIELD = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
HOSTFILE = "OMPI_MCA_orte_default_hostfile"
"""Variable of a launcher with the path of the file of hosts; here it has the file's text."""
_PORT = 23456
"""Default port of the container of a PyTorchJob."""


@dataclass(frozen=True)
class DerivedPod:
    """A pod as its containers see it."""

    name: str
    """Without the random characters that end the name of a Job's pod."""
    group: str
    """Name of the pods that belong together: their ranks are numbered together."""
    address: str
    """The name under which the other pods of its namespace reach it."""
    env: Mapping[str, str]
    command: tuple[str, ...]


def derived_pods(manifest: Object) -> list[DerivedPod]:
    """The pods of a job object, in the order in which their operator numbers them.

    The pods of a HyperPodPyTorchJob have no number: the operator tells it to the agent in each of them.
    """
    rules = {
        "PyTorchJob": _pytorch,
        "JobSet": _jobset,
        "TrainJob": _train,
        "LeaderWorkerSet": _leader_worker_set,
        "HyperPodPyTorchJob": _hyperpod,
        "MPIJob": _mpi,
    }
    return list(rules[manifest["kind"]](manifest, manifest["metadata"]["name"]))


def _pytorch(manifest: Object, name: str) -> Iterator[DerivedPod]:
    spec = manifest["spec"]
    replicas, elastic = spec["pytorchReplicaSpecs"], spec.get("elasticPolicy")
    total = sum(each["replicas"] for each in replicas.values())
    processes = spec.get("nprocPerNode") or (None if elastic and "nProcPerNode" in elastic else "auto")
    for role, part in sorted(replicas.items()):
        for index in range(part["replicas"]):
            later = {"PYTHONUNBUFFERED": "1"}
            if "Master" in replicas:
                rank = str(index + (role == "Worker"))
                ranks = str(total * (int(processes) if processes and processes.isdigit() else 1))
                own = {"MASTER_ADDR": f"{name}-master-0", "MASTER_PORT": str(_PORT)}
                later |= own | {f"PET_{key}": value for key, value in own.items()}
                later |= {"WORLD_SIZE": ranks, "RANK": rank, "PET_NODE_RANK": rank}
            if processes:
                later["PET_NPROC_PER_NODE"] = processes
            later |= _elastic(elastic, name) if elastic else {"PET_NNODES": str(total)}
            pod = f"{name}-{role.lower()}-{index}"
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/replica-type": role.lower(),
                "training.kubeflow.org/replica-index": str(index),
            }
            yield _pod(part["template"], pod, name, pod, labels=labels, later=later)


def _elastic(policy: Object, name: str) -> dict[str, str]:
    variables = {
        "PET_RDZV_ENDPOINT": f"{name}-worker-0:{_PORT}",
        "PET_RDZV_BACKEND": policy.get("rdzvBackend", "c10d"),
        "PET_NNODES": f"{policy['minReplicas']}:{policy['maxReplicas']}",
    }
    optional = {"maxRestarts": "PET_MAX_RESTARTS", "nProcPerNode": "PET_NPROC_PER_NODE"}
    return variables | {variable: str(policy[key]) for key, variable in optional.items() if key in policy}


def _jobset(manifest: Object, name: str) -> Iterator[DerivedPod]:
    for part in manifest["spec"]["replicatedJobs"]:
        job = part["template"]["spec"]
        for index in range(part["replicas"]):
            own = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": part["name"],
                "jobset.sigs.k8s.io/job-index": str(index),
                "jobset.sigs.k8s.io/job-global-index": str(index),
            }
            yield from _indexed(job, f"{name}-{part['name']}-{index}", name, own)


def _indexed(job: Object, name: str, subdomain: str, own: dict[str, str]) -> Iterator[DerivedPod]:
    """The pods of an Indexed Job; the controller appends the variable with their number."""
    for number in map(str, range(job["completions"])):
        numbered = own | {"batch.kubernetes.io/job-completion-index": number}
        later = {"JOB_COMPLETION_INDEX": number}
        address = f"{name}-{number}.{subdomain}"
        yield _pod(
            job["template"], f"{name}-{number}", name, address, labels=numbered, annotations=numbered, later=later
        )


def _train(manifest: Object, name: str) -> Iterator[DerivedPod]:
    """The pods of a TrainJob by a runtime of torch whose only job is called node."""
    trainer = manifest["spec"]["trainer"]
    for number in range(trainer["numNodes"]):
        later = {
            "PET_NNODES": str(trainer["numNodes"]),
            "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
            "PET_NODE_RANK": str(number),
            "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
            "PET_MASTER_PORT": "29500",
            "JOB_COMPLETION_INDEX": str(number),
        }
        container = {"name": "node", "command": trainer.get("command", []), "env": trainer["env"]}
        template = {"metadata": {}, "spec": {"containers": [container]}}
        yield _pod(template, f"{name}-node-0-{number}", name, f"{name}-node-0-{number}.{name}", later=later)


def _leader_worker_set(manifest: Object, name: str) -> Iterator[DerivedPod]:
    spec, namespace = manifest["spec"], manifest["metadata"]["namespace"]
    groups = spec["leaderWorkerTemplate"]
    for group in range(spec["replicas"]):
        for index in range(groups["size"]):
            template = groups["workerTemplate"] if index else groups.get("leaderTemplate", groups["workerTemplate"])
            pod = f"{name}-{group}" + (f"-{index}" if index else "")
            first = {
                "LWS_LEADER_ADDRESS": f"{name}-{group}.{name}.{namespace}",
                "LWS_GROUP_SIZE": str(groups["size"]),
                "LWS_WORKER_INDEX": str(index),
            }
            yield _pod(template, pod, f"{name}-{group}", f"{pod}.{name}.{namespace}", first=first)


def _hyperpod(manifest: Object, name: str) -> Iterator[DerivedPod]:
    for part in manifest["spec"]["replicaSpecs"]:
        for index in range(part["replicas"]):
            pod = f"{name}-{part['name']}-{index}"
            yield _pod(part["template"], pod, name, pod)


def _mpi(manifest: Object, name: str) -> Iterator[DerivedPod]:
    """The workers of an MPIJob, which the launcher's file of hosts names; then the launcher."""
    spec, namespace = manifest["spec"], manifest["metadata"]["namespace"]
    workers, launcher = (spec["mpiReplicaSpecs"][role] for role in ("Worker", "Launcher"))
    names = [f"{name}-worker-{index}" for index in range(workers["replicas"])]
    hosts = [f"{each}.{name}.{namespace}.svc" for each in names]
    for pod, host in zip(names, hosts, strict=True):
        yield _pod(workers["template"], pod, name, host, later={"K_MPI_JOB_ROLE": "worker"})
    text = "".join(f"{host} slots={spec['slotsPerWorker']}\n" for host in hosts)
    later = {"K_MPI_JOB_ROLE": "launcher", HOSTFILE: text}
    yield _pod(launcher["template"], f"{name}-launcher", name, "", later=later)


def _pod(
    template: Object,
    name: str,
    group: str,
    address: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    first: Mapping[str, str] | None = None,
    later: Mapping[str, str] | None = None,
) -> DerivedPod:
    """A pod of a template, with labels, annotations and variables that its operator adds before or after its own."""
    metadata = copy.deepcopy(template.get("metadata", {}))
    metadata["labels"] = metadata.get("labels", {}) | dict(labels or {})
    metadata["annotations"] = metadata.get("annotations", {}) | dict(annotations or {})
    container = template["spec"]["containers"][0]
    added = [[{"name": key, "value": value} for key, value in (each or {}).items()] for each in (first, later)]
    env = environment([*added[0], *container.get("env", []), *added[1]], metadata)
    words = [*container.get("command", []), *container.get("args", [])]
    return DerivedPod(name, group, address, env, tuple(expanded(word, env) for word in words))


def environment(variables: list[Object], metadata: Object) -> dict[str, str]:
    """What the kubelet makes of a container's variables. Those of secrets and config maps are left out."""
    known: dict[str, str] = {}
    for variable in variables:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            known[variable["name"]] = _field(source["fieldRef"]["fieldPath"], metadata)
        elif not source:
            known[variable["name"]] = expanded(variable.get("value", ""), known)
    return known


def _field(path: str, metadata: Object) -> str:
    if match := _FIELD.fullmatch(path):
        # A label or annotation that is not there is an empty value.
        return metadata[match[1]].get(match[2], "")
    raise AssertionError(f"no rule for the field {path}")


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Text with $(NAME) replaced by variables that are known; `$$` stands for a dollar sign."""
    return _VARIABLE.sub(lambda match: known.get(match[1], match[0]) if match[1] else "$", text)
