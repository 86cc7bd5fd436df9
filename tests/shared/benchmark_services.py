"""What the verdict on a node meets: a driver, S3, SageMaker and Slurm, all in memory."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.runner.log import Log
from podwright.lifecycle_scripts.podwright_node.runner.node import Node

URI = "s3://sagemaker-test/prod/benchmarks"
INSTANCE = "i-0123456789abcdef0"
ADDRESS = "10.16.5.9"


def measurement(outcome: str = "pass", value: float | None = 700.0, **provided: Any) -> dict[str, Any]:
    """One result of a kernel, as the driver writes it."""
    lines = {"fail_below": 600.0, "warn_below": 650.0, "bound": 989.0}
    made = {"name": "gemm_bf16", "devices": [0], "value": value, "unit": "TFLOPS", "higher_is_better": True}
    reason = "" if outcome == "pass" else f"{value} is {outcome}"
    return {**made, **lines, "source": "a test", "outcome": outcome, "reason": reason, **provided}


def record(verdict: str = "pass", results: Sequence[dict[str, Any]] = (), **provided: Any) -> dict[str, Any]:
    """A node's record, as the driver writes it."""
    return {
        "version": 1,
        "cluster": "prod",
        "group": "h200",
        "instance_id": INSTANCE,
        "instance_type": "ml.p5en.48xlarge",
        "started": "2026-11-21T10:00:00.000+00:00",
        "seconds": 41.5,
        "mode": "quick",
        "thresholds_version": "2026-11",
        "results": list(results) or [measurement(verdict)],
        "verdict": verdict,
        **provided,
    }


@dataclass
class BenchmarkServices:
    """Everything outside a node, and the nodes in it."""

    folder: Path
    verdict: str = "fail"
    status: str = "Pending"
    """What SageMaker says about an instance."""
    objects: dict[str, tuple[str, str]] = field(default_factory=dict)
    """S3: text and entity tag by key."""
    broken: Callable[[Sequence[str]], str] = lambda command: ""
    """Why a command fails now; empty when it does not."""
    before: Callable[[Sequence[str]], None] = lambda command: None
    """Called before each command."""
    commands: list[tuple[str, ...]] = field(default_factory=list)
    runs: int = 0
    """How often the kernels ran."""
    tags: Any = field(default_factory=count)
    slurm: dict[str, str] = field(default_factory=lambda: {"State": "IDLE", "Reason": ""})
    logs: list[Log] = field(default_factory=list)

    def close(self) -> None:
        """Close the logs of all nodes."""
        for log in self.logs:
            log.__exit__()

    def node(
        self, *, policy: str = "gate", orchestrator: str = "eks", instance: str | None = INSTANCE, **facts: Any
    ) -> Node:
        """A node of these services. Its root is a folder of its own."""
        benchmarks = {"mode": "quick", "results_uri": URI, "max_replacements": 2, "window_days": 7, "continuous": True}
        root = self.folder / str(instance)
        self.logs.append(Log(root / "log"))
        return BenchmarkNode(
            root=root,
            facts={
                "cluster": {"name": "prod", "orchestrator": orchestrator, "region": "us-west-2"},
                "benchmarks": {**benchmarks, **facts},
                "groups": {"h200": {"benchmarks": policy}},
                "instance_types": {"ml.p5en.48xlarge": {}},
                "slurm": {"controller_group": "head", "login_groups": []},
            },
            group="h200",
            instance_type="ml.p5en.48xlarge",
            log=self.logs[-1],
            instance_id=instance,
            address=ADDRESS,
        ).using(self)

    def drive(self, monkeypatch: pytest.MonkeyPatch, run: Callable[..., dict[str, Any]] | None = None) -> None:
        """Take the place of the driver."""

        def measured(*_: Any) -> dict[str, Any]:
            self.runs += 1
            return record(self.verdict, started=f"2026-11-21T10:{self.runs:02}:00.000+00:00", instance_id=None)

        monkeypatch.setitem(sys.modules, "podwright_benchmarks", SimpleNamespace(run=run or measured))

    def stored(self, name: str) -> dict[str, Any]:
        """An object below the prefix."""
        return json.loads(self.objects[f"prod/benchmarks/{name}"][0])

    def answer(self, command: Sequence[str]) -> str:
        """What a command prints."""
        self.commands.append(tuple(command))
        self.before(command)
        if why := self.broken(command):
            raise Failure(f"`{' '.join(command)}` ended with 254: {why}", "see the journal")
        options = dict(pairwise(command))
        match command[:3]:
            case ["aws", "s3api", "list-objects-v2"]:
                keys = sorted(key for key in self.objects if key.startswith(options["--prefix"]))
                return json.dumps({"Contents": [{"Key": key} for key in keys[:1]]}) if keys else ""
            case ["aws", "s3api", "get-object"]:
                text, tag = self.objects[options["--key"]]
                Path(command[-1]).write_text(text)
                return json.dumps({"ETag": tag})
            case ["aws", "s3api", "put-object"]:
                self._put(options)
                return "{}"
            case ["aws", "sagemaker", "describe-cluster-node"]:
                return json.dumps({"NodeDetails": {"InstanceStatus": {"Status": self.status}}})
            case ["scontrol", *_]:
                return self._slurm(command[1:])
        raise AssertionError(f"nobody answers {command}")

    def _slurm(self, words: Sequence[str]) -> str:
        """One Slurm node, whose state and reason `scontrol` shows and changes."""
        line = f"NodeName=ip-10-16-5-9 NodeAddr={ADDRESS} State={self.slurm['State']}"
        line += f" Reason={self.slurm['Reason']} [root@2026-11-21T10:00:00]" if self.slurm["Reason"] else ""
        match words:
            case ["show", "nodes", "--oneliner"]:
                return f"NodeName=other NodeAddr=10.0.0.1 State=IDLE\n{line}\n"
            case ["show", "node", "ip-10-16-5-9", "--oneliner"]:
                return line
            case ["update", "NodeName=ip-10-16-5-9", *changes]:
                self.slurm |= dict(change.split("=", 1) for change in changes)
                if self.slurm["State"] == "RESUME":
                    self.slurm |= {"State": "IDLE", "Reason": ""}
                return ""
        raise AssertionError(f"nobody answers scontrol {words}")

    def _put(self, options: dict[str, str]) -> None:
        existing = self.objects.get(options["--key"], ("", None))[1]
        if ("--if-none-match" in options and existing) or (
            "--if-match" in options and options["--if-match"] != existing
        ):
            raise Failure(
                "An error occurred (PreconditionFailed) when calling the PutObject operation", "see the journal"
            )
        self.objects[options["--key"]] = Path(options["--body"]).read_text(), f'"{next(self.tags)}"'


class BenchmarkNode(Node):
    """A node whose commands a `BenchmarkServices` answers."""

    def using(self, services: BenchmarkServices) -> "BenchmarkNode":
        """This node, with those services."""
        object.__setattr__(self, "services", services)
        return self

    def run(self, *command: str, timeout: float = 120, stdin: str | None = None) -> str:
        """What the services say."""
        return self.services.answer(command)  # pyrefly: ignore[missing-attribute]
