"""The plan of a teardown, and carrying it out with a CDK CLI that does as it is told."""

import argparse
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fake_cdk import FakeCdk
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.stacks import Stack
from podwright.operations.teardown import command as destroy
from podwright.operations.teardown import run as teardown_run
from podwright.operations.teardown import stacks
from podwright.operations.teardown.inventory import Inventory
from podwright.operations.teardown.plan import Blocker, Kept, StackPlan, Teardown, deletion_order, staying
from podwright.operations.teardown.record import left_behind, write_record
from podwright.operations.teardown.stacks import OUR_STACKS, Resource, importers, parents
from podwright.operations.teardown.table import plan_lines
from screens import text_of

ROOT = Path(__file__).parents[3]
FILE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
PLAN = Resource(
    "prod-capacity", "Plan", "Custom::PodwrightTrainingPlan",
    "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", "", "", "",
)  # fmt: skip
GUARDDUTY = Blocker("prod-network", "guardduty endpoint", "vpce-1", "GuardDuty made it", "podwright", "deleted")
BALANCER = Blocker("prod-network", "load balancer", "arn:lb", "load balancer web was made", "you", "delete it")
LAKE = Kept("fs-1", "AWS::FSx::FileSystem", "prod-storage", "DeletionPolicy Retain", "9,600 GiB", True, "podwright …")


def test_consumers_go_before_what_they_import_from() -> None:
    made = ["prod-network", "prod-storage", "prod-eks", "prod-cluster", "prod-governance"]
    imports = {
        "prod-storage": {"prod-network"},
        "prod-eks": {"prod-network"},
        "prod-cluster": {"prod-eks", "prod-storage"},
        "prod-governance": {"prod-cluster", "prod-eks"},
    }
    assert deletion_order(made, imports) == made[::-1]
    # Age says nothing where imports do.
    assert deletion_order(made[::-1], imports)[-1] == "prod-network"
    assert deletion_order(["a", "b"], {"a": {"b"}, "b": {"a"}}) == ["b", "a"]


def test_what_a_blocked_stack_needs_stays_with_it() -> None:
    imports = {"cluster": {"eks", "network"}, "eks": {"network"}, "storage": {"network"}}
    assert staying({"eks"}, imports) == {"eks", "network"}
    assert staying({"network"}, imports) == {"network"}


def test_a_nested_stack_imports_in_the_name_of_its_parent() -> None:
    """It goes with its parent, so it is in nobody's way; a stack of somebody else is."""

    class Client:
        def get_paginator(self, operation: str) -> Any:
            exported = [{"ExportingStackId": "id-eks", "Name": "cluster"}]
            page = {"list_exports": {"Exports": exported}, "list_imports": {"Imports": ["gov-Teams1", "theirs", "eks"]}}
            return argparse.Namespace(paginate=lambda **_: [page[operation]])

    account: Any = argparse.Namespace(client=lambda service: Client())
    arn = "arn:aws:cloudformation:us-west-2:111122223333:stack/gov-Teams1/4e20"
    actual = {"governance": [Resource("governance", "Teams1", "AWS::CloudFormation::Stack", arn, "", "", "")]}
    stacks = [Stack("eks", "CREATE_COMPLETE", datetime(2026, 11, 21, tzinfo=UTC), "id-eks")]
    assert importers(account, stacks, parents(actual)) == {"eks": {"cluster": {"governance", "theirs"}}}


def test_every_stack_of_the_app_is_known() -> None:
    templates = ROOT.glob("tests/snapshot/templates/*/*.json")
    assert {file.stem for file in templates if ".nested" not in file.name} == set(OUR_STACKS)


def test_the_table_says_what_goes_stays_and_costs() -> None:
    plan = Teardown("prod", "111122223333", "us-west-2")
    plan.stacks = [
        StackPlan("prod-network", "CREATE_COMPLETE", "keep", "termination protection", monthly_usd=123.0),
        StackPlan("prod-eks", "DELETE_FAILED", "retry", "", 2, 14, 11.0, ("Cluster (AWS::EKS::Cluster, x): in use",)),
        StackPlan("prod-cluster", "CREATE_COMPLETE", "delete", "", 1, 7, 9.0),
    ]
    plan.kept, plan.blockers = [LAKE], [GUARDDUTY, BALANCER]
    plan.nodes, plan.running = {"h200": 16}, ["Job align in team-a: 4 pods"]
    plan.unseen = ["volumes: not allowed"]
    text = text_of(plan_lines(plan))
    assert [line.split()[1] for line in text.splitlines() if "again, after DELETE_FAILED" in line] == ["prod-eks"]
    assert plan.going == ["prod-cluster", "prod-eks"]
    for words in (
        "1  prod-cluster  7 resources deleted",
        "stays: termination protection, at least $123.00 a month",
        "prod-eks: Cluster (AWS::EKS::Cluster, x): in use",
        "took 20 min in all",
        "Nodes that go: h200 16",
        "Job align in team-a: 4 pods",
        "Removed on the way:\n  prod-network: guardduty endpoint vpce-1",
        "yours to remove:\n  prod-network: load balancer arn:lb: load balancer web was made\n    → delete it",
        "keeps costing money:\n  AWS::FSx::FileSystem fs-1 (9,600 GiB): DeletionPolicy Retain",
        "Not looked at:\n  volumes: not allowed",
    ):
        assert words in text


def test_the_record_grows_and_forgets_what_was_deleted(tmp_path: Path) -> None:
    plan = Teardown("prod", "111122223333", "us-west-2")
    bucket = Kept("acme", "AWS::S3::Bucket", "prod-storage", "retained")
    write_record(tmp_path, plan, [LAKE], [])
    file = write_record(tmp_path, plan, [bucket], [])
    assert left_behind(tmp_path, "prod", "111122223333", "us-west-2") == [LAKE, bucket]
    assert left_behind(tmp_path, "prod", "444455556666", "us-west-2") == []
    write_record(tmp_path, plan, [], ["fs-1"])
    assert left_behind(tmp_path, "prod", "111122223333", "us-west-2") == [bucket]
    file.write_text("{")
    with pytest.raises(CommandError, match="cannot be read"):
        left_behind(tmp_path, "prod", "111122223333", "us-west-2")


class TeardownAccount:
    """An account in which `look` sees what a test puts there."""

    def __init__(self, project: Path) -> None:
        self.project = project
        account = Account("111122223333", "us-west-2", None, {})
        self.cdk = FakeCdk.of(project, "prod", account)
        self.plan = Teardown("prod", "111122223333", "us-west-2")
        self.resources: dict[str, list[Resource]] = {}
        self.network: tuple[str, str] | None = None
        self.there: list[list[Blocker]] = []
        """What is in the way of the network, one read after another."""
        self.removed: list[str] = []
        self.stuck: list[Stack] = []

    def stacks(self, *names: str, going: bool = True) -> None:
        """Stacks in the order of their creation, all of which go."""
        for name in names:
            self.resources[name] = []
        if going:
            self.plan.stacks = [
                StackPlan(name, "CREATE_COMPLETE", "delete", order=len(self.resources) - location)
                for location, name in enumerate(self.resources)
            ]

    def destroy(self, *options: str) -> int:
        parser = argparse.ArgumentParser()
        destroy.add_arguments(parser)
        args = parser.parse_args(["prod", *options])
        args.project = self.project
        return destroy.run(args)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TeardownAccount:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(FILE)
    made = TeardownAccount(tmp_path)
    monkeypatch.setattr(destroy, "cdk_for", lambda *_: made.cdk)
    monkeypatch.setattr(destroy, "wait_for_earlier_run", lambda *_: None)
    for module in (destroy, teardown_run):
        monkeypatch.setattr(module, "deployed_stacks", lambda *_: made.stuck)
    monkeypatch.setattr(destroy, "take_inventory", lambda *_, **__: Inventory(made.plan, made.resources, made.network))
    monkeypatch.setattr(teardown_run, "still_there", lambda *_: made.there.pop(0) if made.there else [])
    monkeypatch.setattr(
        teardown_run, "remove", lambda _, actual, say: made.removed.extend(item.name for item in actual)
    )
    monkeypatch.setattr(teardown_run, "resources_of", lambda *_: made.resources)
    monkeypatch.setattr(
        teardown_run, "_delete", lambda _, progress, stacks: made.cdk.calls.extend(("itself", s) for s in stacks)
    )
    return made


def test_the_plan_alone_changes_nothing(account: TeardownAccount, capsys: pytest.CaptureFixture[str]) -> None:
    account.stacks("prod-eks")
    account.plan.blockers = [BALANCER]
    assert account.destroy("--dry-run", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["going"], shown["blockers"][0]["by"]) == (["prod-eks"], "you")
    assert account.destroy("--dry-run") == 0
    assert "1  prod-eks" in capsys.readouterr().out
    assert account.cdk.commands == []
    assert not (account.project / ".podwright").exists()


def test_what_somebody_else_has_to_remove_stops_it_before_it_begins(account: TeardownAccount) -> None:
    account.stacks("prod-network", "prod-eks")
    account.plan.blockers = [BALANCER, GUARDDUTY]
    with pytest.raises(CommandError, match=r"nothing was deleted: load balancer web was made$") as caught:
        account.destroy("--yes")
    assert caught.value.hint == "delete it; or --leave-blocked deletes the other stacks"
    assert account.cdk.commands == []


def test_the_name_is_typed_and_the_plan_printed_before(
    account: TeardownAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account.stacks("prod-eks")
    with pytest.raises(CommandError, match="a confirmation needs a terminal"):
        account.destroy()
    monkeypatch.setattr("sys.stdin", type("Tty", (io.StringIO,), {"isatty": lambda _: True})())
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(CommandError, match="nothing was deleted"):
        account.destroy()
    assert account.cdk.commands == []
    assert "1  prod-eks" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda _: "prod")
    assert account.destroy() == 0
    assert account.cdk.commands == [("destroy", "prod/eks", "--force")]


def test_nothing_to_delete(account: TeardownAccount, capsys: pytest.CaptureFixture[str]) -> None:
    account.stacks("prod-network", going=False)
    assert account.destroy("--yes") == 0
    assert capsys.readouterr().out == "prod: no stack to delete\n"
    assert account.cdk.commands == []


def test_the_network_goes_last_and_without_what_others_left_in_it(account: TeardownAccount) -> None:
    account.stacks("prod-network", "prod-eks", "prod-cluster")
    account.network, account.there = ("prod-network", "vpc-1"), [[GUARDDUTY]]
    assert account.destroy("--yes") == 0
    assert account.cdk.commands == [
        ("destroy", "prod/eks", "prod/cluster", "--force"),
        ("destroy", "prod/network", "--force"),
    ]
    assert account.removed == ["vpce-1"]


def test_what_comes_to_light_while_the_network_goes_is_removed_and_it_goes_again(account: TeardownAccount) -> None:
    account.stacks("prod-network")
    account.network, account.there = ("prod-network", "vpc-1"), [[], [GUARDDUTY]]
    account.cdk.codes.append(1)
    assert account.destroy("--yes") == 0
    assert len(account.cdk.commands) == 2
    assert account.removed == ["vpce-1"]


def test_a_deletion_is_watched_after_a_synthesis_that_ends_the_watch(
    account: TeardownAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CDK CLI synthesizes an app of the user's own, and the end of each of its runs ends what is watched."""
    monkeypatch.setattr(teardown_run, "watch", lambda cdk, _: cdk.calls.append(("watch",)))
    account.stacks("prod-eks")
    account.destroy("--yes")
    assert [call[0] for call in account.cdk.calls] == ["synth", "watch", "destroy"]


def test_a_deletion_that_fails_gives_every_reason(account: TeardownAccount) -> None:
    account.stacks("prod-eks")
    account.resources["prod-eks"] = [
        Resource("prod-eks", "Bucket", "AWS::S3::Bucket", "acme", "DELETE_FAILED", "it is not empty", "Delete")
    ]
    account.stuck = [Stack("prod-eks", "DELETE_FAILED", datetime(2026, 11, 21, tzinfo=UTC))]
    account.cdk.codes.extend([1] * 9)
    with pytest.raises(CommandError) as caught:
        account.destroy("--yes")
    assert "prod-eks: Bucket (AWS::S3::Bucket, acme): it is not empty" in str(caught.value)
    assert len(account.cdk.commands) == 1  # nothing changed in between, so nothing else would come of it


def test_a_stack_that_the_file_has_lost_goes_after_the_cluster_and_before_the_network(account: TeardownAccount) -> None:
    account.stacks("prod-network", "prod-capacity", "prod-cluster")
    account.resources["prod-capacity"] = [PLAN]
    account.destroy("--yes")
    assert ("synth", "incomplete") in account.cdk.calls, "a project without its charts can be deleted"
    assert account.cdk.commands == [
        ("destroy", "prod/cluster", "--force"),
        ("itself", "prod-capacity"),
        ("destroy", "prod/network", "--force"),
    ]


def test_stacks_of_teams_that_the_file_has_lost_go_first(account: TeardownAccount) -> None:
    account.stacks("prod-eks", "prod-governance", "prod-access")
    for key, kind in (("access", "AWS::EKS::AccessEntry"), ("governance", "AWS::SageMaker::ComputeQuota")):
        account.resources[f"prod-{key}"] = [Resource(f"prod-{key}", "x", kind, "x", "", "", "")]
    account.destroy("--yes")
    assert account.cdk.commands == [
        ("itself", "prod-governance"), ("itself", "prod-access"),
        ("destroy", "prod/eks", "--force"),
    ]  # fmt: skip


def test_what_is_retained_is_recorded_before_anything_is_deleted(account: TeardownAccount) -> None:
    account.stacks("prod-storage")
    account.plan.kept = [LAKE]
    account.cdk.codes.extend([1] * 9)
    with pytest.raises(CommandError):
        account.destroy("--yes")
    assert left_behind(account.project, "prod", "111122223333", "us-west-2") == [LAKE]


def test_only_what_the_plan_keeps_can_be_named(account: TeardownAccount) -> None:
    account.stacks("prod-storage")
    account.plan.kept = [LAKE]
    with pytest.raises(CommandError, match="fs-2 is nothing that could be deleted") as caught:
        account.destroy("--yes", "--delete-data", "fs-2")
    assert (caught.value.hint, caught.value.code) == ("there are fs-1", 2)
    account.resources["prod-network"] = [Resource("prod-network", "Key", "AWS::KMS::Key", "key-1", "", "", "Retain")]
    with pytest.raises(CommandError, match="key-1 belongs to prod-network, which stays"):
        account.destroy("--yes", "--delete-data", "key-1")
    with pytest.raises(CommandError, match="acme is not the bucket of a retained stack"):
        account.destroy("--yes", "--empty-bucket", "acme")
    with pytest.raises(CommandError, match="there is no stack prod-netwrok"):
        account.destroy("--yes", "--unprotect", "prod-netwrok")
    assert account.cdk.commands == []


def test_what_is_gone_is_no_resource_and_what_is_kept_survives_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        ("Bucket", "AWS::S3::Bucket", "logs", "CREATE_COMPLETE"),
        ("Role", "AWS::IAM::Role", "role", "CREATE_COMPLETE"),
        ("Gone", "AWS::S3::Bucket", "old", "DELETE_COMPLETE"),
        ("Never", "AWS::S3::Bucket", "", "CREATE_FAILED"),
    ]
    listed = [
        argparse.Namespace(logical_id=id, type=kind, name=name, status=status, reason="")
        for id, kind, name, status in rows
    ]
    template = {"Resources": {"Bucket": {"DeletionPolicy": "Retain"}, "Role": {}}}
    monkeypatch.setattr(stacks, "stack_resources", lambda *_: listed)
    monkeypatch.setattr(stacks, "template", lambda *_: template)
    made = Stack("prod-storage", "CREATE_COMPLETE", datetime(2026, 11, 21, tzinfo=UTC), "id")
    account: Any = None
    (resources,) = stacks.resources_of(account, [made]).values()
    assert [(item.name, item.retained) for item in resources] == [("logs", True), ("role", False)]


def test_who_imports_has_to_go_first() -> None:
    users = {"network": {"vpc": {"eks", "cluster"}, "subnet": set[str]()}, "eks": {"name": {"cluster"}}}
    assert stacks.imports(users) == {"eks": {"network"}, "cluster": {"network", "eks"}}


def test_how_long_a_stack_took_is_told_in_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Stack("prod-eks", "CREATE_COMPLETE", datetime(2026, 11, 21, 10, tzinfo=UTC), "id")
    event = argparse.Namespace(of_stack=True, status="CREATE_COMPLETE", at=datetime(2026, 11, 21, 10, 12, tzinfo=UTC))
    monkeypatch.setattr(stacks, "stack_events", lambda *_: [event])
    account: Any = None
    assert stacks.creation_minutes(account, made) == 12
