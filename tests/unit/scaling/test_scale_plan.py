"""What a plan of another number of nodes holds, refuses and lets happen, without AWS and without templates."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.operations.aws.clusters import Cluster, Group, Node
from podwright.operations.aws.quarantines import Quarantine
from podwright.operations.cli import main
from podwright.operations.scaling import apply, plan
from podwright.operations.scaling.occupancy import Occupancy, RunningJob
from podwright.operations.scaling.plan import Request, ScalePlan, plan_scaling

FILE = """\
account: "123456789012"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  g5: {instance_type: ml.g5.12xlarge, count: 4, zone: usw2-az2}
"""
SLURM = FILE.replace(
    "instance_groups:\n  system: {",
    "cluster: {orchestrator: slurm}\ninstance_groups:\n  head: {slurm: {node_type: controller}, ",
)
KARPENTER = FILE.replace("count: 4", "count: 0").replace(
    "instance_groups:",
    "cluster: {autoscaling: {karpenter: {groups: [g5], limits: {accelerators: 8}}}}\ninstance_groups:",
)
JOB = RunningJob("pretrain", "research", ("i-1", "i-2"), 4)


@dataclass
class Account:
    """A cluster, what runs on it, and what was asked of it."""

    nodes: dict[str, str] = field(default_factory=lambda: {f"i-{number}": "g5" for number in range(1, 5)})
    target: int = 4
    jobs: list[RunningJob] = field(default_factory=list)
    hidden: tuple[str, ...] = ()
    refuses: dict[str, str] = field(default_factory=dict)
    needs: list[Any] = field(default_factory=list)
    changed: bool = True
    done: list[Any] = field(default_factory=list)
    out: dict[str, Quarantine] = field(default_factory=dict)
    deploys: int = 0

    id, region, endpoint = "123456789012", "us-west-2", "http://localhost"

    def cluster(self, *_: Any) -> Cluster:
        group = Group.of({"InstanceGroupName": "g5", "CurrentCount": self.target})
        return Cluster("sandbox", "arn", "InService", "", True, False, "eks", (group,))

    def listed(self, *_: Any) -> list[Node]:
        return [Node(id, group, "ml.g5.12xlarge", "Running") for id, group in self.nodes.items()]

    def occupancy(self, *arguments: Any) -> Occupancy:
        ids = {node.id for node in arguments[-1]}
        jobs = [replace(job, nodes=tuple(sorted(ids & set(job.nodes)))) for job in self.jobs if ids & set(job.nodes)]
        return Occupancy(tuple(jobs), self.hidden if ids else ())

    def changes(self, *_: Any) -> Any:
        return SimpleNamespace(changes=[1] if self.changed else [], approvals=self.needs, digest="change")

    def remove(self, *_: Any, NodeIds: list[str], **__: Any) -> dict[str, Any]:
        deleted = [id for id in NodeIds if id not in self.refuses]
        self.done.append(("remove", deleted))
        self.nodes = {id: group for id, group in self.nodes.items() if id not in deleted}
        self.target -= len(deleted)
        failed = [{"NodeId": id, "Code": code, "Message": "no"} for id, code in self.refuses.items() if id in NodeIds]
        return {"Successful": deleted, "Failed": failed}

    def quarantine(self, *arguments: Any) -> None:
        nodes = arguments[3]
        self.done.append(("quarantine", [node.id for node in nodes]))
        self.out |= {node.id: Quarantine(node.id, arguments[4], "me", "now") for node in nodes}

    def release(self, *arguments: Any) -> None:
        self.done.append(("release", [node.id for node in arguments[3]]))

    def deploy(self, arguments: Any, *, quiet: bool) -> int:
        assert (arguments.yes, arguments.plan) == (True, "change"), "what was planned, and nothing else"
        self.done.append(("deploy", count_in_file()))
        if self.deploys:
            self.deploys -= 1
            return 1
        self.target = int(self.done[-1][1])
        return 0


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/sandbox.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    made = Account()
    monkeypatch.setattr(plan, "account_for", lambda *_: made)
    monkeypatch.setattr(plan, "_changes", made.changes)
    monkeypatch.setattr(plan, "cluster_nodes", made.listed)
    for module in (plan, apply):
        monkeypatch.setattr(module, "existing_cluster", made.cluster)
        monkeypatch.setattr(module, "occupancy", made.occupancy)
    monkeypatch.setattr(apply, "change", made.remove)
    monkeypatch.setattr(apply, "quarantine", made.quarantine)
    monkeypatch.setattr(apply, "quarantines", lambda *_: made.out)
    monkeypatch.setattr(apply, "release", made.release)
    monkeypatch.setattr(apply, "forget", lambda *_: None)
    monkeypatch.setattr(apply, "deploy", made.deploy)
    return made


def planned(count: int, *remove: str, **more: Any) -> ScalePlan:
    return plan_scaling(Request(Path.cwd(), "sandbox", "g5", count, remove, **more))


def applied(count: int, *remove: str, **more: Any) -> None:
    apply.apply_scaling(planned(count, *remove, **more), lambda _: None)


def count_in_file() -> str:
    return (Path.cwd() / "environments/sandbox.yaml").read_text().rpartition("count: ")[2].partition(",")[0]


def test_a_plan_writes_nothing_and_says_what_it_costs(account: Account) -> None:
    made = planned(8)
    assert (made.written, made.target, made.blocked, count_in_file()) == (4, 4, [], "4")
    assert made.cost["monthly"] > made.cost_before["monthly"]
    assert account.done == []


def test_growing_writes_and_deploys(account: Account) -> None:
    applied(8)
    assert account.done == [("deploy", "8")]
    assert count_in_file() == "8"


def test_shrinking_takes_exactly_the_named_nodes_before_the_deployment(account: Account) -> None:
    applied(2, "i-3", "hyperpod-i-4", "i-3")
    assert account.done == [("quarantine", ["i-3", "i-4"]), ("remove", ["i-3", "i-4"]), ("deploy", "2")]
    assert sorted(account.nodes) == ["i-1", "i-2"]


@pytest.mark.parametrize(
    ("count", "remove", "words"),
    [
        (2, (), "2 nodes of g5 would go, and HyperPod would choose which"),
        (2, ("i-1",), "so 2 must be removed, and you named 1 of its nodes"),
        (2, ("i-1", "i-9"), "i-9 is no node of sandbox"),
        (4, ("i-1",), "so 0 must be removed, and you named 1 of its nodes"),
        (3, ("i-1", "i-2"), "so 1 must be removed, and you named 2 of its nodes"),
        (3, ("i-5",), "i-5 is of system, not of g5"),
    ],
)
def test_names_that_do_not_add_up_are_refused(
    account: Account, count: int, remove: tuple[str, ...], words: str
) -> None:
    account.nodes["i-5"] = "system"
    with pytest.raises(CommandError, match=words) as refused:
        planned(count, *remove)
    assert refused.value.code == 2
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "group", "words"),
    [
        (FILE, "h100", "sandbox has no instance group h100"),
        (KARPENTER, "g5", "environments/sandbox.yaml:4: Karpenter sets the number of nodes of g5"),
        (SLURM, "head", "environments/sandbox.yaml:6: head is Slurm's controller"),
    ],
)
def test_groups_whose_number_is_not_the_files_to_say(account: Account, text: str, group: str, words: str) -> None:
    (Path.cwd() / "environments/sandbox.yaml").write_text(text)
    with pytest.raises(CommandError) as refused:
        plan_scaling(Request(Path.cwd(), "sandbox", group, 3))
    assert str(refused.value).startswith(words)


def test_a_running_gang_is_named_and_stopped_only_on_request(account: Account) -> None:
    account.jobs = [JOB]
    made = planned(3, "i-2")
    assert made.blocked == ["pretrain of research, on 1 of its 4 nodes would be stopped; --stop-jobs allows it"]
    with pytest.raises(CommandError, match="pretrain of research"):
        apply.apply_scaling(made, lambda _: None)
    assert (account.done, count_in_file()) == ([], "4")
    applied(3, "i-2", stop_jobs=True)
    assert account.done[-2:] == [("remove", ["i-2"]), ("deploy", "3")]


def test_jobs_that_nobody_may_see_count_as_running(account: Account) -> None:
    account.hidden = ("hyperpod-ns-vision",)
    assert "you may not see the jobs of hyperpod-ns-vision" in planned(3, "i-2").blocked[0]
    assert planned(5).blocked == []


def test_a_job_that_comes_after_the_plan_keeps_its_node(account: Account) -> None:
    made = planned(3, "i-2")
    account.jobs = [JOB]
    with pytest.raises(CommandError, match="jobs have started on the nodes to remove: pretrain"):
        apply.apply_scaling(made, lambda _: None)
    assert account.done == [("quarantine", ["i-2"]), ("release", ["i-2"])]
    assert count_in_file() == "4"


def test_a_node_in_quarantine_stays_in_it(account: Account) -> None:
    account.out = {"i-2": Quarantine("i-2", "ECC", "ada", "now")}
    made = planned(3, "i-2")
    account.jobs = [JOB]
    with pytest.raises(CommandError, match="jobs have started"):
        apply.apply_scaling(made, lambda _: None)
    assert account.done == []


def test_findings_block_as_they_do_in_a_deployment(account: Account) -> None:
    made = planned(6_000)
    assert made.changes is None
    assert made.blocked[0].startswith("sandbox would have ")
    assert [finding.path for finding in made.new_findings]
    with pytest.raises(CommandError, match="nothing was done"):
        apply.apply_scaling(made, lambda _: None)
    assert (account.done, count_in_file()) == ([], "4")


def test_harm_elsewhere_in_the_file_blocks_before_a_node_goes(account: Account) -> None:
    account.needs = [SimpleNamespace(refused=True, approved=False, name="lustre", id="CHG001", why="it is replaced")]
    assert "lustre needs an approval (CHG001): it is replaced" in planned(3, "i-1").blocked[0]


def test_what_hyperpod_keeps_is_told_and_goes_the_next_time(account: Account) -> None:
    account.refuses = {"i-4": "NodeIdInUse"}
    with pytest.raises(CommandError, match=r"i-3 went, and HyperPod keeps 1 .*\n    i-4: NodeIdInUse: no") as refused:
        applied(2, "i-3", "i-4")
    assert "the same command does what is left" in refused.value.hint
    account.refuses = {}
    made = planned(2, "i-3", "i-4")
    assert ([node.id for node in made.leaving], made.removed) == (["i-4"], ("i-3",))
    apply.apply_scaling(made, lambda _: None)
    assert account.done[-2:] == [("remove", ["i-4"]), ("deploy", "2")]


def test_after_a_failed_deployment_nothing_is_removed_again(account: Account) -> None:
    account.deploys = 1
    with pytest.raises(CommandError, match="is not deployed"):
        applied(2, "i-3", "i-4")
    applied(2, "i-3", "i-4")
    assert [step for step, _ in account.done] == ["quarantine", "remove", "deploy", "deploy"]
    account.changed = False
    assert planned(2, "i-3", "i-4").done


def test_a_count_that_cloudformation_does_not_see_is_told(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "deploy", lambda *_, **__: 0)
    with pytest.raises(CommandError, match="deployed with count 6, and HyperPod keeps it at 4") as refused:
        applied(6)
    assert "InstanceGroupName=g5,IncrementTargetCountBy=2" in refused.value.hint


def test_the_digest_is_that_of_what_somebody_said_yes_to(account: Account) -> None:
    first = planned(3, "i-1").digest
    assert planned(3, "i-1", stop_jobs=True).digest != first
    assert planned(3, "i-1").digest == first
    assert planned(3, "i-2").digest != first
    (Path.cwd() / "environments/sandbox.yaml").write_text(f"{FILE}# a comment\n")
    assert planned(3, "i-1").digest != first


def test_with_a_digest_nothing_but_that_plan_is_done(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = planned(3, "i-1").digest
    monkeypatch.setattr("podwright.operations.scaling.command.change_lines", lambda _: ())
    command = ["scale", "sandbox", "g5", "3", "--remove", "i-1", f"--plan={digest}", "--yes"]
    account.jobs = [JOB]
    assert main(command) == 1
    assert f"and not {digest}" in capsys.readouterr().err
    assert (account.done, count_in_file()) == ([], "4")
    account.jobs = []
    assert main([*command[:4], "--stop-jobs", *command[4:]]) == 1, "what nobody has said yes to"
    assert account.done == []
    account.jobs = []
    assert main(command) == 0
    assert [step[0] for step in account.done] == ["quarantine", "remove", "deploy"]
    capsys.readouterr()
    assert main(command) == 1, "it is done, and is another plan"


def test_the_command_asks_for_the_name_and_shows_what_goes(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podwright.operations.scaling.command.change_lines", lambda _: ())
    account.jobs = [JOB]
    assert main(["scale", "sandbox", "g5", "3", "--remove", "i-1"]) == 1
    output = capsys.readouterr()
    assert "pretrain of research, on 1 of its 4 nodes" in output.out
    assert "pretrain runs on 4 nodes, and could not start again on the 3 that stay" in output.out
    assert "nothing was done: pretrain of research" in output.err
    assert main(["scale", "sandbox", "g5", "3", "--remove", "i-1", "--stop-jobs"]) == 2
    assert "a confirmation needs a terminal" in capsys.readouterr().err
    assert account.done == []
