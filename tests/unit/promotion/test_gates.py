"""Gates without a cluster: what applies, how they wait, what they say, and what they refuse."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from gate_account import FILE, Clock, context, loaded
from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.gates import Gates
from podwright.operations.cli import main
from podwright.operations.gates import command, metrics
from podwright.operations.gates import run as gate_run
from podwright.operations.gates.evidence import Keeper, evidence_of
from podwright.operations.gates.gate import Context, Observation, Result
from podwright.operations.gates.jobs import group_for, state_of, submitted, team_for
from podwright.operations.kubernetes import in_vpc
from podwright.operations.kubernetes.kubectl import Refused
from podwright.planning.delivery.gate_evidence import evidence_schema
from podwright.planning.delivery.gate_table import gate_actions, gate_table, why_not

ROOT = Path(__file__).parents[3]
AWS = SimpleNamespace(endpoint=None, id="111122223333", region="us-west-2")


def timed(name: Any = "cluster", minutes: float = 30, environment: Any = None, account: Any = AWS) -> Context:
    clock = Clock()
    return context(name, account, environment, minutes, clock=clock, sleep=clock.sleep)


def observations_of(*observed: tuple[str, bool]) -> Callable[[], Observation]:
    """Looks that see one thing after the other, and the last forever."""
    left = list(observed)

    def observe() -> Observation:
        actual = Observation(next_step="fix it")
        output, ok = left.pop(0) if len(left) > 1 else left[0]
        actual.check("group h200", "16 of 16", output, ok)
        return actual

    return observe


def test_waits_until_it_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    run = timed()
    result = run.wait(observations_of(("14 of 16", False), ("14 of 16", False), ("16 of 16", True)))
    assert (result.passed, result.reason) == (True, "group h200 16 of 16")
    assert run.elapsed == 30
    assert capsys.readouterr().err.count("14 of 16") == 1, "what stays the same is said once"


def test_a_time_out_is_an_answer() -> None:
    result = timed().wait(observations_of(("14 of 16", False)))
    assert (result.passed, result.reason) == (False, "not reached in 30 min: group h200 14 of 16")
    assert result.next_step == "fix it"


def test_what_waiting_does_not_fix_ends_at_once() -> None:
    run = timed()

    def observe() -> Observation:
        actual = Observation(final="the cluster has failed")
        actual.check("prod", "InService", "Failed", False)
        return actual

    assert run.wait(observe).reason == "prod Failed; the cluster has failed"
    assert run.elapsed == 0


def test_a_refusal_in_between_is_lived_through_and_three_are_not() -> None:
    answers: list[Any] = [Refused("connection refused"), None, Refused("a"), Refused("b"), Refused("c")]

    def observe() -> Observation:
        answer = answers.pop(0)
        if answer:
            raise answer
        actual = Observation()
        actual.check("group h200", "2", "1", False)
        return actual

    run = timed()
    with pytest.raises(Refused, match=r"^c$"):
        run.wait(observe)
    assert run.elapsed == 60, "there is a pause after each of the four looks before"


@pytest.mark.parametrize(
    ("status", "steps"),
    [
        (None, ["apply", "delete"]),
        ({"active": 1}, ["delete"]),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, ["delete", "apply", "delete"]),
    ],
    ids=["none is there", "one still runs", "one has ended"],
)
def test_a_job_is_submitted_resumed_or_replaced_and_always_taken_away(status: Any, steps: list[str]) -> None:
    from podwright.operations.gates.canary import own_job

    run, made = timed("canary"), list[str]()
    run.__dict__["kubectl"] = SimpleNamespace(
        items=lambda *_: [] if status is None else [{"status": status}],
        apply=lambda _: made.append("apply"),
        delete=lambda _: made.append("delete"),
    )
    with submitted(run, "canary", own_job(run)):
        pass
    assert made == steps


@pytest.mark.parametrize(("endpoint", "simulated"), [(None, False), ("http://localhost:4566", True)])
def test_evidence_says_whether_it_is_of_the_sandbox(endpoint: str | None, simulated: bool) -> None:
    account = SimpleNamespace(endpoint=endpoint, id="111122223333", region="us-west-2")
    assert evidence_of(timed(account=account), "passed", Result(True, "")).simulated is simulated


def test_what_applies_follows_from_the_file() -> None:
    types, whole = catalog(), loaded().environment
    assert {name: why_not(whole, types, name) for name in gate_table()} == {
        **dict.fromkeys(gate_table(), ""),
        "metrics": "the environment measures nothing",
    }
    bare = loaded(FILE.replace("ml.p5en.48xlarge", "ml.m5.4xlarge"), governance={}, jobs={}, gates={}).environment
    reasons = {name: why_not(bare, types, name) for name in gate_table()}
    assert reasons["quotas"] == "the environment has no teams"
    assert reasons["verdicts"] == "no group measures its nodes"
    assert reasons["nccl"] == "no group has NVIDIA GPUs, EFA and two nodes"
    imageless = loaded(gates={"canary": {}}).environment
    assert "set gates.nccl.image" in why_not(imageless, types, "nccl")
    skipped = loaded(gates={"skip": {"cluster": "it is torn down tonight"}}).environment
    assert why_not(skipped, types, "cluster") == "gates.skip.cluster says: it is torn down tonight"


def test_a_role_gets_what_the_gates_need() -> None:
    eks, slurm = loaded().environment, loaded_example("slurm-classic").environment
    assert "codebuild:StartBuild" in gate_actions(eks)
    assert {"ssm:StartSession", "s3:PutObject"} <= set(gate_actions(slurm))
    assert "codebuild:StartBuild" not in gate_actions(slurm)
    assert set(gate_actions(eks, ["verdicts"])) < set(gate_actions(eks))
    assert not [name for name in gate_actions(eks) if not re.fullmatch(r"[a-z0-9-]+:[A-Z][A-Za-z]+", name)]


def loaded_example(name: str) -> Any:
    from podwright.config.loading.load import load_environment

    return load_environment(ROOT / f"environments/{name}.yaml")


def test_jobs_take_the_quota_of_the_team_with_most_of_the_group() -> None:
    environment = loaded_example("eight-and-eight").environment
    assert team_for(environment, catalog(), "training") in environment.governance.teams
    text = FILE.replace("{research: {quota: {h200: 2}}}", "{small: {quota: {h200: 0}}, large: {quota: {h200: 2}}}")
    assert team_for(loaded(text, jobs={}, gates={}).environment, catalog(), "h200") == "large"
    assert team_for(loaded(governance={}, jobs={}, gates={}).environment, catalog(), "h200") is None


def test_jobs_go_to_the_first_group_with_accelerators_else_past_the_system_group() -> None:
    groups = "instance_groups:\n  system: {instance_type: ml.m5.4xlarge, count: 2}\n"
    counts = {"idle": ("ml.p5.48xlarge", 0), "work": ("ml.m5.8xlarge", 1), "fast": ("ml.g5.12xlarge", 1)}
    chosen = []
    for names in (counts, ("idle", "work"), ("idle",)):
        rows = [f"  {name}: {{instance_type: {counts[name][0]}, count: {counts[name][1]}}}\n" for name in names]
        text = f"{FILE.partition('instance_groups:')[0]}{groups}{''.join(rows)}"
        environment = loaded(text, governance={}, jobs={}, gates={}).environment
        chosen.append(group_for(environment, catalog()))
    assert chosen == ["fast", "work", "system"]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "waiting"),
        ({"active": 2}, "running"),
        ({"conditions": [{"type": "Running", "status": "True"}], "startTime": "x"}, "running"),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, "succeeded"),
        ({"conditions": [{"type": "Succeeded", "status": "True"}]}, "succeeded"),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, "waiting"),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "failed"),
        ({"jobStatus": "SUCCEEDED"}, "succeeded"),
    ],
)
def test_the_state_of_jobs_of_all_kinds(status: Any, state: str) -> None:
    assert state_of({"status": status})[0] == state
    assert state_of(None)[0] == "absent"


def test_a_job_that_cannot_be_taken_away_is_told() -> None:
    from podwright.operations.gates.canary import own_job

    run = timed("canary")

    def refuse(*_: Any, **__: Any) -> str:
        raise Refused("forbidden")

    run.__dict__["kubectl"] = SimpleNamespace(items=lambda *_: [], apply=lambda _: "", delete=refuse)
    with (
        pytest.raises(CommandError, match="could not be taken away: forbidden"),
        submitted(run, "canary", own_job(run)),
    ):
        pass


def test_evidence_is_as_its_schema_says_and_holds_no_secret(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs/gate.schema.json"
    if request.config.getoption("--update-snapshots"):
        path.write_text(json.dumps(evidence_schema(), indent=2) + "\n")
    assert json.loads(path.read_text()) == evidence_schema()
    jsonschema.Draft202012Validator.check_schema(evidence_schema())
    account = SimpleNamespace(endpoint=None, id="111122223333", region="us-west-2")
    run = timed("canary", account=account)
    answers = {"log": "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789", "at": datetime.now(UTC)}
    evidence = evidence_of(run, "failed", Result(False, "password=hunter2hunter2", next_step="look", answers=answers))
    location = Keeper(loaded().environment, account, tmp_path, str(tmp_path / "kept")).keep(evidence)  # pyrefly: ignore
    text = Path(location).read_text()
    jsonschema.Draft202012Validator(evidence_schema()).validate(json.loads(text))
    assert "hunter2" not in text
    assert "hf_abcdef" not in text
    assert json.loads(text)["asked"]["elastic"] == "grows"


def test_the_evidence_of_each_gates_last_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = SimpleNamespace(endpoint=None, id="111122223333", region="us-west-2")
    folder = str(tmp_path / "kept")
    keeper = Keeper(Project.at(ROOT).load("dev").environment, account, tmp_path, folder)  # pyrefly: ignore
    asked = ["gate", "dev", "--last", "--evidence", folder, "--project", str(ROOT)]
    monkeypatch.setattr(command, "account_for", lambda *_: account)
    assert main(asked) == 1
    assert "no gate of dev has left evidence" in capsys.readouterr().err
    for gate, hour, verdict in (("canary", 9, "failed"), ("quotas", 8, "passed"), ("canary", 10, "passed")):
        evidence = evidence_of(timed(gate, account=account), verdict, Result(True, f"at {hour}"))
        keeper.keep(evidence.model_copy(update={"begun": datetime(2026, 12, 1, hour, tzinfo=UTC)}))
    reasons = [(evidence.gate, evidence.reason) for evidence, _ in keeper.latest()]
    assert reasons == [("quotas", "at 8"), ("canary", "at 10")]
    assert main(asked) == 0
    assert "run at 2026-12-01 10:00 UTC" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert [row["verdict"] for row in json.loads(capsys.readouterr().out)] == ["passed", "passed"]
    (file,) = (tmp_path / "kept/dev/quotas").iterdir()
    file.write_text("{}")
    assert main(asked) == 1
    assert "is not evidence of a gate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "there is no gate nope\n    → there are cluster, verdicts, quotas, nccl, canary, metrics"),
        (["--timeout", "0"], "--timeout is 0 s; allowed"),
        (["--timeout", "2d"], "--timeout is 172800 s; allowed"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "dev", *arguments, "--project", str(ROOT)]) == 2
    assert words in capsys.readouterr().err


def test_a_place_for_evidence_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for location, words in (("s3://", "names no bucket"), (str(file), "is a file")):
        with pytest.raises(CommandError, match=words) as stop:
            Keeper(loaded().environment, AWS, tmp_path, location)  # pyrefly: ignore
        assert stop.value.code == 2


def test_the_list_says_what_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "slurm-classic", "--list", "--json", "--project", str(ROOT)]) == 0
    rows = {row["gate"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(gate_table())
    assert rows["cluster"] == {**rows["cluster"], "minutes": 60, "skipped": ""}


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Runs the command with gates that answer what they are told to."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/gated.yaml").write_text(FILE)
    account = SimpleNamespace(endpoint=None, id="123456789012", region="us-west-2")
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    monkeypatch.setattr(command, "stop_on_errors", lambda _: None)

    def drive(answers: dict[str, Any], *arguments: str) -> int:
        def run(name: str) -> Any:
            answer = answers.get(name, Result(True, "it is so"))
            if isinstance(answer, BaseException):
                raise answer
            return answer

        modules = {f".{name}": SimpleNamespace(run=lambda _, name=name: run(name)) for name in gate_table()}
        monkeypatch.setattr(gate_run, "import_module", lambda name, _: modules[name])
        return main(["gate", "gated", *arguments, "--project", str(tmp_path), "--evidence", str(tmp_path / "kept")])

    return drive


def test_gates_run_in_order_and_stop_at_the_first_that_fails(
    driven: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert driven({}) == 0
    messages = capsys.readouterr().out
    assert [line.split()[1] for line in messages.splitlines() if line[:1] != " "] == list(gate_table())
    assert "skipped  metrics   the environment measures nothing" in messages
    bad = {"quotas": Result(False, "no quota", next_step="look there"), "nccl": CommandError("no way", "open one")}
    assert driven(bad) == 1
    messages = capsys.readouterr().out
    assert "FAILED   quotas    no quota" in messages
    assert "→ look there" in messages
    assert "not run: nccl, canary, metrics" in messages
    assert driven(bad, "--keep-going", "--json") == 1
    actual = json.loads(capsys.readouterr().out)
    assert [item["verdict"] for item in actual] == ["passed", "passed", "failed", "failed", "passed", "skipped"]
    assert (actual[3]["reason"], actual[3]["next_step"]) == ("no way", "open one")
    assert all(Path(item["evidence"]).is_file() for item in actual)


def test_a_refusal_becomes_an_answer(driven: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    from botocore.exceptions import ClientError, EndpointConnectionError

    denied = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "ListClusterNodes")
    assert driven({"cluster": denied}) == 1
    messages = capsys.readouterr().out
    assert "AWS refuses ListClusterNodes" in messages
    assert "you need sagemaker:DescribeCluster, sagemaker:ListClusterNodes" in messages
    assert driven({"cluster": EndpointConnectionError(endpoint_url="https://x")}) == 1
    assert "AWS cannot be asked" in capsys.readouterr().out
    assert driven({"cluster": Refused("trace\nUnauthorized")}) == 1
    assert "Kubernetes cannot be asked: Unauthorized" in capsys.readouterr().out


def test_an_interrupt_is_handed_on(driven: Callable[..., int]) -> None:
    assert driven({"cluster": KeyboardInterrupt()}) == 130


KUBECTL = """#!/bin/bash
echo "$@" >> "$ASKED"
[[ $1 == get ]] && echo '{"items": [{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-x": "s3cret"}},
  "spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"value": "s3cret"}]}]}}}}]}'
[[ $1 == apply ]] && cat
[[ $1 == logs ]] && { echo "Error: not there" >&2; exit 3; }
exit 0
"""


@pytest.fixture
def vpc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """kubectl in the runner, where bash runs the command for real and kubectl is a script."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    logged = list[str]()

    def run_in_vpc(_: Any, __: Any, line: str, write: Callable[[str], None]) -> int:
        variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked")}
        done = subprocess.run(["bash", "-c", line], env=variables, capture_output=True, text=True)
        for text in ["[Container] Running command", *done.stdout.splitlines()]:
            logged.append(text)
            write(text)
        return done.returncode

    monkeypatch.setattr(in_vpc, "run_in_vpc", run_in_vpc)
    made = in_vpc.InVpc(Path(), True, AWS, loaded().environment)  # pyrefly: ignore
    return SimpleNamespace(kubectl=made, logged=logged, asked=tmp_path / "asked")


def test_kubectl_in_the_vpc_answers_without_variables_of_pods(vpc: Any) -> None:
    [item] = vpc.kubectl.items("pods", "--selector=a in (b, c)")
    assert item["spec"]["template"]["spec"]["containers"] == [{"name": "a"}]
    assert vpc.asked.read_text() == "get pods --output=json --selector=a in (b, c)\n"
    assert json.loads(vpc.kubectl.apply([{"kind": "Job"}]))["items"] == [{"kind": "Job"}]
    assert "s3cret" not in "\n".join(vpc.logged)
    with pytest.raises(Refused, match="Error: not there"):
        vpc.kubectl.run("logs", "pod")
    with pytest.raises(CommandError, match="too long for the runner"):
        vpc.kubectl.run("apply", "--filename=-", specified=os.urandom(4000).hex())


def test_the_gates_of_metrics_ask_for_what_is_collected() -> None:
    series = metrics.series(loaded_example("sandbox").environment, catalog())
    assert {"dcgm", "node", "efa", "kueue", "podwright", "recorded"} <= series.keys()
    assert "neuron_monitor" not in series
    assert Gates().metrics.fresh_minutes == 10
