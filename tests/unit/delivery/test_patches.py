"""What `podwright diff` says of jobs' patches: exactly what they change on the objects that `submit` hands over."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_environment import with_jobs
from podwright.operations import cli
from podwright.operations.effects.cost import Costs
from podwright.operations.effects.document import ChangeSet
from podwright.operations.effects.patches import lines, patched_fields
from rule_pages import base

PATCH = """\
spec:
  backoffLimit: 7
  template:
    spec:
      hostname: alone
      containers:
      - name: main
        workingDir: /work
        env:
        - {name: PYTHONUNBUFFERED, $patch: delete}
"""
JOB: dict[str, Any] = {"kind": "job", "command": ["a"], "patch": PATCH}


def test_each_field_is_said_with_what_it_was_and_what_it_is() -> None:
    environment = with_jobs({"plain": {"kind": "job", "command": ["a"]}, "job": JOB})
    fields = {(field.job, field.path): (field.before, field.after) for field in patched_fields(environment)}
    inside = "spec.template.spec.containers[main]"
    assert fields == {
        ("job", "spec.backoffLimit"): (3, 7),
        ("job", "spec.template.spec.hostname"): (None, "alone"),
        ("job", f"{inside}.workingDir"): (None, "/work"),
        ("job", f"{inside}.env[PYTHONUNBUFFERED].name"): ("PYTHONUNBUFFERED", None),
        ("job", f"{inside}.env[PYTHONUNBUFFERED].value"): ("1", None),
    }
    output = list(lines(patched_fields(environment)))
    assert "      spec.backoffLimit: 3 → 7" in output
    assert '      spec.template.spec.hostname: absent → "alone"' in output


def test_without_patches_nothing_is_said() -> None:
    environment = with_jobs({"job": {"kind": "job", "command": ["a"]}})
    assert list(lines(patched_fields(environment))) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_diff_says_it(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = base().data | {"jobs": {"job": JOB | {"group": "h200", "image": "example.com/a:1"}}}
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(json.dumps(data))
    command = "podwright.operations.effects.command"
    cdk = SimpleNamespace(account=None, assembly=tmp_path, environment="prod")
    monkeypatch.setattr(f"{command}.cdk_for", lambda args, loaded: cdk)
    nothing = ChangeSet("prod", "111122223333", "us-west-2", [], [], Costs(0, 0, (), False, 0), [], False, [])
    monkeypatch.setattr(f"{command}.change_set", lambda *provided: nothing)
    more = ["--json"] if as_json else []
    assert cli.main(["diff", "prod", "--project", str(tmp_path), "--assembly", str(tmp_path), *more]) == 0
    printed = capsys.readouterr().out
    if as_json:
        first, *_ = json.loads(printed)["patches"]
        assert first == {"job": "job", "path": "spec.backoffLimit", "before": 3, "after": 7}
    else:
        assert "prod: no changes\n\npatches of jobs" in printed
        assert "spec.backoffLimit: 3 → 7" in printed
