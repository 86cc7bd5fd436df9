"""A bundle: what AWS and Kubernetes said of a cluster at one moment, as files that doctor reads and a person can open.

A bundle is a folder or a .tar.gz of one. It holds the services' answers as JSON, in the services' own words and with
the keys of their APIs, log streams as text, and `bundle.json`, which says of which cluster it is, when it was taken and
which sources nobody could look at. docs/operator/doctor.md has the table of its files.
"""

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...config.errors import CommandError

FORMAT: Final = 1
"""Version of the form. A reader refuses a newer one."""
INDEX: Final = "bundle.json"
_MOST_BYTES: Final = 512 * 1024 * 1024
"""An archive that unpacks to more is refused; the largest that `collect` writes is far smaller."""


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of evidence: where it lies in a bundle, and where it comes from."""

    name: str
    file: str
    """The file; for logs, the folder of their files."""
    about: str
    """What it is, as one reads it in `podwright doctor`."""


SOURCES: Final = {
    source.name: source
    for source in (
        Source("cluster", "cluster.json", "SageMaker DescribeCluster"),
        Source("nodes", "nodes.json", "SageMaker ListClusterNodes: ClusterNodeSummaries"),
        Source("node_details", "node-details.json", "SageMaker DescribeClusterNode by instance id: NodeDetails"),
        Source("events", "events.json", "SageMaker ListClusterEvents: Events"),
        Source("event_details", "event-details.json", "SageMaker DescribeClusterEvent by event id: EventDetails"),
        Source("operations", "operations.json", "SageMaker ListClusterOperations: ClusterOperationSummaries"),
        Source("plans", "plans.json", "SageMaker DescribeTrainingPlan by ARN"),
        Source("compute_quotas", "compute-quotas.json", "SageMaker DescribeComputeQuota: ComputeQuotas"),
        Source("scheduler", "scheduler.json", "SageMaker DescribeClusterSchedulerConfig: ClusterSchedulerConfigs"),
        Source("extensions", "extensions.json", "SageMaker DescribeClusterExtension: ClusterExtensions"),
        Source("stacks", "stacks.json", "CloudFormation DescribeStacks, nested ones too: Stacks"),
        Source("stack_events", "stack-events.json", "CloudFormation DescribeStackEvents by stack name, newest first"),
        Source("service_quotas", "service-quotas.json", "Service Quotas ListServiceQuotas of sagemaker: Quotas"),
        Source("addons", "addons.json", "EKS DescribeAddon by add-on name: addon"),
        Source("eks_cluster", "eks-cluster.json", "EKS DescribeCluster: cluster"),
        Source("subnets", "subnets.json", "EC2 DescribeSubnets of the groups: Subnets"),
        Source("security_groups", "security-groups.json", "EC2 DescribeSecurityGroups of the groups: SecurityGroups"),
        Source("file_systems", "file-systems.json", "FSx DescribeFileSystems: FileSystems"),
        Source("lifecycle_logs", "logs/LifecycleConfig/", "CloudWatch Logs: lifecycle scripts, <group>/<instance>.log"),
        Source("quarantines", "quarantines.json", "S3: who took nodes out of work, by instance id"),
        Source(
            "health_logs",
            "logs/SagemakerHealthMonitoringAgent/",
            "CloudWatch Logs: health agent, <group>/<instance>.log",
        ),
        Source("deep_check_logs", "logs/DeepHealthCheckResults/", "CloudWatch Logs: deep health checks, <id>.log"),
        Source("kubernetes_nodes", "kubernetes/nodes.json", "kubectl get nodes: NodeList"),
        Source("pods", "kubernetes/pods.json", "kubectl get pods, all namespaces: PodList"),
        Source("kubernetes_events", "kubernetes/events.json", "kubectl get events, all namespaces: EventList"),
        Source("workloads", "kubernetes/workloads.json", "kubectl get workloads.kueue.x-k8s.io: WorkloadList"),
        Source("pod_logs", "kubernetes/logs/", "kubectl logs of pods, <namespace>/<pod>/<container>.log"),
    )
}
"""Every source by name. A source that has no file and is not called unseen: the cluster has no such thing."""


class Index(BaseModel):
    """What `bundle.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = FORMAT
    podwright: str = ""
    """Version of the podwright that took it."""
    taken: datetime
    """When. What is old, and what is still in progress, is judged by this moment."""
    cluster: str
    """Name of the HyperPod cluster."""
    environment: str = ""
    """Name of the environment, where one was given; its stacks' names begin with it."""
    orchestrator: Literal["eks", "slurm", "none"]
    account: str
    region: str
    unseen: dict[str, str] = Field(default_factory=dict)
    """By source: why it could not be looked at, such as `you may not make this call (AccessDenied)`."""
    redacted: dict[str, int] = Field(default_factory=dict)
    """By kind of secret: how many were taken out."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log."""

    number: int
    """Counted from 1."""
    time: datetime | None
    """When it was written; None where the line does not begin with a time."""
    text: str
    """The line without the time."""


@dataclass(frozen=True)
class Bundle:
    """A bundle in memory: its index, and its files by path."""

    index: Index
    files: Mapping[str, str]

    @classmethod
    def of(cls, files: Mapping[str, str]) -> "Bundle":
        """The bundle that these texts, by path, are; `bundle.json` is one of them.

        Raises:
            CommandError: there is no such file, or it is not the index of a bundle of this version.
        """
        if INDEX not in files:
            raise CommandError(f"this is not a bundle: it has no {INDEX}", "`podwright collect` makes one", 2)
        try:
            data = json.loads(files[INDEX])
            if isinstance(data, dict) and data.get("format", FORMAT) != FORMAT:
                raise CommandError(
                    f"the bundle has format {data['format']}, and this podwright reads {FORMAT}", _NEWER, 2
                )
            index = Index.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            source_file = ".".join(map(str, first["loc"])) or "the whole"
            raise CommandError(f"{INDEX} is not a bundle's index: {source_file}: {first['msg']}", _NEWER, 2) from None
        except ValueError as error:
            raise CommandError(f"{INDEX} is not JSON: {error}", _NEWER, 2) from None
        if index.taken.tzinfo is None:
            # A person who edits an index may leave the zone out; all times of a bundle are UTC.
            index = index.model_copy(update={"taken": index.taken.replace(tzinfo=UTC)})
        return cls(index, files)

    @classmethod
    def read(cls, path: Path) -> "Bundle":
        """The bundle in a folder or a .tar.gz.

        Raises:
            CommandError: it cannot be read, or is no bundle.
        """
        if path.is_dir():
            result = (file for file in sorted(path.rglob("*")) if file.is_file())
            return cls.of({file.relative_to(path).as_posix(): _text(file.read_bytes()) for file in result})
        if not path.is_file():
            raise CommandError(f"{path}: no such bundle", "name a folder or a .tar.gz that `podwright collect` made", 2)
        try:
            with tarfile.open(path) as archive:
                return cls.of(_unpacked(archive, path))
        except (tarfile.TarError, EOFError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(":")
            raise CommandError(
                f"{path} is not a readable .tar.gz: {reason}", "`podwright collect` makes one", 2
            ) from None

    def write(self, path: Path) -> None:
        """Write it: as a .tar.gz where the name ends so, else into a new folder. Its owner alone may read it.

        Raises:
            CommandError: something is there already.
        """
        if path.exists():
            raise CommandError(f"{path} exists already", "name another place with --out, or remove it", 2)
        if path.name.endswith((".tar.gz", ".tgz")):
            _write_archive(path, self.files)
            return
        # Names, addresses and logs are in it, even without secrets.
        path.mkdir(mode=0o700, parents=True)
        for name, text in self.files.items():
            file = path / name
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def json(self, source: str) -> Any:
        """A source's answer, parsed; None where the bundle has none, or where it is damaged."""
        return self._answers.parsed.get(SOURCES[source].file)

    @property
    def unseen(self) -> dict[str, str]:
        """By source: why there is no answer, although the cluster may have such a thing: not allowed, or damaged."""
        return self.index.unseen | self._answers.damaged | self._cut_logs

    def items(self, source: str, key: str) -> list[dict[str, Any]]:
        # Services answer with null, and people cut bundles by hand: whatever is no list of objects counts as none.
        """The objects in the list under `key` of a source's answer; none where the bundle has no such answer."""
        answer = self.json(source)
        result = answer.get(key) if isinstance(answer, dict) else None
        return [item for item in result or () if isinstance(item, dict)]

    def entries(self, source: str) -> dict[str, Any]:
        """The answers of a source that has one for each name or id."""
        answer = self.json(source)
        return answer if isinstance(answer, dict) else {}

    def logs(self, source: str) -> Iterator[str]:
        """The paths of a source's log files, in order."""
        source_file = SOURCES[source].file
        return (path for path in sorted(self.files) if path.startswith(source_file))

    def lines(self, path: str) -> list[LogLine]:
        """The lines of a log file."""
        return [_line(number, text) for number, text in enumerate(self.files[path].splitlines(), 1)]

    def is_cut(self, path: str) -> bool:
        """Whether a log ends in the middle of a line, so that nobody knows what came after."""
        return bool(self.files[path]) and not self.files[path].endswith("\n")

    @cached_property
    def _answers(self) -> "_Answers":
        answers = _Answers({}, {})
        for name, source in SOURCES.items():
            text = self.files.get(source.file)
            if text is None:
                continue
            try:
                answers.parsed[source.file] = json.loads(text, object_hook=_without_null)
            except json.JSONDecodeError as error:
                # No part of it is used: a list that was cut looks like a shorter one.
                answers.damaged[name] = f"damaged at {source.file}:{error.lineno}: {error.msg}; take the bundle again"
        return answers

    @cached_property
    def _cut_logs(self) -> dict[str, str]:
        """By source: the first log that ends in the middle of a line."""
        cut: dict[str, str] = {}
        for name, source in SOURCES.items():
            path = next(filter(self.is_cut, self.logs(name)), None) if source.file.endswith("/") else None
            if path:
                cut[name] = f"{path}:{len(self.lines(path))} ends in the middle of a line; take the bundle again"
        return cut


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the JSON files of a bundle hold."""

    parsed: dict[str, Any]
    """By file."""
    damaged: dict[str, str]
    """By source: where its file stops being JSON."""


_NEWER: Final = "a bundle of a newer podwright needs that podwright"


def _without_null(item: dict[str, Any]) -> dict[str, Any]:
    """Services write null for what they do not say, or leave it out: both mean the same."""
    return {key: value for key, value in item.items() if value is not None}


def moment(value: Any) -> datetime | None:
    """A time as answers and logs write it (ISO 8601; no zone means UTC); None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _line(number: int, text: str) -> LogLine:
    first, _, rest = text.partition(" ")
    # Every line of CloudWatch begins with its time; a quick look saves parsing what cannot be one.
    time = moment(first) if first[:2] == "20" else None
    return LogLine(number, time, rest if time else text)


def _text(data: bytes) -> str:
    # A log may hold bytes of anything, and one bad byte must not hide the rest.
    return data.decode("utf-8", errors="replace")


def _unpacked(archive: tarfile.TarFile, path: Path) -> dict[str, str]:
    """The files of an archive by their path below the folder that holds the index. Nothing is written to disk."""
    results: dict[str, str] = {}
    size = 0
    for member in archive:
        if not member.isfile():
            continue
        size += member.size
        # Counted as announced, before anything is read: a small archive may unpack to more than the memory.
        if size > _MOST_BYTES:
            raise CommandError(
                f"{path} unpacks to more than {_MOST_BYTES // 1024**2} MiB", "unpack it and name the folder", 2
            )
        content = archive.extractfile(member)
        if content:
            results[PurePosixPath(member.name).as_posix()] = _text(content.read())
    # The shortest path, should a bundle lie in a bundle.
    index = min((name for name in results if PurePosixPath(name).name == INDEX), key=len, default=INDEX)
    prefix = index.removesuffix(INDEX)
    return {name.removeprefix(prefix): text for name, text in results.items() if name.startswith(prefix)}


def _write_archive(path: Path, files: Mapping[str, str]) -> None:
    folder = path.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".tar")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Before anything is in it, so that at no moment others may read it.
    path.touch(mode=0o600)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in sorted(files.items()):
            data = text.encode()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))
