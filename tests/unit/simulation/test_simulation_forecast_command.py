"""`podwright forecast` with a snapshot and a stand-in for who decides: what it reads, prints and refuses."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.simulation import forecast_command
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.snapshot import Snapshot, read_snapshot
from podwright.planning.simulation.summary.outcome import JobOutcome, Outcome, Run

ROOT = Path(__file__).resolve().parents[3]


def pending(count: int) -> str:
    container = {"resources": {"requests": {"nvidia.com/gpu": "8"}}}
    pods = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
    metadata = {"namespace": "hyperpod-ns-product", "creationTimestamp": "2027-01-15T08:00:00Z"}
    items: list[dict[str, Any]] = [{"kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": {}}]
    for index in range(count):
        spec = {"queueName": "hyperpod-ns-product-localqueue", "podSets": pods}
        items.append({"kind": "Workload", "metadata": metadata | {"name": f"w{index}"}, "spec": spec})
    return json.dumps({"kind": "List", "items": items})


def after_all(
    snapshot: Snapshot, environment: Environment, workload: dict[str, Any], seconds: float, assumptions: Assumptions
) -> Outcome:
    """The job starts when everything that waits has run, one after the other; it never does behind ten."""
    name, start = workload["metadata"]["name"], snapshot.taken + sum(snapshot.seconds.values())
    job = JobOutcome(name, "product", snapshot.taken, 16, waits_for="insufficient unused quota")
    if len(snapshot.workloads) < 10:
        job.runs.append(Run(start, start + seconds, "h200", 16, (("n1", 2),), "finished"))
        job.finished = start + seconds
    return Outcome("prod", snapshot.taken, start + seconds, [job], (), {}, {}, {})


def forecast(*words: str) -> int:
    parser = argparse.ArgumentParser()
    forecast_command.add_arguments(parser)
    args = parser.parse_args(words)
    args.project = ROOT
    return forecast_command.answer(args, after_all)


def test_a_job_is_forecast_from_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    file.write_text(pending(2))
    assert forecast("prod", "fine-tune", "--snapshot", str(file), "--duration", "2h", "--failures", "0", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["starts_in"], result["ends_in"]) == (4 * 3600, 6 * 3600)
    assert result["domains"] == [{"domain": "n1", "pods": 2}]
    assert "fine-tune runs for 2 h" in result["assumptions"]
    assert "no other job is submitted from now on" in result["assumptions"]
    file.write_text(pending(10))
    assert forecast("prod", "fine-tune", "--snapshot", str(file)) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("fine-tune of product does not start: insufficient unused quota")
    assert "a node fails 0.000158 times an hour" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prod", "none"), "no job none"),
        (("three-projects", "JOB"), "three-projects is not Kueue's"),
        (("prod", "fine-tune"), "is not a state of a cluster: line 1 is not JSON"),
    ],
)
def test_what_cannot_be_forecast_is_refused(words: tuple[str, str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("{")
    name = next(iter(Project.at(ROOT).load(words[0]).environment.jobs), "") if words[1] == "JOB" else words[1]
    with pytest.raises(CommandError, match=message):
        forecast(words[0], name, "--snapshot", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        forecast("prod", "fine-tune", "--snapshot", str(tmp_path / "none"))


def test_a_large_snapshot_is_read_in_time() -> None:
    """Calls are counted, which a busy machine makes no more."""
    texts, calls = {count: pending(count) for count in (500, 5000)}, Counter[int]()
    for count, text in texts.items():
        sys.setprofile(lambda _frame, event, _argument, count=count: calls.update([count] * (event == "call")))
        try:
            snapshot = read_snapshot(text, 60)
        finally:
            sys.setprofile(None)
        assert len(snapshot.workloads) == count
    assert calls[5000] < 11 * calls[500]
