"""What an agent may write into a file: values, each where it stands, once, and only after it was shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_client import talk
from podwright.operations.agents.audit import FILE
from podwright.operations.agents.server import server_of
from podwright.operations.agents.session import Session

TEXT = """\
# Ours.
account: "111122223333"
region: us-west-2  # near the data
network: {zones: [usw2-az1, usw2-az2]}
storage: {lustre: {}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  # The big one.
  training:
    instance_type: ml.g5.12xlarge
    count: 4  # since May
governance:
  engine: kueue
  teams: {research: {quota: {training: 4}}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/dev.yaml").write_text(TEXT)
    return tmp_path


def proposal(*settings: tuple[str, Any], environment: str = "dev") -> tuple[str, dict[str, Any]]:
    listed = [{"path": path, "value": value} for path, value in settings]
    return "propose_edit", {"environment": environment, "settings": listed, "reason": "asked for"}


def written(environment: str = "dev") -> tuple[str, Any]:
    return "write_edit", lambda results: {
        "environment": environment,
        "edit_id": results[0].structured_content["edit_id"],
    }


def message(result: Any) -> str:
    assert result.is_error
    return result.structured_content["findings"][-1]["message"]


def test_a_proposal_writes_nothing_and_says_what_follows(project: Path) -> None:
    call = proposal(("instance_groups.training.count", 8), ("governance.teams.research.quota.training", 8))
    (result,) = talk(server_of(Session(project)), call)
    reply = result.structured_content
    assert reply is not None
    assert (project / "environments/dev.yaml").read_text() == TEXT
    assert [line for line in reply["diff"].splitlines() if line[0] in "+-"] == [
        "--- a/environments/dev.yaml",
        "+++ b/environments/dev.yaml",
        "-    count: 4  # since May",
        "+    count: 8  # since May",
        "-  teams: {research: {quota: {training: 4}}}",
        "+  teams: {research: {quota: {training: 8}}}",
    ]
    # Four more instances at the on-demand price of the catalog; everything else costs the same.
    before, after = (reply["cost"][when]["monthly"] for when in ("before", "after"))
    assert after > before > 0
    changed = {(row["team"], row["resource"]): (row["before"], row["after"]) for row in reply["quotas"]}
    old, new = changed["research", "nvidia.com/gpu"]
    assert (old["guaranteed"], new["guaranteed"]) == (16, 32)
    assert (reply["account"], reply["simulated"], reply["valid"]) == ("111122223333", False, True)


def test_what_is_written_keeps_every_other_byte(project: Path) -> None:
    call = proposal(("instance_groups.training.count", 8), ("storage.lustre.throughput", 250), ("tags", {"cost": "a"}))
    talk(server_of(Session(project)), call, written())
    expected = TEXT.replace("count: 4", "count: 8").replace("{lustre: {}}", "{lustre: {throughput: 250}}")
    assert (project / "environments/dev.yaml").read_text() == f"{expected}tags: {{cost: a}}\n"
    steps = [json.loads(line) for line in (project / FILE).read_text().splitlines()]
    assert [(step["tool"], step["step"]) for step in steps] == [("write_edit", "begun"), ("write_edit", "written")]


def test_an_edit_is_written_once(project: Path) -> None:
    _, first, second = talk(
        server_of(Session(project)), proposal(("instance_groups.training.count", 8)), written(), written()
    )
    assert not first.is_error
    assert "waits" in message(second)


def test_a_file_that_has_changed_is_not_overwritten(project: Path) -> None:
    server, file = server_of(Session(project)), project / "environments/dev.yaml"
    (proposed,) = talk(server, proposal(("instance_groups.training.count", 8)))
    file.write_text(TEXT + "# later\n")
    (result,) = talk(
        server, ("write_edit", {"environment": "dev", "edit_id": (proposed.structured_content or {})["edit_id"]})
    )
    assert "has changed since" in message(result)
    assert file.read_text() == TEXT + "# later\n"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("protection", "destroy"),
        ("account", "444455556666"),
        ("extends", ["/etc/passwd"]),
        ("approved_changes", [{"digest": "0" * 32, "reason": "yes"}]),
        ("acknowledge", [{"rule": "NET001", "reason": "no"}]),
        ("cluster.eks.deletion_protection", False),
        ("cluster", {"eks": {"deletion_protection": False}}),
        ("cluster.eks", {"admins": [{"protection": "destroy"}]}),
        ("name", "other"),
    ],
)
def test_what_protects_is_for_people(path: str, value: Any, project: Path) -> None:
    (result,) = talk(server_of(Session(project)), proposal((path, value)))
    assert "is for a person to edit" in message(result)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("instance_groups.training.count", None, "would be nothing"),
        ("instance_groups..count", 1, "is not a path of settings"),
        ("network.zones[0]", "usw2-az3", "is not a path of settings"),
        ("region.name.x", 1, "is not a mapping"),
    ],
)
def test_what_cannot_be_set_is_said(path: str, value: Any, words: str, project: Path) -> None:
    (result,) = talk(server_of(Session(project)), proposal((path, value)))
    assert words in message(result)
    assert (project / "environments/dev.yaml").read_text() == TEXT


def test_an_edit_with_errors_has_no_id(project: Path) -> None:
    (result,) = talk(
        server_of(Session(project)), proposal(("instance_groups.training.instance_type", "ml.g5.13xlarge"))
    )
    reply = result.structured_content
    assert reply is not None
    assert (reply["edit_id"], reply["valid"], reply["cost"]["after"]) == (None, False, None)
    error = next(finding for finding in reply["findings"]["after"] if finding["level"] == "error")
    assert error["place"] == {"file": "environments/dev.yaml", "line": 10, "column": 5}


def test_a_link_out_of_the_project_is_not_followed(project: Path) -> None:
    outside = project.parent / f"{project.name}-outside.yaml"
    outside.write_text(TEXT)
    (project / "environments/linked.yaml").symlink_to(outside)
    (result,) = talk(server_of(Session(project)), proposal(("region", "us-east-2"), environment="linked"))
    assert "link to a file outside" in message(result)


def test_a_file_that_others_extend_is_left_alone(project: Path) -> None:
    shared = project / "environments/shared/base.yaml"
    shared.parent.mkdir()
    shared.write_text(TEXT)
    own = project / "environments/dev.yaml"
    own.write_text("extends: shared/base.yaml\ninstance_groups:\n  training: {count: 6}\n")
    result, done = talk(server_of(Session(project)), proposal(("instance_groups.training.count", 8)), written())
    assert not done.is_error
    assert shared.read_text() == TEXT
    assert own.read_text() == "extends: shared/base.yaml\ninstance_groups:\n  training: {count: 8}\n"
    assert "+++ b/environments/dev.yaml" in (result.structured_content or {})["diff"]


def test_a_new_environment(project: Path) -> None:
    arguments = {"environment": "demo", "instance_type": "ml.g5.12xlarge", "count": 4, "reason": "asked for"}
    server = server_of(Session(project))
    proposed, done = talk(server, ("propose_environment", arguments), written("demo"))
    reply = proposed.structured_content
    assert reply is not None
    assert reply["simulated"] is True
    assert reply["cost"]["before"] is None
    assert not done.is_error
    text = (project / "environments/demo.yaml").read_text()
    assert "+    count: 4" in reply["diff"]
    assert "instance_type: ml.g5.12xlarge" in text
    (again,) = talk(server, ("propose_environment", arguments))
    assert "there is an environment demo" in message(again)


def test_a_new_environment_does_not_overwrite(project: Path) -> None:
    arguments = {"environment": "demo", "instance_type": "ml.g5.12xlarge", "count": 4, "reason": "asked for"}
    server = server_of(Session(project))
    (proposed,) = talk(server, ("propose_environment", arguments))
    (project / "environments/demo.yaml").write_text("mine")
    id = (proposed.structured_content or {})["edit_id"]
    (result,) = talk(server, ("write_edit", {"environment": "demo", "edit_id": id}))
    assert "exists since" in message(result)
    assert (project / "environments/demo.yaml").read_text() == "mine"
