"""Reports without a synthesis: the reviewed templates of the environments, as the assemblies that they came from."""

import copy
import json
from datetime import date
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from podwright.config.loading.load import LoadedEnvironment
from podwright.config.loading.project import Project
from podwright.operations.report.assembly import Assembly
from podwright.operations.report.page import document
from podwright.operations.report.scene import Scene
from podwright.planning.rules import findings

ROOT = Path(__file__).parents[2]
NAMES = Project.at(ROOT).names
DAY = date(2026, 11, 22)
_TEMPLATES = ROOT / "tests/snapshot/templates"
_VOID = {"meta", "br", "hr", "link"}
LONG = "a-name-of-sixty-three-letters-which-is-the-longest-that-hyperpod-t"
REASON = "Streams carry the ids of instances."
"""What the written assembly says of a wildcard of the nodes' role."""


@cache
def loaded(name: str) -> LoadedEnvironment:
    """An environment of the repository."""
    return Project.at(ROOT).load(name)


@cache
def assembly(name: str) -> Assembly:
    """Its reviewed templates. They hold no reasons for wildcards."""
    files = sorted((_TEMPLATES / name).glob("*.json"))
    return Assembly(name, {file.name.removesuffix(".json"): json.loads(file.read_text()) for file in files})


def changed(name: str) -> dict[str, Any]:
    """A copy of its templates, to change something in."""
    return copy.deepcopy(dict(assembly(name).stacks))


@cache
def report(name: str) -> dict[str, Any]:
    """The document of a report of it."""
    return document(scene(name))


def scene(name: str, **provided: Any) -> Scene:
    """It, looked at on a day, with what else is given."""
    loaded_environment = loaded(name)
    return Scene(
        loaded_environment,
        findings(loaded_environment.environment, loaded_environment.source),
        assembly(name),
        DAY,
        **provided,
    )


def write_assembly(folder: Path, name: str) -> Path:
    """Its templates as `cdk synth` lays them down, the stage in a folder of its own."""
    stage = folder / f"assembly-{name}"
    stage.mkdir(parents=True)
    artifacts: dict[str, Any] = {}
    for stack, template in assembly(name).stacks.items():
        if stack.endswith(".nested"):
            asset = {"files": {"0": {"source": {"path": f"{stack}.template.json"}}}}
            (stage / "list.assets.json").write_text(json.dumps(asset))
            (stage / f"{stack}.template.json").write_text(json.dumps(template))
            artifacts["list"] = {"type": "cdk:asset-manifest", "properties": {"file": "list.assets.json"}}
            continue
        (stage / f"{stack}.template.json").write_text(json.dumps(template))
        artifacts[stack] = {
            "type": "aws:cloudformation:stack",
            "displayName": f"{name}/{stack}",
            "properties": {"templateFile": f"{stack}.template.json"},
        }
    logs = f"arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/Clusters/{name}/*"
    key = f"AwsSolutions::AwsSolutions-IAM5[Resource::{logs}]"
    entry = {"type": "aws:cdk:acknowledged-rules", "data": {key: REASON}}
    (stage / "cluster.metadata.json").write_text(
        json.dumps({f"/{name}/cluster/Default/ExecutionRole/Resource": [entry]})
    )
    artifacts["cluster"]["additionalMetadataFile"] = "cluster.metadata.json"
    (stage / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    location = {"type": "cdk:cloud-assembly", "properties": {"directoryName": stage.name}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {stage.name: location}}))
    return folder


def _group(number: int, zones: list[str], **provided: Any) -> dict[str, Any]:
    made = {
        "name": f"{LONG}-{number}" if number % 2 else f"g{number}",
        "types": ["ml.p6e-gb200.36xlarge", "ml.trn2.48xlarge"] if number % 3 else ["ml.p5.48xlarge"],
        "count": 6758 if number % 5 == 0 else number,
        "min": 0 if number % 4 == 0 else None,
        "zones": zones,
        "capacity": ("on demand", "Spot", "account team", f"plan {LONG}")[number % 4],
        "plan": LONG if number % 4 == 3 else None,
        "accelerator": "RTX PRO 6000 Blackwell",
        "accelerators": 8,
        "efa": 32,
        "efa_only": True,
        "checks": [],
        "slurm": f"compute {LONG}",
        "restricted": True,
    }
    return made | provided


def large(zones: int, groups: int) -> dict[str, Any]:
    """An architecture of so many zones and groups, with the longest names that there may be."""
    names = [f"usgw1-lax{number}-az{number}" for number in range(zones)]
    subnets = [
        {"role": role, "further": False, "range": f"100.127.{index}.0/24", "nat_gateways": 1, "usable": 65531} | taken
        for index, (role, taken) in enumerate(
            (
                ("public", {"taken": None, "replacing": None, "sums": ""}),
                ("control plane", {"taken": 250, "replacing": None, "sums": "x"}),
                ("nodes", {"taken": 65000, "replacing": 70000, "sums": "x"}),
            )
        )
    ]
    moments = [("2027-01-04", "2027-02-01"), ("2027-02-03", "2027-02-04"), ("2027-08-01", "2028-01-29")]
    windows = [
        {"start": f"{start}T11:30:00+00:00", "end": f"{end}T11:30:00+00:00", "zone": "z", "count": 64, "status": ""}
        for start, end in moments
    ]
    system = {"kind": "FSx for Lustre, adopted", "facts": [LONG, LONG, LONG], "repositories": [f"/x ⇄ s3://{LONG}"]}
    return {
        "account": "111122223333",
        "region": "us-west-2",
        "vpc": {"name": "x", "existing": False, "cidrs": ["10.0.0.0/16"] * 5, "nat_gateways": 0, "flow_logs": True},
        "zones": [{"id": name, "subnets": subnets} for name in names],
        "groups": [_group(number, names if number % 7 == 6 else [names[number % zones]]) for number in range(groups)],
        "file_systems": [system | {"name": LONG, "zones": [names[0]]}, system | {"name": "db", "zones": []}],
        "control_plane": {
            "kind": "EKS 1.34",
            "facts": ["API private"],
            "parts": [f"{LONG}{LONG}{LONG}", *["add-on"] * 40],
        },
        "endpoints": {"interface": [f"service-{number}" for number in range(30)], "gateway": ["s3"]},
        "regional": [{"kind": "S3 bucket", "count": 2, "names": [LONG, LONG]}],
        "plans": [
            {"name": LONG, "zone": "z", "state": "exists", "needs": [LONG], "windows": windows},
            {"name": "wanted", "zone": "z", "state": "purchase", "needs": [], "windows": [], "wish": {"days": 28}},
        ],
        "nodes": 10,
        "accelerators": {"H200": 8},
        "name": LONG,
    }


class Tree(HTMLParser):
    """A page, read strictly: every element is closed in its order, and attributes are kept."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.declared: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_decl(self, decl: str) -> None:
        self.declared.append(decl)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """What people read."""
        return " ".join("".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]
