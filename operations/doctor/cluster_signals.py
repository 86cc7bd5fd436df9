"""Signals of the cluster itself: its status, groups, nodes and events, and the messages of what is attached to it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from .bundle import SOURCES, Bundle, moment
from .evidence import CLUSTER, Scene, Signal

_TOGETHER: Final = timedelta(hours=6)
"""Events of a subject that are older than its newest one by more than this belong to an earlier trouble."""
_RECENT: Final = timedelta(hours=6)
_BAD_STATUS: Final = ("Failed", "Degraded", "Impaired")
_ENDED: Final = (
    "success",
    "succeeded",
    "completed",
    "is now running",
    "in service",
    "inservice",
    "recovered",
    "healthy",
)


def cluster_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """What SageMaker says of the cluster, its groups and its nodes."""
    cluster = bundle.json("cluster") or {}
    source_file = SOURCES["cluster"].file
    short = any(group.short for group in scene.groups.values())
    # HyperPod keeps the message of an old failure after the cluster is well again.
    if scene.failed or (cluster.get("FailureMessage") and (short or scene.status not in ("", "InService"))):
        text = cluster.get("FailureMessage") or f"the cluster is {scene.status}"
        yield Signal("message", text, CLUSTER, f"{source_file} FailureMessage", symptom=True)
    scaling = cluster.get("AutoScaling") or {}
    if scaling.get("Status") == "Failed":
        text = scaling.get("FailureMessage") or "automatic scaling has failed"
        yield Signal("message", text, "automatic scaling", f"{source_file} AutoScaling", symptom=True)
    for group in scene.groups.values():
        # A group that fills up is short, and that is no trouble.
        if group.short and not group.waits:
            text = f"group {group.name} has {group.current} of {group.target} instances"
            yield _of_group(Signal("state", text, group.subject, f"{source_file} {group.name}", symptom=True))
        elif group.status in _BAD_STATUS and not group.waits:
            text = f"group {group.name} is {group.status}"
            yield _of_group(Signal("state", text, group.subject, f"{source_file} {group.name}", symptom=True))
    for item in cluster.get("InstanceGroups", ()):
        # A rollback that is complete leaves all nodes with the old image, and nobody is told.
        if item.get("SoftwareUpdateStatus") in ("Failed", "RollbackComplete"):
            text = f"the software update of group {item['InstanceGroupName']} failed: {item['SoftwareUpdateStatus']}"
            subject = f"group {item['InstanceGroupName']}"
            yield _of_group(Signal("state", text, subject, f"{source_file} {item['InstanceGroupName']}", symptom=True))
    for node in scene.nodes.values():
        if node.healthy:
            continue
        around = scene.around_node(node.id, node.group)
        if node.message or node.status != "Running":
            text = node.message or f"node {node.id} is {node.status}"
            source_file = SOURCES["node_details" if node.id in bundle.entries("node_details") else "nodes"].file
            yield Signal(
                "message", text, node.subject, f"{source_file} {node.id}", around, time=node.launched, symptom=True
            )


def event_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """Events of what is not well now, with the failure messages that only DescribeClusterEvent gives."""
    details = bundle.entries("event_details")
    events = [_Event(item, details.get(item.get("EventId", ""), {})) for item in bundle.items("events", "Events")]
    known = {event.id for event in events}
    # Details may be of events that the list no longer has.
    events += [_Event(_inner(item), item) for id, item in details.items() if id not in known]
    events.sort(key=lambda event: event.time or scene.now)
    good: dict[str, datetime] = {}
    newest: dict[str, datetime] = {}
    for event in events:
        if event.time and event.good:
            good[event.subject] = event.time
        if event.time and event.bad:
            newest[event.subject] = event.time
    for event in events:
        if not event.bad or not _matters(event, scene):
            continue
        since = max(
            # Events from before the last good news, or from an earlier trouble, explain nothing of now.
            filter(
                None, (good.get(event.subject), newest[event.subject] - _TOGETHER if event.subject in newest else None)
            ),
            default=None,
        )
        if event.time and since and event.time < since:
            continue
        # Each message by itself: patterns of causes are about one sentence.
        for text in event.texts:
            yield Signal(
                "message", text, event.subject, f"{event.place} {event.id}", event.around(scene), time=event.time
            )


class _Event:
    """An event with its details."""

    def __init__(self, item: dict[str, Any], details: dict[str, Any]) -> None:
        self.id: str = item.get("EventId", "")
        self.time = moment(item.get("EventTime"))
        self.level: str = item.get("EventLevel", "")
        self.group: str = item.get("InstanceGroupName") or ""
        self.instance: str = item.get("InstanceId") or ""
        self.type: str = item.get("ResourceType", "")
        self.description: str = item.get("Description") or ""
        self.messages = list(dict.fromkeys(_messages(details)))
        self.place = SOURCES["event_details" if self.messages else "events"].file

    @property
    # Failure messages come before descriptions, which are the same for many failures.
    def texts(self) -> list[str]:
        """What it says: the failure messages, else the description."""
        return [*self.messages, self.description] if self.description else self.messages

    @property
    def subject(self) -> str:
        if self.type == "Instance" and self.instance:
            return f"node {self.instance}"
        if self.group:
            return f"group {self.group}"
        return CLUSTER

    @property
    def bad(self) -> bool:
        words = self.description.lower()
        # Events of older bundles have no level.
        messages = any(word in words for word in ("fail", "error", "unable", "insufficient", "unhealthy", "not "))
        return self.level in ("Error", "Warn") or (not self.level and messages) or bool(self.messages)

    @property
    def good(self) -> bool:
        words = self.description.lower()
        return self.level == "Info" and not self.messages and any(word in words for word in _ENDED)

    def around(self, scene: Scene) -> frozenset[str]:
        node = {f"node {self.instance}"} if self.instance else set()
        group = self.group or (scene.nodes[self.instance].group if self.instance in scene.nodes else "")
        return frozenset({CLUSTER, *node, *({f"group {group}"} if group else set())})


def _matters(event: _Event, scene: Scene) -> bool:
    """Whether what an event is about is still not well."""
    if event.type == "Instance" and event.instance:
        group = event.group or (scene.nodes[event.instance].group if event.instance in scene.nodes else "")
        return scene.concerns_now(event.instance, group) and not _only_waits(event, group, scene)
    if event.group:
        group = scene.groups.get(event.group)
        bad = scene.failed or (group.short or group.status in _BAD_STATUS if group else not scene.hidden)
        unhealthy = any(not node.healthy for node in scene.nodes.values() if node.group == event.group)
        return (bad or unhealthy) and not _only_waits(event, event.group, scene)
    short = any(group.short for group in scene.groups.values())
    # Events of the whole cluster name nothing whose state could be looked at, so their age decides.
    return scene.failed or scene.status not in ("", "InService") or short or scene.since(event.time) < _RECENT


def _only_waits(event: _Event, name: str, scene: Scene) -> bool:
    """Whether a group is still within the time that it may take, and nothing worse than a warning was said of it."""
    group = scene.groups.get(name)
    return bool(group and group.waits and event.level != "Error")


def _messages(value: Any, key: str = "") -> Iterator[str]:
    """Every failure message in the details of an event, wherever its metadata has it."""
    if isinstance(value, dict):
        if key == "SlurmHealth" and value.get("Status") == "Unhealthy":
            yield f"{value.get('Component', 'Slurm')} is unhealthy: {value.get('Reason', 'no reason given')}"
        if value.get("RollbackStatus") in ("Reverted", "RevertFailed"):
            yield f"DatabaseConfiguration {value['RollbackStatus']}"
        if value.get("LcsExecutionState") and "fail" in str(value["LcsExecutionState"]).lower():
            yield "LcsExecutionState Failed"
        for name, item in value.items():
            yield from _messages(item, name)
    elif isinstance(value, str) and value and key in ("FailureMessage", "Advisory"):
        yield value


def _inner(item: dict[str, Any]) -> dict[str, Any]:
    """The event itself, however the answer of DescribeClusterEvent was kept."""
    inner = item.get("EventDetails")
    return inner if isinstance(inner, dict) and "EventId" in inner else item


def _of_group(signal: Signal) -> Signal:
    return replace(signal, around=frozenset({CLUSTER, signal.subject}))


def service_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """Quotas of teams, add-ons, extensions and file systems that are not in order."""
    for source, key, name in (
        ("compute_quotas", "ComputeQuotas", "quota"),
        ("scheduler", "ClusterSchedulerConfigs", "cluster policy"),
    ):
        for item in bundle.items(source, key):
            if str(item.get("Status", "")).endswith("Failed"):
                what = f"{name} {item.get('Name', '')}"
                reason = item.get("FailureReason") or "no reason given"
                source_file = f"{SOURCES[source].file} {item.get('Name', '')}"
                kind = "compute quota" if source == "compute_quotas" else "cluster scheduler config"
                yield Signal("message", f"{kind} {item['Status']}: {reason}", what, source_file, symptom=True)
    for name, item in bundle.entries("addons").items():
        addon = item.get("addon", item)
        status = str(addon.get("status", ""))
        if status == "DEGRADED" or status.endswith("_FAILED"):
            issues = (addon.get("health") or {}).get("issues") or [{}]
            for issue in issues:
                text = f"add-on {name} is {status}: {issue.get('code', '')} {issue.get('message', '')}".strip()
                source_file = f"{SOURCES['addons'].file} {name}"
                yield Signal("message", text, f"add-on {name}", source_file, after=scene.trouble, symptom=True)
    for item in bundle.items("extensions", "ClusterExtensions"):
        details = item.get("ExtensionDetails", item)
        status = str(details.get("Status", ""))
        if status == "Degraded" or status.endswith("Failed"):
            name = details.get("ExtensionName", "")
            for issue in (item.get("Health") or {}).get("Issues") or [{}]:
                text = f"extension {name} is {status}: {issue.get('Code', '')} {issue.get('Message', '')}".strip()
                yield Signal("message", text, f"extension {name}", SOURCES["extensions"].file, symptom=True)
    for item in bundle.items("file_systems", "FileSystems"):
        state = item.get("Lifecycle", "AVAILABLE")
        if state in ("FAILED", "MISCONFIGURED", "MISCONFIGURED_UNAVAILABLE"):
            reason = (item.get("FailureDetails") or {}).get("Message", "")
            name = item.get("FileSystemId", "")
            text = f"file system {name} is {state} {reason}".strip()
            source_file = f"{SOURCES['file_systems'].file} {name}"
            yield Signal("state", text, f"file system {name}", source_file, symptom=True)
    eks = bundle.json("eks_cluster") or {}
    eks = eks.get("cluster", eks)
    if eks.get("status") == "FAILED":
        yield Signal("state", "the EKS cluster is FAILED", "EKS", SOURCES["eks_cluster"].file, symptom=True)
    for issue in (eks.get("health") or {}).get("issues") or ():
        text = f"EKS: {issue.get('code', '')} {issue.get('message', '')}"
        yield Signal("message", text, "EKS", SOURCES["eks_cluster"].file, symptom=True)
