"""Reads the tables of stories from an API server: jobs, quotas of Kueue and KAI, and UltraServers.

It uses a client in this process, since a story sends hundreds of requests while it waits for its tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes.utils.quantity import parse_quantity

from podwright.sandbox.kubernetes.api_objects import Connection, connection
from waiting import until

_TEAM: Final = re.compile(r"(?:hyperpod-ns-)?(.+?)(?:-clusterqueue)?")
_BY_JOB: Final = re.compile(r"JobUID: ([\w-]+)")
_FITS: Final = re.compile(r"only (\d+ out of \d+) pod")
_LACKS: Final = re.compile(r"lacks ([\d,]+) GPUs? of")
_ULTRASERVER: Final = "topology.k8s.aws/ultraserver-id"
_GPU: Final = "nvidia.com/gpu"
_QUEUES: Final = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue")
"""The labels by which engines know the queue of a job."""

_POD, _NODE = ("v1", "Pod"), ("v1", "Node")
_WORKLOAD, _CLUSTER_QUEUE = ("kueue.x-k8s.io/v1beta2", "Workload"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
_KAI_QUEUE: Final = ("scheduling.run.ai/v2", "Queue")
_JOBS: Final = (
    ("batch/v1", "Job"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob"),
    ("ray.io/v1", "RayJob"),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
)
"""The kinds of jobs that stories submit, with their versions."""
_BETWEEN: Final = (("ray.io/v1", "RayCluster"), ("jobset.x-k8s.io/v1alpha2", "JobSet"))
"""The kinds that own pods, and that a submitted job owns."""

_CPU: Final = "cpu"
COUNTED: Final = (_CPU, _GPU)
"""The resources that are compared."""

_COLUMNS: Final = {"holds": "reserved", "guaranteed": "guaranteed", "borrowed": "borrowed"}
"""The amounts of a team in `why`, and those of a ClusterQueue that have to be equal."""
_NOTHING: Final[Mapping[str, float]] = {_CPU: 0.0, _GPU: 0.0}

Object = dict[str, Any]
Row = dict[str, str]
Kind = tuple[str, str]


Amounts = Mapping[str, float]
"""By resource."""
ByFlavor = Mapping[str, Amounts]


@dataclass(frozen=True)
class QueueNumbers:
    """The quota of one team in use, by flavor and resource."""

    team: str
    guaranteed: ByFlavor
    reserved: ByFlavor
    used: ByFlavor
    borrowed: ByFlavor


@dataclass(frozen=True)
class ClusterNumbers:
    """The numbers that the API server has."""

    requests: Mapping[str, Mapping[str, float]]
    """The requests of the pods of each job that have a node, by resource."""
    running: Mapping[str, int]
    """The number of pods of each job that run."""
    queues: Mapping[str, QueueNumbers]
    """By team; empty where Kueue keeps no quotas."""
    free_gpus: int
    """The GPUs of all nodes that no pod has."""
    dispatched: frozenset[str] = frozenset()
    """The jobs that MultiKueue sent to a worker cluster, where their pods run."""


class ClusterTables:
    """The tables of one cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def rows(self, first: str) -> Iterator[Row]:
        """The rows of the table whose first column has this title."""
        return {
            "Job": self._job_rows,
            "Team": self._team_rows,
            "Project": self._project_rows,
            "UltraServer": self._ultraserver_rows,
        }[first]()

    def numbers(self) -> "ClusterNumbers":
        """The numbers that podwright's commands have to show: of the pods of jobs, ClusterQueues and nodes."""
        objects = self._all(_POD, _NODE, _WORKLOAD, *_BETWEEN, *_JOBS)
        owners = {item["metadata"]["uid"]: _owner(item) for item in objects if item["kind"] != "Pod"}
        sent = {_owner(item) for item in objects if item.get("status", {}).get("clusterName")}
        pods = [item for item in objects if item["kind"] == "Pod" and _has_node(item)]
        kinds = {kind for _, kind in _JOBS}
        jobs = [item for item in objects if item["kind"] in kinds and _is_submitted(item)]
        own = {job["metadata"]["name"]: _pods_of(job, pods, owners) for job in jobs}
        nodes = [item for item in objects if item["kind"] == "Node"]
        return ClusterNumbers(
            {name: _requests(each) for name, each in own.items()},
            {name: sum(map(_is_running, each)) for name, each in own.items()},
            {each.team: each for each in map(_queue_numbers, self._all(_CLUSTER_QUEUE))},
            _free_gpus(nodes, pods),
            frozenset(job["metadata"]["name"] for job in jobs if job["metadata"]["uid"] in sent),
        )

    def delete_jobs(self) -> None:
        """Delete the jobs of all queues, and wait until none exists."""
        for job in self._submitted():
            served = self._api.resource(job["apiVersion"], job["kind"])
            assert served, "it has been listed"
            metadata = job["metadata"]
            path = f"{_path(job['apiVersion'])}/namespaces/{metadata['namespace']}/{served['name']}/{metadata['name']}"
            self._api.request("DELETE", path, propagationPolicy="Background")
        until(lambda: not list(self._submitted()), "the jobs are deleted")

    @property
    def _api(self) -> Connection:
        return connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)

    def _all(self, *kinds: Kind) -> list[Object]:
        """The objects of these kinds that the cluster serves."""
        objects: list[Object] = []
        for version, kind in kinds:
            if served := self._api.resource(version, kind):
                # Version 0 is what the API server has in memory.
                answer = self._api.request("GET", f"{_path(version)}/{served['name']}", resourceVersion="0")
                # The items of a list do not say what they are.
                objects += [{"apiVersion": version, "kind": kind, **item} for item in answer["items"]]
        return objects

    def _submitted(self) -> Iterator[Object]:
        return filter(_is_submitted, self._all(*_JOBS))

    def _job_rows(self) -> Iterator[Row]:
        """One row for each job."""
        objects = self._all(_POD, _WORKLOAD, *_BETWEEN, *_JOBS)
        owners = {item["metadata"]["uid"]: _owner(item) for item in objects if item["kind"] != "Pod"}
        kinds = {kind for _, kind in _JOBS}
        jobs = [item for item in objects if item["kind"] in kinds and _is_submitted(item)]
        names = {job["metadata"]["uid"]: job["metadata"]["name"] for job in jobs}
        causes = sorted((cause, _owner(item)) for item in objects if (cause := _preemption(item)))
        # Of a job with more than one Workload the last one counts.
        preempted = {owner: cause[1:] for cause, owner in causes}
        workloads = {_owner(item): item for item in objects if item["kind"] == "Workload"}
        assigned = {owner: list(_assigned(item)) for owner, item in workloads.items()}
        # Hundreds of nodes take most of the time, and few stories place pods by topology.
        nodes = self._all(_NODE) if any(assigned.values()) else []
        servers = {item["metadata"]["name"]: item["metadata"]["labels"].get(_ULTRASERVER, "") for item in nodes}
        running = [item for item in objects if item["kind"] == "Pod" and _is_running(item)]
        for job in jobs:
            uid = job["metadata"]["uid"]
            pods = [item for item in running if _comes_from(item, uid, owners)]
            cause = preempted.get(uid)
            yield {
                "Job": names[uid],
                "State": _state(job),
                "Pods running": str(len(pods)),
                "Nodes": str(len({pod["spec"]["nodeName"] for pod in pods})),
                "Preempted by": names.get(cause[0], cause[0]) if cause else "",
                "Why": cause[1] if cause else "",
                "UltraServers": ", ".join(sorted({servers[name] for name in assigned.get(uid, ())})),
                "Pods that fit": _fitting(workloads.get(uid, {})),
                "Worker": workloads.get(uid, {}).get("status", {}).get("clusterName", ""),
            }

    def _ultraserver_rows(self) -> Iterator[Row]:
        """One row for each UltraServer of the cluster's nodes."""
        used: dict[str, int] = {}
        for pod in filter(_is_running, self._all(_POD)):
            gpus = (entry["resources"].get("requests", {}).get(_GPU, 0) for entry in pod["spec"]["containers"])
            node = pod["spec"]["nodeName"]
            used[node] = used.get(node, 0) + sum(map(int, gpus))
        servers: dict[str, list[Object]] = {}
        for node in self._all(_NODE):
            if server := node["metadata"].get("labels", {}).get(_ULTRASERVER):
                servers.setdefault(server, []).append(node)
        for server, nodes in servers.items():
            free = [int(node["status"]["allocatable"][_GPU]) - used.get(node["metadata"]["name"], 0) for node in nodes]
            yield {"UltraServer": server, "Nodes": str(len(nodes)), "GPUs free": str(sum(free))}

    def _project_rows(self) -> Iterator[Row]:
        """One row for each team's queue of KAI."""
        for queue in self._all(_KAI_QUEUE):
            team = queue["metadata"]["labels"].get("podwright/team")
            used = float(parse_quantity(queue.get("status", {}).get("allocated", {}).get(_GPU, 0)))
            quota = queue["spec"]["resources"]["gpu"]["quota"]
            if team:
                yield {"Project": team, "GPUs": f"{used:g}", "GPUs over quota": f"{max(0, used - quota):g}"}

    def _team_rows(self) -> Iterator[Row]:
        """One row for each team's ClusterQueue."""
        for queue in self._all(_CLUSTER_QUEUE):
            name = _TEAM.fullmatch(queue["metadata"]["name"])
            assert name, queue["metadata"]["name"]
            flavors = queue.get("status", {}).get("flavorsUsage", [])
            resources = [resource for flavor in flavors for resource in flavor["resources"]]
            yield {
                "Team": name[1],
                "vCPU": _sum(resources, "cpu", "total"),
                "vCPU borrowed": _sum(resources, "cpu", "borrowed"),
                "GPUs": _sum(resources, _GPU, "total"),
                "GPUs borrowed": _sum(resources, _GPU, "borrowed"),
            }


def disagreements(
    cluster: ClusterNumbers, listed: Mapping[str, Any], why: Mapping[str, Object], teams: Sequence[Object]
) -> list[str]:
    """The numbers that two sources state differently, each with both values.

    Args:
        cluster: The API server's numbers.
        listed: `podwright jobs --by-priority --json`.
        why: `podwright why --json` of each job that has not ended.
        teams: The teams of `podwright status --watch --json`.
    """
    results: list[str] = []

    def compare(what: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
        if first[1] != second[1]:
            results.append(f"{what}: {first[0]} says {first[1]}, {second[0]} says {second[1]}")

    jobs = {job["name"]: job for job in listed["jobs"]}
    for name, job in jobs.items():
        compare(f"{name}, pods running", ("jobs", job["running_pods"]), ("the pods", cluster.running.get(name, 0)))
        held = {resource: job["holds"].get(resource, 0) for resource in COUNTED}
        if name not in cluster.dispatched:
            compare(f"{name}, resources", ("jobs", held), ("the pods", dict(cluster.requests.get(name, _NOTHING))))
        if held[_GPU]:
            compare(f"{name}, GPUs", ("jobs --json accelerators", job["accelerators"]), ("its own holds", held[_GPU]))
        if job["running_pods"]:
            compare(f"{name}, size", ("jobs", job["size"]["pods"]), ("the pods", cluster.running.get(name, 0)))
        for key in ("state", "holds", "asks", "size", "accelerators", "running_pods") if name in why else ():
            compare(f"{name}, {key}", ("why", why[name][key]), ("jobs", job[key]))
        if missing := _too_few_missing(job, cluster.free_gpus):
            results.append(missing)
        if name in why and (contradiction := _contradiction(why[name])):
            results.append(f"{name}: {contradiction}")
    by_class = sum(each["accelerators"] for each in listed["classes"])
    sent = sum(jobs[name]["holds"].get(_GPU, 0) for name in cluster.dispatched & jobs.keys())
    compare("GPUs of all classes", ("jobs --by-priority", by_class), ("the pods", _all_gpus(cluster) + sent))
    for team, queue in cluster.queues.items():
        own = [job for job in jobs.values() if job["team"] == team]
        held = {resource: sum(job["holds"].get(resource, 0) for job in own) for resource in COUNTED}
        reserved = _together(queue.reserved)
        compare(f"team {team}", ("jobs", _shared(held, reserved)), ("the ClusterQueue", reserved))
        for job in own:
            for entry in _quota_rows(why.get(job["name"], {})):
                what = f"team {team}, {entry['resource']} in why {job['name']}"
                for key, amounts in _COLUMNS.items():
                    if key in entry:
                        has = getattr(queue, amounts).get(entry["flavor"], {}).get(entry["resource"], 0)
                        compare(f"{what}, {key}", ("why", entry[key]), ("the ClusterQueue", has))
        row = next((each for each in teams if each["team"] == team), {})
        for key in ("guaranteed", "used", "borrowed"):
            has = _together(getattr(queue, key))
            shown = {resource: (row.get(key) or {}).get(resource, 0) for resource in has}
            compare(f"team {team}, {key}", ("status --watch", shown), ("the ClusterQueue", has))
    return results


def _too_few_missing(job: Object, free: int) -> str:
    """A statement that a job lacks fewer GPUs than are not free; empty where it is right."""
    asks = job["asks"].get(_GPU, 0)
    if (lacks := _LACKS.search(job["reason"])) and not job["holds"].get(_GPU):
        count = int(lacks[1].replace(",", ""))
        if count < asks - free:
            return f"{job['name']}: jobs says that it lacks {count} of {asks} GPUs, and {free} are free on nodes"
    return ""


def _contradiction(answer: Object) -> str:
    """A forecast against Kueue's words in the same answer; empty where both can be true."""
    starts = answer.get("forecast", {}).get("starts_in")
    refused = any("couldn't assign flavors" in text for text in answer.get("kueue", ()))
    at_once = starts is not None and starts <= 1 and not answer["forecast"]["stops"]
    if refused and at_once and not any("Pending the preemption" in text for text in answer["kueue"]):
        return f"why forecasts a start in {starts} s, and Kueue says {answer['kueue'][0]}"
    return ""


def _quota_rows(answer: Mapping[str, Any]) -> list[Object]:
    """The rows of a team's quota in an answer of `why`."""
    return answer.get("quota") or answer.get("quota_in_use") or []


def _together(amounts: ByFlavor) -> dict[str, float]:
    """The amounts of all flavors together."""
    sums: dict[str, float] = {}
    for resource, amount in (pair for each in amounts.values() for pair in each.items()):
        sums[resource] = sums.get(resource, 0) + amount
    return sums


def _shared(amounts: Amounts, others: Amounts) -> dict[str, float]:
    """The amounts of the resources that others have too."""
    return {resource: amounts[resource] for resource in others}


def _all_gpus(cluster: ClusterNumbers) -> float:
    return sum(requests[_GPU] for requests in cluster.requests.values())


def _has_node(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in ("Succeeded", "Failed")


def _free_gpus(nodes: list[Object], pods: list[Object]) -> int:
    has = sum(int(node["status"]["allocatable"].get(_GPU, 0)) for node in nodes)
    return max(has - int(_requests(pods)[_GPU]), 0)


def _pods_of(job: Object, pods: list[Object], owners: Mapping[str, str]) -> list[Object]:
    return [pod for pod in pods if _comes_from(pod, job["metadata"]["uid"], owners)]


def _requests(pods: list[Object]) -> dict[str, float]:
    """The requests of pods together."""
    containers = [container for pod in pods for container in pod["spec"]["containers"]]
    every = [container["resources"].get("requests", {}) for container in containers]
    return {resource: float(sum(parse_quantity(each.get(resource, 0)) for each in every)) for resource in COUNTED}


def _queue_numbers(queue: Object) -> QueueNumbers:
    name = _TEAM.fullmatch(queue["metadata"]["name"])
    assert name, queue["metadata"]["name"]
    status = queue.get("status", {})
    groups = queue["spec"].get("resourceGroups", ())
    flavors = [flavor for group in groups for flavor in group["flavors"]]
    return QueueNumbers(
        name[1],
        _amounts(flavors, "nominalQuota"),
        _amounts(status.get("flavorsReservation", ()), "total"),
        _amounts(status.get("flavorsUsage", ()), "total"),
        _amounts(status.get("flavorsUsage", ()), "borrowed"),
    )


def _amounts(flavors: Sequence[Object], key: str) -> dict[str, dict[str, float]]:
    """The amounts of the compared resources that flavors have."""
    return {flavor["name"]: _of_flavor(flavor["resources"], key) for flavor in flavors}


def _of_flavor(resources: Sequence[Object], key: str) -> dict[str, float]:
    counted = [resource for resource in resources if resource["name"] in COUNTED]
    return {resource["name"]: float(parse_quantity(resource.get(key, 0))) for resource in counted}


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _sum(resources: list[Object], name: str, kind: str) -> str:
    """How much of a resource is in use, of all flavors; empty where no quota names it."""
    amounts = [parse_quantity(resource[kind]) for resource in resources if resource["name"] == name]
    return f"{sum(amounts):f}" if amounts else ""


def _owner(item: Object) -> str:
    return next((owner["uid"] for owner in item["metadata"].get("ownerReferences", ()) if owner.get("controller")), "")


def _comes_from(item: Object, uid: str, owners: Mapping[str, str]) -> bool:
    """Whether an object is owned by that of a uid, or by one that it owns."""
    owner = _owner(item)
    while owner and owner != uid:
        owner = owners.get(owner, "")
    return bool(owner)


def _state(job: Object) -> str:
    """As `kubectl get` prints it."""
    status = job.get("status", {})
    if job["kind"] == "Job" and status.get("active"):
        return "Running"
    conditions = status.get("conditions")
    return conditions[-1]["type"] if conditions else ""


def _is_submitted(job: Object) -> bool:
    """Whether a job was submitted by a user, and is none of those that a deployment or another job makes."""
    return not _owner(job) and any(label in job["metadata"].get("labels", {}) for label in _QUEUES)


def _is_running(pod: Object) -> bool:
    return pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]


def _preemption(item: Object) -> tuple[str, str, str] | None:
    """When and by whom a Workload was preempted, by the uid of the job, and why; None where it holds its quota."""
    for condition in item.get("status", {}).get("conditions", ()) if item["kind"] == "Workload" else ():
        if condition["type"] == "Preempted" and condition["status"] == "True":
            job = _BY_JOB.search(condition["message"])
            by = job[1] if job else condition["message"]
            return condition["lastTransitionTime"], by, condition["reason"]
    return None


def _assigned(workload: Object) -> Iterator[str]:
    """The nodes that Kueue has assigned to a Workload by topology."""
    admission = workload.get("status", {}).get("admission", {})
    for pod_set in admission.get("podSetAssignments", ()):
        for part in pod_set.get("topologyAssignment", {}).get("slices", ()):
            # The last level is the node.
            names = part["valuesPerLevel"][-1]
            if "universal" in names:
                yield names["universal"]
                continue
            individual = names["individual"]
            prefix, suffix = individual.get("prefix", ""), individual.get("suffix", "")
            yield from (f"{prefix}{root}{suffix}" for root in individual["roots"])


def _fitting(workload: Object) -> str:
    """How many of a waiting Workload's pods would fit into one domain, as Kueue says."""
    for condition in workload.get("status", {}).get("conditions", ()):
        if condition["type"] == "QuotaReserved" and (fits := _FITS.search(condition["message"])):
            return fits[1]
    return ""
