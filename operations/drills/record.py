"""Results of drills: as text, as JSON, and as files of the project for later comparison."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...config.catalog.drills import DrillKind
from ...config.errors import CommandError
from ...config.settings.observability import Targets
from ..aws.clusters import Node
from ..nodes.timeline import MARKS, Timeline, shown
from ..output.tables import Block, new_table

FOLDER: Final = ".podwright/drills"
"""Folder of the project with the results of drills."""
_KEYS: Final = {"environment", "kind", "node", "begun", "intervals", "simulated", "ok"}


def record(
    environment: str, kind: DrillKind, node: Node, timeline: Timeline, targets: Targets, *, simulated: bool = False
) -> dict[str, Any]:
    """Return the result of a drill as `--json` prints it. Times are in seconds since the fault."""
    intervals = timeline.intervals(targets)
    return {
        "environment": environment,
        "kind": kind.name,
        "node": node.id,
        "group": node.group,
        "type": node.type,
        "simulated": simulated,
        "begun": datetime.fromtimestamp(timeline.begun, UTC).isoformat(timespec="seconds"),
        "expected": kind.action,
        "action": timeline.action,
        "replacement": timeline.replacement,
        "reasons": timeline.reasons,
        "marks": {name: round(at - timeline.begun, 1) for name, at in timeline.marks.items()},
        "intervals": [
            {
                "name": item.name,
                "what": item.what,
                "seconds": None if item.seconds is None else round(item.seconds, 1),
                "target": item.target,
                "missed": item.missed,
            }
            for item in intervals
        ],
        "complete": timeline.done,
        "ok": timeline.done and timeline.action == kind.action and not any(item.missed for item in intervals),
    }


def keep(project: Path, result: dict[str, Any]) -> Path:
    """Write a result into the project. Returns the file."""
    folder = project / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    timestamp = result["begun"].replace(":", "").replace("-", "")[:15]
    file = folder / f"{result['environment']}-{timestamp}-{result['kind']}.json"
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return file


def kept(project: Path, environment: str) -> list[dict[str, Any]]:
    """Return the results of an environment, oldest first. Raises CommandError for a file that is no result."""
    results = [_read(file) for file in (project / FOLDER).glob("*.json")]
    return sorted((item for item in results if item["environment"] == environment), key=lambda item: item["begun"])


def _read(file: Path) -> dict[str, Any]:
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        missing = _KEYS - result.keys()
    except (ValueError, AttributeError) as error:
        raise CommandError(f"{file} is not a drill: {error}", "delete it") from None
    if missing:
        raise CommandError(f"{file} is not a drill of this release: it lacks {', '.join(sorted(missing))}", "delete it")
    return result


def lines(result: dict[str, Any]) -> list[Block]:
    """Return one result as text."""
    marks = [f"  {shown(seconds):>9}  {MARKS[name]}" for name, seconds in _in_order(result["marks"])]
    rows = [
        (f"{item['name']}: {item['what']}", shown(item["seconds"]), shown(item["target"]), _verdict(item))
        for item in result["intervals"]
    ]
    labels = [f"HyperPod's labels of the fault: {', '.join(map('='.join, result['reasons'].items()))}"]
    return [
        f"{result['kind']} on {result['node']} ({result['group']}, {result['type']}), {result['begun']}",
        *marks,
        *(labels if result["reasons"] else []),
        *([f"{result['replacement']} replaced the node"] if result["replacement"] else []),
        "",
        new_table("", ("interval", "took", "may take", ""), rows, right=(1, 2)),
        "",
        _summary(result),
        *(
            ["Simulated: the sandbox played the agent and the instance, and its times mean nothing."]
            * result["simulated"]
        ),
    ]


def table(drills: Sequence[dict[str, Any]]) -> list[Block]:
    """Return several results as a table, a line for each."""
    names = list(dict.fromkeys(item["name"] for drill in drills for item in drill["intervals"]))
    rows = []
    for drill in drills:
        took = {item["name"]: shown(item["seconds"]) for item in drill["intervals"]}
        sign = ("ok" if drill["ok"] else "missed") + (", simulated" if drill["simulated"] else "")
        rows.append((drill["begun"], drill["kind"], drill["node"], *(took.get(name, "") for name in names), sign))
    return [new_table("", ("begun", "kind", "node", *names, ""), rows, right=names)]


def _in_order(marks: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(marks.items(), key=lambda item: (item[1], list(MARKS).index(item[0])))


def _verdict(item: dict[str, Any]) -> str:
    if item["missed"]:
        return "missed" if item["seconds"] is not None else "never seen"
    return "ok" if item["target"] is not None and item["seconds"] is not None else ""


def _summary(result: dict[str, Any]) -> str:
    if result["ok"]:
        return "As it should be."
    if result["action"] != result["expected"]:
        words = {"none": "nothing that could be seen", "reboot": "a reboot", "replace": "a replacement"}
        return f"HyperPod did {words[result['action']]}, where {words[result['expected']]} was expected."
    return "Not everything was seen in time." if not result["complete"] else "A target was missed."
