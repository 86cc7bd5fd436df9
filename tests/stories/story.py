"""A story: a scenario's page, executed as a user would, and compared with what the API server holds.

A block of commands is typed line by line. Each table after it, up to the next block, is what the cluster must come to,
as kubectl reads it from the API server: a table whose first column is `Job` has all jobs, one of `Team` all quotas of
Kueue, one of `Project` all of KAI's, and one of `UltraServer` all of these. One of `Slurm job` has what squeue shows,
as `podwright jobs` reads it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubernetes.utils.quantity import parse_quantity

from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.helm import tool
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins

_PART: Final = re.compile(r"^```\n(?P<block>.*?)^```$|^(?P<table>\|.*?)^(?!\|)", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"\(\.\./\.\./environments/([\w-]+\.yaml)\)")
_RULE: Final = re.compile(r"\|[-|: ]+\|")
_TEAM: Final = re.compile(r"(?:hyperpod-ns-)?(.+?)(?:-clusterqueue)?")
_BY_JOB: Final = re.compile(r"JobUID: ([\w-]+)")
_FITS: Final = re.compile(r"only (\d+ out of \d+) pod")
_ULTRASERVER: Final = "topology.k8s.aws/ultraserver-id"
_GPU: Final = "nvidia.com/gpu"
_WORKLOADS: Final = "workloads.kueue.x-k8s.io"
_KINDS: Final = {
    "jobs.batch": "Job",
    "pytorchjobs.kubeflow.org": "PyTorchJob",
    "hyperpodpytorchjobs.sagemaker.amazonaws.com": "HyperPodPyTorchJob",
    "rayjobs.ray.io": "RayJob",
    "trainjobs.trainer.kubeflow.org": "TrainJob",
}
"""The kinds of jobs that stories submit, by how kubectl names them."""
_BETWEEN: Final = ("rayclusters.ray.io", "jobsets.jobset.x-k8s.io")
"""The kinds that own pods, and that a submitted job owns."""
_COMMAND_SECONDS: Final = 600
_POLL_SECONDS: Final = 0.5

_QUEUES: Final = frozenset({"kueue.x-k8s.io/queue-name", "kai.scheduler/queue"})
"""The labels by which engines know the queue of a job."""
ROOT: Final = Path(__file__).resolve().parents[2]
INSTALLED: Final = all(Cache.of_user().state(part) is State.INSTALLED for part in pins().parts)

Object = dict[str, Any]
Row = dict[str, str]


class Different(AssertionError):
    """The cluster did not come to what the story tells."""


@dataclass(frozen=True)
class Step:
    """Commands, and the tables that follow from them."""

    commands: list[str]
    tables: list[list[Row]] = field(default_factory=list)


def page(scenario: str) -> str:
    """What a scenario's page says."""
    return (ROOT / f"docs/scenarios/{scenario}.md").read_text(encoding="utf-8")


def story(scenario: str) -> list[Step]:
    """The steps of a scenario's page. The first is how one gets there; it has no tables."""
    steps: list[Step] = []
    for part in _PART.finditer(f"{page(scenario)}\n"):
        if part["block"]:
            steps.append(Step(part["block"].splitlines()))
        else:
            steps[-1].tables.append(_rows(part["table"]))
    return steps


def _rows(table: str) -> list[Row]:
    lines = [line for line in table.splitlines() if not _RULE.fullmatch(line)]
    titles, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(titles, row, strict=True)) for row in rows]


@contextmanager
def deployed(
    scenario: str, folder: Path, time_scale: float, changes: Mapping[str, str] | None = None, kubernetes: str = "real"
) -> Iterator["Terminal"]:
    """A terminal in a folder with the scenario's files, and with a sandbox of its own in which it is deployed.

    Args:
        scenario: The name of its page.
        folder: An empty one.
        time_scale: How fast the sandbox's clock goes.
        changes: Texts of the scenario's file, each there once, and what stands in their place.
        kubernetes: What clusters of the sandbox have.
    """
    shutil.copytree(ROOT / "environments/shared", folder / "environments/shared")
    for name in set(_FILE.findall(page(scenario))):
        shutil.copy(ROOT / "environments" / name, folder / "environments")
    for old, new in (changes or {}).items():
        _replace(folder / f"environments/{scenario}.yaml", old, new)
    server.start(folder, port=0, time_scale=time_scale, kubernetes=kubernetes)
    try:
        user = Terminal(folder)
        user.play(story(scenario)[:1])
        yield user
    finally:
        server.stop(folder)


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} in {file.name}"
    file.write_text(text.replace(old, new), encoding="utf-8")


@contextmanager
def standing_still(plane: Path, name: str) -> Iterator[None]:
    """A process of a control plane, by the plane's folder, stands still."""
    processes = json.loads((plane / "processes/processes.json").read_text(encoding="utf-8"))
    (pid,) = (process["pid"] for process in processes if process["name"] == name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@dataclass
class Terminal:
    """Where a user types: a folder with a project, and a shell."""

    folder: Path
    exported: dict[str, str] = field(default_factory=dict)
    """Variables that are set when the first command begins."""
    where: Path | None = field(default=None, init=False)
    variables: dict[str, str] = field(default_factory=dict, init=False)
    """Where the last command ended, and the variables then; none before the first."""

    @property
    def plane(self) -> Path:
        """The folder of the only cluster's control plane."""
        return self.plane_of("")

    def plane_of(self, environment: str) -> Path:
        """The folder of the control plane of an environment's cluster."""
        (folder,) = (self.folder / server.STATE_DIRECTORY / "kubernetes").glob(f"*/*/{environment}*-eks-*")
        return folder

    def play(self, steps: list[Step], seconds: float = 180) -> None:
        """Type the commands of all steps.

        Raises:
            Different: A command failed, or the first table that the cluster did not come to in so many seconds.
        """
        for step in steps:
            for command in step.commands:
                self.type(command)
            for table in step.tables:
                self._wait(step.commands[-1], table, seconds)

    def type(self, command: str) -> str:
        """Carry out one line. Returns its output. Raises Different where it fails."""
        result = self.run(command)
        if result.returncode:
            raise Different(f"$ {command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def run(self, command: str, seconds: float = _COMMAND_SECONDS) -> subprocess.CompletedProcess[str]:
        """Carry out one line in a shell that continues the last one: in its folder, with what it exported.

        Raises:
            subprocess.TimeoutExpired: it took longer than so many seconds.
        """
        programs = [str(Path(sys.executable).parent), str(tool("kubectl").parent), os.environ["PATH"]]
        first = os.environ | {"CDK_HOME": str(self.folder), "PATH": os.pathsep.join(programs)} | self.exported
        with tempfile.NamedTemporaryFile() as state:
            process = subprocess.Popen(
                ["bash", "-c", f"{command}\nstatus=$?\n{{ pwd; env -0; }} >{state.name}\nexit $status"],
                cwd=self.where or self.folder,
                env=self.variables or first,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            try:
                output, errors = process.communicate(timeout=seconds)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                # With what it started: that would write on into a folder that is about to be deleted.
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
            result = subprocess.CompletedProcess(command, process.returncode, output, errors)
            where, _, variables = state.read().decode().partition("\n")
        # A shell that somebody killed, or that left with `exit`, says neither; the next one continues the last.
        if where:
            self.where = Path(where)
            self.variables = dict(item.split("=", 1) for item in variables.split("\0") if item)
        return result

    def delete_jobs(self) -> None:
        """Delete what was submitted, of every kind."""
        for label in _QUEUES:
            kinds = ",".join(self._served())
            self.type(f"kubectl delete {kinds} --selector {label} --all-namespaces")

    def deploy_changed(self, scenario: str, old: str, new: str) -> None:
        """Change a text of the scenario's file, where it is there once, and deploy that."""
        _replace(self.folder / f"environments/{scenario}.yaml", old, new)
        self.type(f"podwright deploy {scenario} --sandbox")

    def _wait(self, command: str, expected: list[Row], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (actual := self._table(expected)) != expected:
            if time.monotonic() > deadline:
                raise Different(f"after `{command}`:\n{_lines(actual)}\n  expected:\n{_lines(expected)}")
            time.sleep(_POLL_SECONDS)

    def _table(self, expected: list[Row]) -> list[Row]:
        """A table as the cluster has it, with the columns and in the order of the expected one."""
        first, *columns = expected[0]
        read = {
            "Job": self._jobs,
            "Team": self._teams,
            "Project": self._projects,
            "UltraServer": self._ultraservers,
            "Slurm job": self._slurm_jobs,
        }
        actual = {row[first]: row for row in read[first]()}
        order = [row[first] for row in expected if row[first] in actual]
        names = [*order, *sorted(actual.keys() - order)]
        return [{first: name, **{column: actual[name][column] for column in columns}} for name in names]

    def _get(self, *kinds: str) -> list[Object]:
        return json.loads(self.type(f"kubectl get {','.join(kinds)} --all-namespaces --output json"))["items"]

    def _served(self, *more: str) -> list[str]:
        """The kinds of jobs, and more, that the cluster knows."""
        served = self.type("kubectl api-resources --no-headers --output name").split()
        return [kind for kind in (*more, *_KINDS) if kind in served]

    def _jobs(self) -> Iterator[Row]:
        """One row for each job."""
        objects = self._get("pods", "nodes", *self._served(_WORKLOADS, *_BETWEEN))
        owners = {item["metadata"]["uid"]: _owner(item) for item in objects if item["kind"] != "Pod"}
        jobs = [item for item in objects if item["kind"] in _KINDS.values() and _is_submitted(item)]
        names = {job["metadata"]["uid"]: job["metadata"]["name"] for job in jobs}
        causes = sorted((cause, _owner(item)) for item in objects if (cause := _preemption(item)))
        # Of a job with more than one Workload the last one counts.
        preempted = {owner: cause[1:] for cause, owner in causes}
        workloads = {_owner(item): item for item in objects if item["kind"] == "Workload"}
        servers = {
            item["metadata"]["name"]: item["metadata"]["labels"].get(_ULTRASERVER, "")
            for item in objects
            if item["kind"] == "Node"
        }
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
                "UltraServers": ", ".join(sorted({servers[name] for name in _assigned(workloads.get(uid, {}))})),
                "Pods that fit": _fitting(workloads.get(uid, {})),
                "Worker": workloads.get(uid, {}).get("status", {}).get("clusterName", ""),
            }

    def _slurm_jobs(self) -> Iterator[Row]:
        """One row for each job that waits or runs."""
        (file,) = (self.folder / "environments").glob("*.yaml")
        for job in json.loads(self.type(f"podwright jobs {file.stem} --sandbox --json"))["jobs"]:
            yield {
                "Slurm job": job["name"],
                "Account": job["account"],
                "State": job["state"],
                "GPUs": str(job["accelerators"]),
                "Reason": job["slurm_reason"],
            }

    def _ultraservers(self) -> Iterator[Row]:
        """One row for each UltraServer of the cluster's nodes."""
        objects = self._get("nodes", "pods")
        used: dict[str, int] = {}
        for pod in objects:
            if pod["kind"] == "Pod" and _is_running(pod):
                gpus = (entry["resources"].get("requests", {}).get(_GPU, 0) for entry in pod["spec"]["containers"])
                node = pod["spec"]["nodeName"]
                used[node] = used.get(node, 0) + sum(map(int, gpus))
        servers: dict[str, list[Object]] = {}
        for node in objects:
            if server := node["metadata"].get("labels", {}).get(_ULTRASERVER):
                servers.setdefault(server, []).append(node)
        for server, nodes in servers.items():
            free = [int(node["status"]["allocatable"][_GPU]) - used.get(node["metadata"]["name"], 0) for node in nodes]
            yield {"UltraServer": server, "Nodes": str(len(nodes)), "GPUs free": str(sum(free))}

    def _projects(self) -> Iterator[Row]:
        """One row for each team's queue of KAI."""
        for queue in self._get("queues.scheduling.run.ai"):
            team = queue["metadata"]["labels"].get("podwright/team")
            used = float(parse_quantity(queue.get("status", {}).get("allocated", {}).get(_GPU, 0)))
            quota = queue["spec"]["resources"]["gpu"]["quota"]
            if team:
                yield {"Project": team, "GPUs": f"{used:g}", "GPUs over quota": f"{max(0, used - quota):g}"}

    def _teams(self) -> Iterator[Row]:
        """One row for each team's ClusterQueue."""
        for queue in self._get("clusterqueues"):
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
    return not _owner(job) and not _QUEUES.isdisjoint(job["metadata"].get("labels", {}))


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


def _lines(rows: list[Row]) -> str:
    return "\n".join("    " + " | ".join(f"{column}: {value}" for column, value in row.items()) for row in rows)
