"""The page of a report: one file without script and network, in order, safe from what files say, always the same."""

import copy
import itertools
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from benchmark_services import measurement, record
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import Node
from podwright.operations.cli import main
from podwright.operations.report import live as asked
from podwright.operations.report.page import SECTIONS, SHEET, document, page
from podwright.operations.report.sections import work
from podwright.planning.node.benchmark_results import BenchmarkResults
from report_account import NAMES, ROOT, Tree, report, scene, write_assembly

HOSTILE = """</style></title><script>alert(1)</script><img src=x onerror=alert(1)>"' onload="x&amp;"""
CHANGES = json.loads((Path(__file__).with_name("report_changes.json")).read_text())
"""What `podwright diff prod --json` says of a file system with EFA, fewer nodes and a newer Kubernetes."""


def live(**provided: Any) -> dict[str, Any]:
    """A look in the form of `podwright status --watch --json`."""
    actual = {
        "at": "2026-11-22T10:00:00+00:00",
        "environment": "prod",
        "sandbox": None,
        "cluster": {"name": "prod", "status": "InService", "message": ""},
        "groups": [{"name": "h200", "types": ["ml.p5en.48xlarge"], "current": 15, "target": 16, "status": "Degraded"}],
        "unhealthy": [
            {"id": "i-1", "group": "h200", "status": "Failure", "message": "", "health": "x"}
            | {"fault": "Xid", "quarantine": ""}
        ],
        "events": [{"at": "2026-11-22T09:58:00+00:00", "level": "Warn", "about": "i-1", "text": "is being replaced"}],
        "teams": [
            {"team": "research", "used": {"nvidia.com/gpu": 80}, "borrowed": {}, "running": 3, "waiting": 2},
            {"team": "product", "used": None, "borrowed": None, "running": None, "waiting": None},
        ],
        "plans": [
            {
                "name": "q1",
                "status": "Active",
                "from": "",
                "until": "2027-02-01T11:30:00+00:00",
                "total": 16,
                "in_use": 15,
                "unhealthy": 1,
            }
        ],
        "unseen": {"queues": "no way to it from here"},
    }
    return actual | provided


def whole() -> dict[str, Any]:
    """A document with everything that a report can show."""
    runs = [
        BenchmarkResults.model_validate(record("fail", [measurement("fail", 500.0)])),
        BenchmarkResults.model_validate(record("pass", [measurement()], instance_id="i-2")),
    ]
    return document(scene("prod", live=live(), benchmarks=runs, changes=copy.deepcopy(CHANGES)))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_sound_and_complete(name: str) -> None:
    actual = report(name)
    text = page(actual)
    tree = Tree(text)
    assert tree.declared == ["doctype html"]
    ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [link["href"] or "" for link in tree.of("a")]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    levels = [int(tag[1]) for tag, _ in tree.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert [len(tree.of(landmark)) for landmark in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert all(section["aria-labelledby"] in ids for section in tree.of("section"))
    assert all(svg.get("aria-hidden") or svg.get("aria-label") or svg.get("aria-labelledby") for svg in tree.of("svg"))
    assert all(header.get("scope") in ("col", "row") for header in tree.of("th"))
    assert len(tree.of("caption")) == len(tree.of("table"))
    for group in actual["architecture"]["groups"]:
        assert group["name"] in tree.text


def test_a_page_asks_nobody_and_runs_nothing() -> None:
    text = page(whole())
    tree = Tree(text)
    digest = b64encode(sha256(SHEET.encode()).digest()).decode()
    policy = next(meta for meta in tree.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert text.count("<style>") == 1
    assert f"<style>{SHEET}</style>" in text
    names = {tag for tag, _ in tree.elements}
    assert not names & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "image",
        "use",
        "foreignobject",
    }
    attributes = {name for _, provided in tree.elements for name in provided}
    assert not {name for name in attributes if name.startswith("on")}
    assert "style" not in attributes, "the policy would drop it"
    assert not re.search(r"@import|url\(", SHEET)
    sources = {
        value for _, provided in tree.elements for name, value in provided.items() if name in ("src", "href", "srcset")
    }
    assert all((source or "").startswith("#") for source in sources)


def poisoned(value: Any, depth: int = 0) -> Any:
    """The same document with hostile text at the end of every text that comes from a file or from AWS."""
    if isinstance(value, dict):
        retained = (
            "sign",
            "action",
            "effect",
            "level",
            "outcome",
            "picture",
            "capacity",
            "start",
            "end",
            "role",
            "day",
            "at",
            "from",
            "until",
            "state",
            "engine",
            "verdict",
            "severity",
        )
        return {key: item if key in retained else poisoned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, depth + 1) for item in value]
    return value + HOSTILE if isinstance(value, str) and depth > 0 else value


def test_no_text_of_a_file_or_of_aws_becomes_markup() -> None:
    actual = whole()
    benign = {tag for tag, _ in Tree(page(actual)).elements}
    ranges = {zone["id"]: [row["range"] for row in zone["subnets"]] for zone in actual["architecture"]["zones"]}
    assert ranges
    hostile = poisoned(actual)
    hostile["benchmarks"]["groups"] = {f"h200{HOSTILE}": "gate"}
    hostile["environment"] = f"prod{HOSTILE}"
    tree = Tree(page(hostile))
    assert {tag for tag, _ in tree.elements} <= benign
    assert {tag for tag, _ in tree.elements} >= {"table", "svg", "details"}
    assert not {name for _, provided in tree.elements for name in provided if name.startswith("on")}
    assert tree.text.count("<script>alert(1)</script>") > 100


def test_the_same_file_and_day_give_the_same_bytes() -> None:
    again = document(scene("prod"))
    assert page(again) == page(report("prod"))
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(report("prod")))


def test_sections_that_nobody_asked_for_are_named_at_the_end() -> None:
    text = Tree(page(report("prod"))).text
    assert "podwright report prod --live" in text
    assert 'id="changes"' not in page(report("prod"))
    tree = Tree(page(whole()))
    # Work has tests of its own.
    assert [section["id"] for section in tree.of("section")] == [each.ID for each in SECTIONS if each is not work]
    assert "with --changes" not in tree.text


def test_changes_are_shown_as_their_document_has_them() -> None:
    text = Tree(page(whole())).text
    for words in (
        "would change.",
        "needs approval",
        "CHG001 storage/Lustrelustre6B43295E: AWS::FSx::FileSystem is replaced by an empty one",
        "the files on it, which stays outside the stack",
        "h200: 16, every node gets a fresh root volume",
        "20 to 25 minutes",
        "removes nodes",
        "HyperPod chooses the nodes that go",
        "(follows from storage/Lustrelustre6B43295E)",
        "s3:GetObject on * wide",
        "the same; no price is known of burst: ml.p5.48xlarge, node_volume",
    ):
        assert words in text
    for changes, words in (
        ({"stacks": []}, "The deployed stacks are as the file says."),
        ({"problem": "no credentials"}, "Not known: no credentials"),
    ):
        actual = document(scene("prod", changes=changes))
        assert words in Tree(page(actual)).text


def test_a_look_at_the_cluster_and_its_benchmarks() -> None:
    text = Tree(page(whole())).text
    for words in ("Degraded", "80 gpu", "not seen", "is being replaced", "no way to it from here", "500.0 is fail",
                  "Latest results of 2 nodes", "Xid"):  # fmt: skip
        assert words in text
    deleted = document(scene("prod", live=live(cluster=None)))
    assert "There was no cluster at 22 November 2026, 10:00 UTC" in Tree(page(deleted)).text


def test_findings_quotas_cost_and_permissions_are_those_of_the_commands() -> None:
    actual = report("governed-hundred")
    text = Tree(page(actual)).text
    assert actual["findings"]["counts"] == {"info": 1, "accepted": 1}
    assert "ten more p5 nodes are on order" in text
    assert "560 of 480 GPU guaranteed to 2 teams; that is 80 more than there are" in text
    assert "at least $2,991,859" in text
    assert actual["cost"]["total"]["monthly"] == pytest.approx(2_991_859, abs=1)
    assert "No role and no resource policy trusts another account." in text
    other = copy.deepcopy(actual)
    other["permissions"]["cross_account"] = [{"what": "Own", "type": "T", "who": "123456789012", "actions": ["a:B"]}]
    assert "Lets another account in" in Tree(page(other)).text


def test_windows_of_plans_are_asked_of_sagemaker_and_what_it_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account("111122223333", "us-west-2", "http://localhost:9", {})
    part = {"start": "2027-01-04T11:30:00+00:00", "end": "2027-02-01T11:30:00+00:00", "zone": "usw2-az2", "count": 16}
    part |= {"status": "Scheduled", "instance_type": "ml.p5en.48xlarge"}
    waiting = part | {"start": None, "end": None}
    plans = [{"plan": "h200-q1", "aws": {"parts": [part, waiting]}}, {"plan": "wanted", "aws": None}]
    monkeypatch.setattr(asked, "account_plans", lambda *_: {"plans": plans})
    unseen: dict[str, str] = {}
    windows = asked.plan_windows(scene("prod"), account, unseen)
    assert {name: [item["count"] for item in parts] for name, parts in windows.items()} == {"h200-q1": [16]}
    actual = page(document(scene("prod", windows=windows)))
    assert "16 × 4 Jan to 1 Feb 2027" in Tree(actual).text

    def refused(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeTrainingPlan")

    monkeypatch.setattr(asked, "account_plans", refused)
    assert asked.plan_windows(scene("prod"), account, unseen) == {}
    assert unseen == {"plan windows": "AccessDenied on DescribeTrainingPlan"}


def test_what_replaced_nodes_measured_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account("111122223333", "us-west-2", "http://localhost:9", {})
    runs = [BenchmarkResults.model_validate(record("pass", instance_id=node)) for node in ("i-gone", "i-here")]
    monkeypatch.setattr(asked, "published", lambda *_: runs)
    monkeypatch.setattr(asked, "nodes", lambda *_: [Node("i-here", "h200", "ml.p5en.48xlarge", "Running")])
    assert asked.benchmarks(scene("prod").environment, account) == runs[1:]


def test_changes_that_nobody_can_say_are_named_with_the_reason() -> None:
    """No credentials are within reach of a test."""
    actual = asked.asked_changes(ROOT, "prod", sandbox=False)
    assert actual["problem"].startswith("podwright diff prod --json: ")
    assert len(actual["problem"]) > len("podwright diff prod --json: ")


def run(*arguments: str) -> int:
    return main(["report", *arguments, "--project", str(ROOT)])


def test_the_command_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_assembly(tmp_path / "cdk.out", "prod")
    (tmp_path / "changes.json").write_text(json.dumps(CHANGES))
    results = tmp_path / "node.json"
    results.write_text(BenchmarkResults.model_validate(record("pass", [measurement()])).model_dump_json())
    monkeypatch.chdir(tmp_path)
    more = ("--changes", "changes.json", "--benchmarks", "node.json", "--out", "report.html")
    assert run("prod", "--assembly", str(folder), "--date", "2026-11-22", *more) == 0
    text = (tmp_path / "report.html").read_text()
    assert "as of 22 November 2026" in text
    assert "needs approval" in text
    assert "Latest results of 1 node." in text


def test_the_command_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_assembly(tmp_path / "cdk.out", "prod"))
    svg = tmp_path / "prod.svg"
    assert run("prod", "--assembly", folder, "--drawing", "--out", str(svg)) == 0
    assert svg.read_text() == (ROOT / "docs/prod.svg").read_text(), "whatever way the templates come"
    capsys.readouterr()
    assert run("prod", "--assembly", folder, "--json", "--date", "2026-11-22") == 0
    actual = json.loads(capsys.readouterr().out)
    assert (actual["schema"], actual["environment"], actual["day"]) == (1, "prod", "2026-11-22")
    assert actual["permissions"]["wildcards"] > actual["permissions"]["without_reason"] > 0
    assert actual["architecture"] == json.loads(json.dumps(report("prod")["architecture"]))


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("prod", "--assembly", "nowhere"), 2, "manifest.json cannot be read"),
        (("prod", "--changes", "nowhere.json"), 2, "nowhere.json cannot be read"),
        (("prod", "--changes", "README.md"), 2, "README.md is not JSON"),
        (("prod", "--changes", "cdk.json"), 2, "it has no `stacks`"),
        # The hint would have the README written over.
        (("prod", "--changes", "README.md"), 2, "--out changes.json"),
        (("prod", "--benchmarks", "nowhere.json"), 2, "nowhere.json cannot be read"),
        (("prod", "--out", "README.md/report.html"), 2, "cannot be written"),
        (("nothing",), 2, "there is no environment"),
    ],
)
def test_what_cannot_be_read_or_written_is_named(
    arguments: tuple[str, ...], code: int, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    provided = () if "--assembly" in arguments else ("--assembly", str(write_assembly(tmp_path, "prod")))
    assert run(*arguments, *provided) == code
    assert output in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        run("prod", "--date", "tomorrow")
    assert stop.value.code == 2


def test_changes_of_another_environment_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "changes.json"
    file.write_text(json.dumps(CHANGES | {"environment": "dev"}))
    folder = str(write_assembly(tmp_path / "cdk.out", "prod"))
    assert run("prod", "--changes", str(file), "--assembly", folder) == 2
    assert "is of dev, not of prod" in capsys.readouterr().err


def test_an_environment_with_errors_has_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broken.yaml"
    text = (ROOT / "environments/prod.yaml").read_text().replace("name: prod", "name: broken")
    file.write_text(text.replace("cidr: 10.16.0.0/16", "cidr: 10.16.0.0/24"))
    assert run(str(file)) == 1
    assert "so what it would build is not sure" in capsys.readouterr().err


def test_jobs_take_from_the_fewest_pods_to_the_most() -> None:
    rows = {row["name"]: row for row in report("prod")["jobs"]["jobs"]}
    assert (rows["pretrain"]["pods"], rows["pretrain"]["accelerators_per_pod"]) == ([8, 16], 8)
    assert (rows["fine-tune"]["pods"], rows["fine-tune"]["team"]) == ([2, 2], "product")
    assert "64 to 128" in Tree(page(report("prod"))).text


def test_alerts_say_whom_they_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as the command prints."""
    assert main(["alerts", "prod", "--json", "--project", str(ROOT)]) == 0
    alerts = report("prod")["alerts"]
    assert alerts["alerts"] == json.loads(capsys.readouterr().out)["alerts"]
    assert alerts["told"] == ["oncall@example.com"]
    text = Tree(page(report("prod"))).text
    assert "told: oncall@example.com" in text
    assert all(row["name"] in text for row in alerts["alerts"])
    assert report("two-teams-slurm")["alerts"] is None
