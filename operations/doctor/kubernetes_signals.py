"""Signals of Kubernetes: nodes that are marked, pods that stand still, objects that cannot be made, jobs in queues."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from ...cdk8s_charts.benchmark_labels.handler.benchmark_labeller import DEGRADED, SEEN
from ...config.catalog.instance_types import catalog
from .bundle import SOURCES, Bundle, moment
from .evidence import Scene, Signal
from .pods import STARTING, Pod, pods_of
from .scene import DEEP_CHECK_LABEL, health_of, is_ready, node_id

_IN_QUEUE: Final = timedelta(hours=1)
"""A job may wait so long for its team's quota."""
_NEVER: Final = re.compile(
    r"maximum capacity|does(n.t| not) exist|not found|inactive|stopped|is not active|borrowing limit|unavailable in",
    re.IGNORECASE,
)
"""What a queue says that no waiting fixes."""
_NOW: Final = timedelta(minutes=60)
_LAST_LINES: Final = 400
_FAILED_TO_MAKE: Final = (
    "FailedCreate",
    "FailedCreatePodSandBox",
    "ProvisioningFailed",
    "FailedBinding",
    "CreateFailed",
)
_UNSCHEDULABLE: Final = "Unschedulable"
"""What the training operator says of a job whose pods found no node."""
_DEVICES: Final = ("nvidia.com/gpu", "vpc.amazonaws.com/efa", "aws.amazon.com/neurondevice", "aws.amazon.com/neuron")
_EFA: Final = "vpc.amazonaws.com/efa"
_FAULTS: Final = ("fault-type", "fault-reason", "fault-detail")
_PREFIX: Final = "sagemaker.amazonaws.com/"


def node_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """What Kubernetes says of nodes that are not well."""
    for item in bundle.items("kubernetes_nodes", "items"):
        id = node_id(item)
        if not id:
            continue
        metadata, status = item.get("metadata", {}), item.get("status", {})
        labels = metadata.get("labels") or {}
        group = labels.get(f"{_PREFIX}instance-group-name", scene.nodes[id].group if id in scene.nodes else "")
        source_file, around = f"{SOURCES['kubernetes_nodes'].file} {id}", scene.around_node(id, group)
        health, subject = health_of(item), f"node {id}"
        if health not in ("", "Schedulable"):
            facts = {**labels, **(metadata.get("annotations") or {})}
            faults = [
                f"{key.removeprefix(_PREFIX)} {value}"
                for key, value in sorted(facts.items())
                if key.removeprefix(_PREFIX).startswith(_FAULTS)
            ]
            text = f"node {id} is marked {health}: {'; '.join(faults) or 'no fault named'}"
            yield Signal("state", text, subject, source_file, around, symptom=True)
        if labels.get(DEEP_CHECK_LABEL) == "Failed":
            yield Signal(
                "state", f"deep health check of node {id} is Failed", subject, source_file, around, symptom=True
            )
        if steps := labels.get(DEGRADED):
            observed = (metadata.get("annotations") or {}).get(SEEN, steps)
            text = f"node {id} joined degraded by its set-up: {observed}"
            yield Signal("state", text, subject, source_file, around, symptom=True)
        for condition in status.get("conditions") or ():
            since = scene.since(moment(condition.get("lastTransitionTime")))
            bad = condition.get("type") == "Ready" and not is_ready(item) and since >= STARTING
            pressed = str(condition.get("type", "")).endswith("Pressure") and condition.get("status") == "True"
            if bad or pressed:
                text = (
                    f"node {id}: {condition.get('type')} is {condition.get('status')}: {condition.get('message', '')}"
                )
                yield Signal("kubernetes", text, subject, source_file, around, symptom=True)


def pod_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """What is said of pods that stand still, of objects that cannot be made, and what the pods wrote."""
    pods = pods_of(bundle.items("pods", "items"), scene.now)
    still = [pod for pod in pods if pod.stands_still]
    after = {pod.subject: set[str]() for pod in pods}
    for pod in pods:
        if pod.node:
            after[pod.subject].add(f"node {pod.node}")
        elif pod.stands_still:
            after[pod.subject] |= scene.trouble
    source_file = SOURCES["pods"].file
    for pod in still:
        because = frozenset(after[pod.subject])
        name = f"{pod.namespace}/{pod.name}"
        yield Signal(
            "kubernetes",
            f"pod {name} is {pod.phase}",
            pod.subject,
            f"{source_file} {name}",
            after=because,
            symptom=True,
        )
        for text, field in pod.texts():
            yield Signal("kubernetes", text, pod.subject, f"{source_file} {name} {field}", after=because)
    yield from _events(bundle, scene, pods, after)
    yield from _logs(bundle, pods, after)
    yield from _devices(bundle, still, after)


def _events(bundle: Bundle, scene: Scene, pods: Sequence[Pod], after: dict[str, set[str]]) -> Iterator[Signal]:
    """Warnings of pods that stand still, of unhealthy nodes, and of other objects now, unless success followed."""
    by_name = {(pod.namespace, pod.name): pod for pod in pods}
    # Without their pods, nobody knows which events are over: those that Kubernetes repeats are not.
    hidden = "pods" in bundle.unseen
    items = bundle.items("kubernetes_events", "items")
    made: dict[_About, datetime] = {}
    for item in items:
        last = _last(item)
        if item.get("type") == "Normal" and "Success" in str(item.get("reason")) and last:
            made[_about(item)] = max(last, made.get(_about(item), last))
    for item in items:
        if item.get("type") == "Normal":
            continue
        about = _about(item)
        kind, namespace, name = about
        reason, message = item.get("reason", ""), item.get("message") or item.get("note", "")
        pod = by_name.get((namespace, name)) if kind in ("", "Pod") else None
        still = pod is not None and pod.stands_still
        # Where the answer is damaged, an event may be a normal one, or about anything.
        whole = all((item.get("type"), kind, name, reason))
        if not whole and not still and reason not in _FAILED_TO_MAKE:
            continue
        text = f"{reason}: {message}"
        last = _last(item)
        source_file = f"{SOURCES['kubernetes_events'].file} {namespace}/{name} {reason}"
        if kind == "Pod" or pod:
            if pod and still:
                yield Signal(
                    "kubernetes", text, pod.subject, source_file, after=frozenset(after[pod.subject]), time=last
                )
            elif hidden and _repeats(item) and last and scene.since(last) < _NOW:
                yield Signal("kubernetes", text, f"job {namespace}/{name}", source_file, time=last)
        elif kind == "Node":
            id = str(name).removeprefix("hyperpod-")
            node = scene.nodes.get(id)
            if node and not node.healthy:
                yield Signal(
                    "kubernetes", text, node.subject, source_file, scene.around_node(id, node.group), time=last
                )
        elif last is None or scene.since(last) < _NOW:
            symptom = reason in _FAILED_TO_MAKE
            subject = f"job {namespace}/{name}"
            if last and last < made.get(about, last):
                continue
            passes = symptom or reason == _UNSCHEDULABLE
            if passes and subject in after and all(p.started for p in pods if p.subject == subject):
                continue
            because = frozenset(after.get(subject, ()))
            yield Signal("kubernetes", text, subject, source_file, after=because, time=last, symptom=symptom)


class _About(NamedTuple):
    """An event's object."""

    kind: str
    namespace: str
    name: str


def _about(item: dict[str, Any]) -> _About:
    about = item.get("involvedObject") or item.get("regarding") or {}
    namespace = about.get("namespace") or item.get("metadata", {}).get("namespace", "default")
    return _About(about.get("kind", ""), namespace, about.get("name", ""))


def _repeats(item: dict[str, Any]) -> bool:
    """Whether an event was seen more than once."""
    return max(item.get("count") or 0, (item.get("series") or {}).get("count") or 0) > 1


def _last(item: dict[str, Any]) -> datetime | None:
    """When an event was last seen."""
    series = item.get("series") or {}
    return moment(item.get("lastTimestamp") or series.get("lastObservedTime") or item.get("eventTime"))


def _logs(bundle: Bundle, pods: Sequence[Pod], after: dict[str, set[str]]) -> Iterator[Signal]:
    by_name = {(pod.namespace, pod.name): pod for pod in pods}
    for path in bundle.logs("pod_logs"):
        parts = path.removeprefix(SOURCES["pod_logs"].file).split("/")
        pod = by_name.get((parts[0], parts[1])) if len(parts) > 2 else None
        if not pod:
            continue
        because = frozenset(after[pod.subject])
        running = not pod.stands_still
        if running and not pod.asks_for(_EFA):
            continue
        for line in bundle.lines(path)[-_LAST_LINES:]:
            source_file = f"{path}:{line.number}"
            yield Signal("pod_log", line.text, pod.subject, source_file, after=because, time=line.time, running=running)


def _devices(bundle: Bundle, still: Sequence[Pod], after: dict[str, set[str]]) -> Iterator[Signal]:
    """Nodes that do not offer a device that a pod which finds no room asks for."""
    for item in bundle.items("kubernetes_nodes", "items"):
        offered = item.get("status", {}).get("allocatable")
        kind = (item.get("metadata", {}).get("labels") or {}).get("node.kubernetes.io/instance-type", "")
        if offered is None or not is_ready(item) or health_of(item) not in ("", "Schedulable"):
            continue
        for device in _missing(kind, offered):
            for pod in still:
                if pod.phase == "Pending" and pod.asks_for(device):
                    text = f"node {node_id(item)} ({kind}) offers no {device}"
                    source_file = f"{SOURCES['kubernetes_nodes'].file} {node_id(item)}"
                    yield Signal("kubernetes", text, pod.subject, source_file, after=frozenset(after[pod.subject]))


def _missing(kind: str, offered: dict[str, Any]) -> Iterator[str]:
    known = catalog().find(kind)
    if not known:
        return
    has = {"nvidia.com/gpu": known.gpus, _EFA: known.efa_interfaces}
    for device, count in has.items():
        if count and str(offered.get(device, "0")) == "0":
            yield device


def _is_held_back(item: dict[str, Any], conditions: dict[str | None, dict[str, Any]]) -> bool:
    """Whether Kueue says that it holds a workload back. One that it says nothing of may run as well as wait."""
    states = {type: condition.get("status") for type, condition in conditions.items()}
    if "True" in (states.get("Admitted"), states.get("Finished")) or item.get("spec", {}).get("active") is False:
        return False
    checks = item.get("status", {}).get("admissionChecks") or ()
    return (
        states.get("QuotaReserved") == "False"
        or "True" in (states.get("Evicted"), states.get("Preempted"))
        or any(check.get("state", "Ready") != "Ready" for check in checks)
    )


def workload_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """Jobs that Kueue holds back for longer than one waits, or forever."""
    for item in bundle.items("workloads", "items"):
        metadata, status = item.get("metadata", {}), item.get("status", {})
        conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
        if not _is_held_back(item, conditions):
            continue
        namespace = metadata.get("namespace", "default")
        owners = metadata.get("ownerReferences") or ()
        name = owners[0].get("name") if owners else metadata.get("name", "")
        source_file = f"{SOURCES['workloads'].file} {namespace}/{metadata.get('name', '')}"
        reserved = conditions.get("QuotaReserved", {})
        texts = [
            f"{condition.get('reason', '')}: {condition.get('message', '')}"
            for type, condition in conditions.items()
            if (type == "QuotaReserved" and condition.get("status") == "False")
            or (type in ("Evicted", "Preempted") and condition.get("status") == "True")
        ]
        asked = moment(reserved.get("lastTransitionTime")) or moment(metadata.get("creationTimestamp"))
        created = moment(metadata.get("creationTimestamp")) or asked
        waited = scene.since(created)
        never = any(_NEVER.search(text) for text in texts)
        if waited < (STARTING if never else _IN_QUEUE):
            continue
        subject = f"job {namespace}/{name}"
        text = f"Workload {namespace}/{name} waits for {int(waited.total_seconds() // 60)} minutes"
        yield Signal("state", text, subject, source_file, time=created, symptom=True)
        for text in texts:
            yield Signal("kubernetes", text, subject, source_file, time=asked)
