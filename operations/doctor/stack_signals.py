"""Signals of CloudFormation: why the newest operation of a stack failed, down to nested stacks."""

import re
from collections.abc import Iterator
from typing import Any, Final

from .bundle import SOURCES, Bundle, moment
from .evidence import CLUSTER, Scene, Signal

_BEGINNINGS: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS")
_OF_CLUSTER: Final = ("AWS::SageMaker::Cluster", "Custom::PodwrightNodesReady")
"""Their failures are those of the cluster, which says more about them."""
_CONSEQUENCE: Final = re.compile(
    r"Resource (creation|update) cancelled|The following resource\(s\) failed|Embedded stack .* was not successfully",
    re.IGNORECASE,
)


def stack_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """What failed in the newest operation of each stack that is not in order."""
    del scene
    events = bundle.entries("stack_events")
    for stack in bundle.items("stacks", "Stacks"):
        status = str(stack.get("StackStatus", ""))
        if not ("FAILED" in status or "ROLLBACK" in status):
            continue
        name = stack.get("StackName", "")
        subject = f"stack {name}"
        failures = list(_failures(name, events.get(name) or events.get(stack.get("StackId", "")) or []))
        yield from failures
        nested = any(
            str(item.get("ParentId", "")) == stack.get("StackId") and "FAILED" in str(item.get("StackStatus"))
            for item in bundle.items("stacks", "Stacks")
        )
        if not failures and not nested:
            reason = stack.get("StackStatusReason") or ""
            text = f"stack {name} is {status}" + ("" if _CONSEQUENCE.search(reason) else f": {reason}")
            source_file = f"{SOURCES['stacks'].file} {name}"
            yield Signal("stack", text, subject, source_file, frozenset({subject}), symptom=True)
    # A nested stack that was rolled back may be gone from the list, and its events still be there.
    listed = {stack.get("StackName") for stack in bundle.items("stacks", "Stacks")}
    for name, items in events.items():
        if name not in listed and not any(stack.get("StackId") == name for stack in bundle.items("stacks", "Stacks")):
            yield from _failures(name, items)


def _failures(stack: str, events: list[dict[str, Any]]) -> Iterator[Signal]:
    """The failed resources of the newest operation."""
    for event in _newest_operation(events):
        status, reason = str(event.get("ResourceStatus", "")), event.get("ResourceStatusReason") or ""
        of_stack = event.get("ResourceType") == "AWS::CloudFormation::Stack" and event.get(
            "PhysicalResourceId"
        ) == event.get("StackId")
        failed = status.endswith("_FAILED") or (of_stack and "ROLLBACK_IN_PROGRESS" in status)
        if not failed or not reason or _CONSEQUENCE.search(reason):
            continue
        id, type = event.get("LogicalResourceId", ""), event.get("ResourceType", "")
        subject = CLUSTER if type in _OF_CLUSTER else f"stack {stack} {id}"
        source_file = f"{SOURCES['stack_events'].file} {stack} {id}"
        around = frozenset({f"stack {stack}", subject})
        yield Signal("stack", reason, subject, source_file, around, time=moment(event.get("Timestamp")), symptom=True)


def _newest_operation(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Its events, newest first, back to where the stack itself began."""
    ordered = sorted(events, key=lambda event: str(event.get("Timestamp", "")), reverse=True)
    for event in ordered:
        yield event
        itself = event.get("PhysicalResourceId") == event.get("StackId") or event.get("LogicalResourceId") == event.get(
            "StackName"
        )
        if itself and event.get("ResourceStatus") in _BEGINNINGS:
            return
