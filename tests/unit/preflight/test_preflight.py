"""How preflight goes about it: at once, in time, read only, and never silent about what it could not see."""

import itertools
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import exceptions
from botocore.parsers import ResponseParserError

from podwright.config.catalog.preflight_checks import preflight_checks
from podwright.operations import cli
from podwright.operations.aws import questions
from podwright.operations.aws.account import Account
from podwright.operations.aws.calls import Reader
from podwright.operations.aws.unseen import Unseen
from podwright.operations.preflight.check import CHECKS, Note, Outcome, check
from podwright.operations.preflight.quota_codes import Codes
from preflight_account import NEW, PreflightAccount, examine
from preflight_answers import ACCOUNT, REGION, quotas, refusal
from waiting import CEILING_SECONDS

FILE = f"""
account: "{ACCOUNT}"
region: {REGION}
network: {{zones: [usw2-az2, usw2-az3]}}
instance_groups: {{system: {{instance_type: ml.m5.4xlarge, count: 2}}}}
"""


def by_id(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {outcome.check.id: outcome for outcome in outcomes}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (refusal("AccessDeniedException"), "you may not make this call (AccessDeniedException)"),
        (refusal("UnauthorizedOperation", 403), "you may not make this call (UnauthorizedOperation)"),
        (refusal("ThrottlingException"), "too many calls"),
        (refusal("InternalFailure", 500), "the service does not answer it (InternalFailure)"),
        (exceptions.EndpointConnectionError(endpoint_url="https://ec2.example"), "Could not connect to the endpoint"),
        (exceptions.ConnectTimeoutError(endpoint_url="https://ec2.example"), "Connect timeout"),
        (exceptions.ReadTimeoutError(endpoint_url="https://ec2.example"), "Read timeout"),
        (ResponseParserError("no element found"), "something that is not the service answered"),
        (refusal("SomethingNew"), "an answer that this check does not know (SomethingNew)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_without_an_answer_skips_its_checks_with_the_reason(error: Exception, reason: str) -> None:
    outcomes = by_id(
        examine(PreflightAccount({("ec2", "describe_availability_zones"): error}), NEW, "PRE011", "PRE012")
    )
    assert outcomes["PRE011"].status == "skipped"
    assert reason in outcomes["PRE011"].skipped[0]
    assert outcomes["PRE012"].status == "ok"


def test_nothing_is_lost_when_nothing_answers() -> None:
    denied = refusal("AccessDenied", 403)
    outcomes = examine(PreflightAccount(dict.fromkeys(PreflightAccount().answers, denied)), NEW)
    assert {outcome.status for outcome in outcomes} == {"skipped", "not_needed"}
    assert all(outcome.skipped for outcome in outcomes if outcome.status == "skipped")


def test_checks_run_at_once_and_the_late_ones_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    together, never = threading.Barrier(3), threading.Event()
    # The clock is read once at the start and before each wait for an answer: time is up when three answers are there.
    readings = itertools.chain([0.0] * 4, itertools.repeat(CEILING_SECONDS))
    monkeypatch.setattr(questions, "time", SimpleNamespace(monotonic=lambda: next(readings)))

    def meets(ask: Any):
        together.wait(timeout=CEILING_SECONDS)
        yield Note("met")

    def waits(ask: Any):
        never.wait()
        yield Note("never")

    for id, function in (("PRE001", meets), ("PRE002", meets), ("PRE003", meets), ("PRE004", waits)):
        monkeypatch.setitem(CHECKS, id, function)
    ids = ("PRE001", "PRE002", "PRE003", "PRE004")
    outcomes = by_id(examine(PreflightAccount(), NEW, *ids, seconds=CEILING_SECONDS))
    assert [outcomes[id].notes for id in ("PRE001", "PRE002", "PRE003")] == [("met",)] * 3
    assert outcomes["PRE004"].status == "skipped"
    assert outcomes["PRE004"].skipped[0].startswith("no answer within 900 s; `podwright preflight --timeout 2700s`")
    never.set()


def test_a_check_that_breaks_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ask: Any):
        raise KeyError("a bug of ours")
        yield

    monkeypatch.setitem(CHECKS, "PRE001", broken)
    with pytest.raises(KeyError, match="a bug of ours") as caught:
        examine(PreflightAccount(), NEW)
    assert caught.value.__notes__ == ["while PRE001 was asked"]


def test_an_id_has_one_check() -> None:
    with pytest.raises(ValueError, match="two checks are called PRE001"):
        check("PRE001")(lambda ask: iter(()))


def test_an_acknowledged_finding_carries_its_reason() -> None:
    preflight_account = {("ssm", "get_parameters"): {"Parameters": []}}
    accepted = "acknowledge: [{rule: PRE013, path: storage.home, reason: AWS told us that it is there}]"
    actual = {
        item.path: item.acknowledged
        for item in examine(PreflightAccount(preflight_account), NEW, "PRE013", more=accepted)[0].findings
    }
    assert actual == {"storage.home": "AWS told us that it is there", "storage.lustre": None}


class TestReader:
    def test_refuses_what_may_change_something(self) -> None:
        reader = Reader(PreflightAccount().client)
        for operation in ("create_stack", "put_object", "start_build", "describe"):
            with pytest.raises(ValueError, match="this only reads"):
                reader.get("ec2", operation)

    def test_asks_once_for_all_who_ask_the_same(self) -> None:
        asked: list[str] = []

        class Slow:
            def get_thing(self, Name: str) -> dict[str, str]:
                asked.append(Name)
                time.sleep(0.05)
                return {"Name": Name}

        reader = Reader(lambda _: Slow())
        answers: list[Any] = []
        threads = [
            threading.Thread(target=lambda name=name: answers.append(reader.get("s", "get_thing", Name=name)))
            for name in ("a", "a", "a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(asked) == ["a", "b"]
        assert sorted(answer["Name"] for answer in answers) == ["a", "a", "a", "b"]

    def test_remembers_refusals_too(self) -> None:
        preflight_account = PreflightAccount({("ssm", "get_parameter"): refusal("AccessDenied")})
        reader = Reader(preflight_account.client)
        for _ in range(2):
            with pytest.raises(Unseen):
                reader.get("ssm", "get_parameter", Name="n")

    def test_quotas_are_read_no_further_than_needed(self) -> None:
        """SageMaker has thousands of quotas; the pages behind the last one that is wanted stay unread."""
        pages = [quotas()(ServiceCode="sagemaker"), {"Quotas": []}]
        read: list[int] = []

        class Pages:
            def get_paginator(self, operation: str) -> Any:
                def paginate(**_: Any):
                    for number, page in enumerate(pages):
                        read.append(number)
                        yield page

                return type("P", (), {"paginate": staticmethod(paginate)})

        actual = Reader(lambda _: Pages()).pages("service-quotas", "list_service_quotas", "Quotas", until=bool)
        assert len(actual) > 5
        assert read == [0]

    def test_a_quota_that_was_never_changed_is_found_among_the_defaults(self) -> None:
        preflight_account = PreflightAccount({("service-quotas", "list_service_quotas"): {"Quotas": []}})
        outcomes = by_id(examine(preflight_account, NEW))
        assert outcomes["PRE030"].status == "ok"
        assert "ml.p5en.48xlarge for cluster usage: 4 of 100" in outcomes["PRE030"].notes

    def test_a_quota_whose_code_was_seen_before_is_read_at_once(self) -> None:
        names = [row["QuotaName"] for row in quotas()(ServiceCode="sagemaker")["Quotas"]]
        codes = {"sagemaker": {name: f"L-{number}" for number, name in enumerate(names)}}

        def by_code(**request: Any) -> dict[str, Any]:
            return {"Quota": {"QuotaName": names[int(request["QuotaCode"][2:])], "Value": 3.0, "QuotaCode": "L-1"}}

        preflight_account = PreflightAccount({("service-quotas", "get_service_quota"): by_code})
        actual = examine(preflight_account, NEW, "PRE030", codes=codes)[0]
        assert "for cluster usage' is 3; wanted: 4" in actual.findings[0].message
        assert not any(
            "list" in operation for _, service, operation in preflight_account.calls if service == "service-quotas"
        )

    def test_a_code_that_leads_to_another_quota_is_not_trusted(self) -> None:
        name = "ml.p5en.48xlarge for cluster usage"
        other = {"Quota": {"QuotaName": "another", "Value": 0.0, "QuotaCode": "L-1"}}
        preflight_account = PreflightAccount({("service-quotas", "get_service_quota"): other})
        observed: Codes = {}
        assert (
            examine(preflight_account, NEW, "PRE030", codes={"sagemaker": {name: "L-1"}}, observed=observed)[0].findings
            == ()
        )
        assert observed["sagemaker"][name] == "L-12345678", "what the list says is kept for the next run"

    def test_a_quota_that_nobody_lists_is_skipped(self) -> None:
        nothing = {"Quotas": []}
        preflight_account = PreflightAccount(
            dict.fromkeys([("service-quotas", f"list_{kind}service_quotas") for kind in ("", "aws_default_")], nothing)
        )
        assert (
            by_id(examine(preflight_account, NEW))["PRE031"]
            .skipped[0]
            .startswith("Service Quotas lists no 'Maximum number")
        )


class TestCommand:
    @pytest.fixture
    def project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "environments").mkdir()
        (tmp_path / "environments/prod.yaml").write_text(FILE)
        account = Account(ACCOUNT, REGION, None, {})
        monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
        return tmp_path

    def run(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, preflight_account: PreflightAccount, *more: str
    ) -> int:
        monkeypatch.setattr(Account, "reader", lambda *_: Reader(preflight_account.client))
        return cli.main(["preflight", "prod", *more, "--project", str(project)])

    def test_prints_what_each_check_saw_and_is_0(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(project, monkeypatch, PreflightAccount({("s3", "head_bucket"): refusal("404")})) == 0
        printed = capsys.readouterr().out
        assert f"prod → AWS, account {ACCOUNT}, us-west-2" in printed
        assert "  ok  PRE011  zones                         usw2-az2 is us-west-2a; usw2-az3 is us-west-2c" in printed
        assert "PRE070" not in printed, "there are no custom images to look at"
        assert f"\n{len(CHECKS)} checks: " in printed

    def test_an_error_is_1_with_place_and_fix(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        preflight_account = PreflightAccount(
            {("ssm", "get_parameter"): refusal("ParameterNotFound"), ("s3", "head_bucket"): refusal("404")}
        )
        assert self.run(project, monkeypatch, preflight_account) == 1
        printed = capsys.readouterr().out
        assert "environments/prod.yaml:2  PRE001  error  account 111122223333 is not prepared" in printed
        assert "→ `podwright deploy prod --bootstrap` prepares it" in printed
        assert "  error  PRE001  CDK bootstrap\n" in printed
        assert "1 with findings" in printed.splitlines()[-1]

    def test_a_skip_is_0_and_with_strict_1(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        answers = {("ssm", "get_parameter"): refusal("AccessDenied"), ("s3", "head_bucket"): refusal("404")}
        assert self.run(project, monkeypatch, PreflightAccount(answers)) == 0
        assert "  SKIP  PRE001  CDK bootstrap" in capsys.readouterr().out
        assert self.run(project, monkeypatch, PreflightAccount(answers), "--strict") == 1

    def test_the_policy_allows_all_that_checks_need_and_nothing_that_changes(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["preflight", "--policy"]) == 0
        (statement,) = json.loads(capsys.readouterr().out)["Statement"]
        assert {action for check in preflight_checks().values() for action in check.actions} == set(statement["Action"])
        names = [action.partition(":")[2] for action in statement["Action"]]
        assert [name for name in names if not name.startswith(("Describe", "Get", "List", "Simulate"))] == []

    def test_as_json(self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        preflight_account = PreflightAccount(
            {("ssm", "get_parameter"): refusal("ParameterNotFound"), ("s3", "head_bucket"): refusal("404")}
        )
        assert self.run(project, monkeypatch, preflight_account, "--json") == 1
        printed = json.loads(capsys.readouterr().out)
        assert {key: printed[key] for key in ("environment", "account", "region", "ok")} == {
            "environment": "prod",
            "account": ACCOUNT,
            "region": REGION,
            "ok": False,
        }
        assert [item["id"] for item in printed["checks"]] == sorted(CHECKS)
        assert printed["findings"][0]["id"] == "PRE001"
        assert printed["findings"][0]["place"]["line"] == 2
        assert (
            next(item for item in printed["checks"] if item["id"] == "PRE011")["notes"][0] == "usw2-az2 is us-west-2a"
        )
