"""Signals of logs on CloudWatch: lifecycle scripts, the health agent, deep health checks."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Final

from .bundle import Bundle, LogLine
from .evidence import Scene, Signal

_LAST_LINES: Final = 600
"""A log is read from its end: what made the scripts stop stands there."""
_AGAIN: Final = re.compile(
    r"retry(ing)?\b|will (be )?retried|attempt|trying again|again in \d+|podwright: again |sleeping \d+", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"(\d+) ?(?:of|/) ?(\d+)")
_NEAR: Final = 3
"""The announcement of another attempt stands on the line of the failure or shortly after it."""
_DECISIVE: Final = 5
"""Where no number says whether it was the last attempt, it counts only so near to the end of the log."""
_STEP: Final = re.compile(r"Execute script: |TASK \[|\[start\] ")
"""Where scripts that stop at the first error begin a step: what went before had no consequence. AWS's own scripts and
Ansible write so."""
_ENDED_WELL: Final = re.compile(r"lifecycle scripts? succeeded|(on_create|on_init_complete): done$", re.IGNORECASE)
_FAILS: Final = re.compile(r"fail|error|unhealthy|not pass|fatal|exception", re.IGNORECASE)
_DETECTION: Final = "HealthMonitoringAgentDetectionEvent"
_RECOVERS: Final = timedelta(minutes=30)
"""A node that still runs so long after a detection was fixed, where HyperPod recovers nodes by itself: a reboot takes
1–3 minutes, and a replacement is another instance."""


def lifecycle_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """The lines of the logs of scripts that failed, oldest first."""
    for path in bundle.logs("lifecycle_logs"):
        group, instance = _of(path)
        lines = bundle.lines(path)[-_LAST_LINES:]
        node = scene.nodes.get(instance)
        if not scene.concerns_now(instance, group):
            # A node may run and yet do its work in a way that nobody wants.
            for line in lines if node else ():
                file = f"{path}:{line.number}"
                around = scene.around_node(instance, group)
                yield Signal("lifecycle", line.text, f"node {instance}", file, around, time=line.time, running=True)
            continue
        # What follows the cut may be another attempt, or the end of scripts that did all their work.
        if bundle.is_cut(path) or any(_ENDED_WELL.search(line.text) for line in lines[-5:]):
            continue
        around = scene.around_node(instance, group)
        if lines:
            last = lines[-1]
            text = f"the lifecycle scripts of node {instance} stopped; their last line: {last.text}"
            file = f"{path}:{last.number}"
            yield Signal("lifecycle", text, f"node {instance}", file, around, time=last.time)
        started = max((index for index, line in enumerate(lines[:-1]) if _STEP.search(line.text)), default=0)
        for index, line in enumerate(lines):
            if index < started:
                continue
            if _overcome(lines[index : index + _NEAR], len(lines) - index):
                continue
            yield Signal("lifecycle", line.text, f"node {instance}", f"{path}:{line.number}", around, time=line.time)


def _overcome(near: list[LogLine], left: int) -> bool:
    """Whether a failure was followed by another attempt, so that it did not end the scripts."""
    for line in near:
        if _AGAIN.search(line.text):
            number = _NUMBERED.search(line.text)
            return int(number[1]) < int(number[2]) if number else left > _DECISIVE
    return False


def health_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """Detections of the health agent on nodes that are not well."""
    recovers = (bundle.json("cluster") or {}).get("NodeRecovery", "Automatic") != "None"
    for path in bundle.logs("health_logs"):
        group, instance = _of(path)
        around = scene.around_node(instance, group)
        node = scene.nodes.get(instance)
        for line in bundle.lines(path):
            if _DETECTION not in line.text and "NVRM" not in line.text:
                continue
            if node and node.launched and line.time and line.time < node.launched:
                continue
            messages = instance in scene.labelled or (node and not node.healthy)
            if messages or not node:
                matters = scene.concerns_now(instance, group)
            else:
                fresh = line.time is not None and scene.since(line.time) < _RECOVERS
                matters = _DETECTION in line.text and (fresh or not recovers)
            if matters:
                detected = _DETECTION in line.text
                text = _record(line)
                file = f"{path}:{line.number}"
                yield Signal("health", text, f"node {instance}", file, around, time=line.time, symptom=detected)


def deep_check_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """Failures in the logs of deep health checks of nodes that are not well."""
    for path in bundle.logs("deep_check_logs"):
        lines = bundle.lines(path)
        name = PurePosixPath(path).stem
        text = "\n".join([name, *(line.text for line in lines)])
        ids = {id for id in scene.nodes if id in text}
        unhealthy = [scene.nodes[id] for id in sorted(ids) if not scene.nodes[id].healthy]
        deleted = not ids and (scene.failed or any(group.short for group in scene.groups.values()))
        if not unhealthy and not deleted:
            continue
        subject = unhealthy[0].subject if unhealthy else f"deep health check {name}"
        around = scene.around_node(unhealthy[0].id, unhealthy[0].group) if unhealthy else frozenset({"cluster"})
        for line in lines:
            if _FAILS.search(line.text):
                text = f"deep health check: {line.text}"
                yield Signal("health", text, subject, f"{path}:{line.number}", around, time=line.time)


def _record(line: LogLine) -> str:
    """The agent's record in one line: reason and message, where it is JSON."""
    start = line.text.find("{")
    if start < 0:
        return line.text
    try:
        record = json.loads(line.text[start:])
    except ValueError:
        return line.text
    details = next(
        (record[key] for key in record if key.strip(": ") == "details" and isinstance(record[key], dict)), {}
    )
    parts = (str(details.get(key, "")) for key in ("reason", "message"))
    return " ".join(filter(None, parts)) or line.text


def _of(path: str) -> tuple[str, str]:
    """Group and instance of a log stream."""
    parts = PurePosixPath(path)
    return parts.parent.name, parts.name.removesuffix(".log")
