"""Numbers of one cluster are the same in `jobs`, `why` and `status --watch`, in its ClusterQueues and in its pods.

The clusters were recorded while the stories of docs/scenarios were played: elastic-eight when serving has all of its
nodes, ultraserver-72 when 104 GPUs are free and 72 have to wait, and governed-hundred with a job for which the nodes
lack that the quotas promise.
"""

import copy
import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster_tables import ClusterNumbers, ClusterTables, disagreements
from podwright.config.loading.load import load_environment
from podwright.operations.cli import main
from podwright.operations.jobs.table import write_jobs
from podwright.operations.live import reader
from screens import screen

Capture = pytest.CaptureFixture[str]
Object = dict[str, Any]


class Answers(NamedTuple):
    """The numbers of a recorded cluster from every source."""

    cluster: ClusterNumbers
    listed: Object
    why: dict[str, Object]
    teams: list[Object]

    def differ(self) -> list[str]:
        """The disagreements."""
        return disagreements(self.cluster, self.listed, self.why, self.teams)


class Recorded(ClusterTables):
    """The tables of a recorded cluster."""

    def _all(self, *kinds: tuple[str, str]) -> list[Object]:
        every = json.loads(self._kubeconfig.read_text())
        return [item for item in every if (item["apiVersion"], item["kind"]) in kinds]


@pytest.fixture
def ask(recorded: Callable[[str], Path], capsys: Capture) -> Callable[..., Any]:
    """Calls a command on a recorded cluster and returns its output, of `--json` as data."""
    folders: dict[str, Path] = {}

    def asked(environment: str, verb: str, *words: str) -> Any:
        if environment not in folders:
            folders[environment] = recorded(environment)
        folder = folders[environment]
        options = ["--kubeconfig", str(folder / "kubectl"), "--project", str(folder)]
        assert main([verb, environment, *words, *options]) == 0
        output = capsys.readouterr().out
        return json.loads(output) if "--json" in words else output

    asked.folders = folders  # type: ignore[attr-defined]
    return asked


def answers(ask: Callable[..., Any], environment: str) -> Answers:
    """The answers of all commands about a recorded cluster."""
    listed = ask(environment, "jobs", "--by-priority", "--json")
    why = {job["name"]: ask(environment, "why", job["name"], "--json") for job in listed["jobs"]}
    folder = ask.folders[environment]  # type: ignore[attr-defined]
    items = json.loads((folder / "cluster.json").read_text())
    queues = {item["metadata"]["name"]: item for item in items if item["kind"] == "ClusterQueue"}
    teams = reader._teams(load_environment(folder / f"environments/{environment}.yaml").environment, [], queues)
    return Answers(Recorded(folder / "cluster.json").numbers(), listed, why, teams)


@pytest.mark.parametrize("environment", ["two-teams", "elastic-eight", "ultraserver-72"])
def test_all_sources_agree(environment: str, ask: Callable[..., Any]) -> None:
    result = answers(ask, environment)
    assert result.differ() == []
    assert any(result.cluster.running.values())


def of(listed: Object, name: str) -> Object:
    (job,) = (job for job in listed["jobs"] if job["name"] == name)
    return job


Edit = Callable[[Answers], object]
EDITS: dict[str, tuple[Edit, str]] = {
    "jobs counts Workloads without quota": (
        lambda all_: of(all_.listed, "llama-70b")["holds"].update({"nvidia.com/gpu": 64}),
        "llama-70b, resources: jobs says {'cpu': 358.0, 'nvidia.com/gpu': 64}, the pods says",
    ),
    "accelerators are those that it asks for": (
        lambda all_: of(all_.listed, "llama-70b").update(accelerators=64),
        "llama-70b, GPUs: jobs --json accelerators says 64, its own holds says 16",
    ),
    "the size is another one": (
        lambda all_: of(all_.listed, "llama-70b")["size"].update(pods=8),
        "llama-70b, size: jobs says 8, the pods says 2",
    ),
    "pods that do not run are counted": (
        lambda all_: of(all_.listed, "serve").update(running_pods=2),
        "serve, pods running: jobs says 2, the pods says 1",
    ),
    "a class counts twice": (
        lambda all_: all_.listed["classes"][0].update(accelerators=112),
        "GPUs of all classes: jobs --by-priority says 128, the pods says 64",
    ),
    "why has another size": (
        lambda all_: all_.why["llama-70b"]["size"].update(pods=8),
        "llama-70b, size: why says {'pods': 8,",
    ),
    "why has another quota": (
        lambda all_: all_.why["llama-70b"]["quota"][0].update(holds=64),
        "team fine-tuning, nvidia.com/gpu in why llama-70b, holds: why says 64, the ClusterQueue says 16",
    ),
    "why borrows": (
        lambda all_: all_.why["serve"]["quota_in_use"][0].update(borrowed=8.0),
        "team serving, cpu in why serve, borrowed: why says 8.0, the ClusterQueue says 0.0",
    ),
    "status has no vCPUs": (
        lambda all_: all_.teams[0]["used"].pop("cpu"),
        "team fine-tuning, used: status --watch says {'cpu': 0, 'nvidia.com/gpu': 16}",
    ),
    "status borrows": (
        lambda all_: all_.teams[1]["borrowed"].update(cpu=40.0),
        "team serving, borrowed: status --watch says {'cpu': 40.0, 'nvidia.com/gpu': 0}",
    ),
    "a job is missing": (
        lambda all_: all_.listed["jobs"].remove(of(all_.listed, "serve")),
        "team serving: jobs says {'cpu': 895.0, 'nvidia.com/gpu': 40}, the ClusterQueue says",
    ),
    "too few GPUs are missing": (
        lambda all_: of(all_.listed, "llama-70b").update(holds={}, reason="lacks 8 GPUs of ml.p5.48xlarge"),
        "llama-70b: jobs says that it lacks 8 of 64 GPUs, and 0 are free on nodes",
    ),
    "a forecast is against Kueue": (
        lambda all_: all_.why["llama-70b"].update(forecast={"starts_in": 1.0, "stops": []}),
        "llama-70b: why forecasts a start in 1.0 s, and Kueue says couldn't assign flavors",
    ),
}
"""Ways in which a source can be wrong about elastic-eight, and what the comparison says of each."""


_ELASTIC: list[Answers] = []


@pytest.fixture
def elastic(ask: Callable[..., Any]) -> Answers:
    """A copy of the answers about elastic-eight, which are asked for once."""
    if not _ELASTIC:
        _ELASTIC.append(answers(ask, "elastic-eight"))
    return copy.deepcopy(_ELASTIC[0])


@pytest.mark.parametrize("name", EDITS)
def test_each_disagreement_is_named(name: str, elastic: Answers) -> None:
    change, expected = EDITS[name]
    change(elastic)
    assert [text for text in elastic.differ() if text.startswith(expected)], elastic.differ()


def test_the_pods_of_a_job_that_multikueue_sent_are_elsewhere(elastic: Answers) -> None:
    name, cluster = "llama-70b", elastic.cluster
    for answer in (of(elastic.listed, name), elastic.why[name]):
        answer.update(running_pods=0)
    requests = {other: amounts for other, amounts in cluster.requests.items() if other != name}
    running = {other: count for other, count in cluster.running.items() if other != name}
    here = dataclasses.replace(cluster, requests=requests, running=running)
    assert elastic._replace(cluster=here).differ() != []
    sent = dataclasses.replace(here, dispatched=frozenset({name}))
    assert elastic._replace(cluster=sent).differ() == []


def test_a_shrunk_job_holds_what_it_has(ask: Callable[..., Any]) -> None:
    """At the peak of serving the training has two of its eight nodes, and nothing of class extra."""
    listed = ask("elastic-eight", "jobs", "--by-priority", "--json")
    job = of(listed, "llama-70b")
    assert (job["state"], job["accelerators"], job["priority_class"]) == ("running", 16, "fine-tuning-70")
    assert (job["holds"]["nvidia.com/gpu"], job["asks"]["nvidia.com/gpu"]) == (16, 64)
    assert job["size"] == {"pods": 2, "least": 2, "most": 8}
    assert [(part["priority_class"], part["has_quota"]) for part in job["parts"]] == [
        ("fine-tuning-70", True),
        *[("extra-10", False)] * 3,
    ]
    counts = {each["class"]: (each["running"], each["preempted"], each["accelerators"]) for each in listed["classes"]}
    assert counts == {"serving-priority": (3, 0, 48), "fine-tuning-70": (1, 0, 16), "extra-10": (0, 1, 0)}
    (row,) = (line for line in ask("elastic-eight", "jobs").splitlines() if "llama-70b" in line)
    assert "running         2 of 2..8  16 of 64  358 of 1,432" in row
    assert "at 2 of 8, could grow to 4 when 16 GPUs are free;" in row


def test_why_says_at_which_size_a_job_runs_and_when_it_grows(ask: Callable[..., Any]) -> None:
    output = ask("elastic-eight", "why", "llama-70b")
    assert output.startswith("llama-70b of fine-tuning runs at 2 of 8, could grow to 4 when 16 GPUs are free\n")
    assert "2 of 2 pods run, 16 of 64 GPUs, 358 of 1,432 vCPUs" in output
    assert "would pass its limit" not in output
    assert "fine-tuning has 0 GPUs left of its guarantee, and would have to borrow 16 GPUs." in output
    output = ask("elastic-eight", "why", "serve")
    assert "ml.p5.48xlarge: 1,152 vCPUs guaranteed, 0 borrowed, 1,074 in use" in output
    assert "ml.p5.48xlarge: 48 GPUs guaranteed, 0 borrowed, 48 in use" in output


def test_a_job_that_waits_for_a_topology_does_not_wait_for_quota(ask: Callable[..., Any]) -> None:
    """104 GPUs are free, and no domain has the 72 of mixture. Nobody borrows, so nobody has to give anything back."""
    output = ask("ultraserver-72", "why", "mixture")
    assert "mixture of experts is waiting: topology p6e-gb200 allows to fit only 14 out of 18 pod(s)" in output
    assert "which is enough, and 104 GPUs are idle: it does not wait for quota." in output
    assert "give back" not in output
    # One job of seconds has ended in the queue of the two that run.
    assert re.search(r"mixture of experts starts in \d\.\d h on gb200", output)


def test_jobs_without_gpus_show_their_vcpus_in_a_narrow_terminal(ask: Callable[..., Any]) -> None:
    listed = ask("elastic-eight", "jobs", "--json")["jobs"]
    with screen(80, NO_COLOR="1") as mixed:
        write_jobs(listed, "Jobs", datetime.now(UTC))
    assert "GPUs" in mixed.seen()[1]
    assert mixed.seen()[-1] == "Not shown in a width of 80: kind, queue, age, vCPUs."
    for job in listed:
        job["holds"].pop("nvidia.com/gpu")
        job["asks"].pop("nvidia.com/gpu")
    with screen(80, NO_COLOR="1") as without:
        write_jobs(listed, "Jobs", datetime.now(UTC))
    assert "GPUs" not in without.seen()[1]
    assert any("358 of 1,432" in line for line in without.seen())


def test_a_guarantee_above_the_nodes_is_named(ask: Callable[..., Any]) -> None:
    """`align` has multimodal's 30 of the 60 nodes. Foundation's 40 are guaranteed, and 30 are there."""
    output = " ".join(ask("governed-hundred", "why", "p40").split())
    assert "320 GPUs left of its guarantee, which is enough; no other team borrows, so none must return" in output
    assert "Of 480 GPUs 240 GPUs are idle. Quotas guarantee more than there is (GOV002): 320 GPUs of" in output
    assert "have to give back" not in output


def test_a_job_lacks_what_the_nodes_lack(ask: Callable[..., Any]) -> None:
    """Kueue's quota counts ten nodes that do not exist: by it, 64 of 384 GPUs are missing, and 240 are free."""
    (pretrain,) = (job for job in ask("governed-hundred", "jobs", "--json")["jobs"] if job["name"] == "pretrain")
    assert pretrain["reason"] == "preempted by align: lacks 144 GPUs of ml.p5.48xlarge"
    folder = ask.folders["governed-hundred"]  # type: ignore[attr-defined]
    # A node that is cordoned or not ready has nothing free.

    def unfit(item: Object) -> bool:
        if item["kind"] == "Node":
            item["spec"] = {"unschedulable": True}
        return True

    edit(folder, unfit)
    (pretrain,) = (job for job in ask("governed-hundred", "jobs", "--json")["jobs"] if job["name"] == "pretrain")
    assert pretrain["reason"].endswith("lacks 384 GPUs of ml.p5.48xlarge")
    edit(folder, lambda item: item["kind"] != "Node")
    (pretrain,) = (job for job in ask("governed-hundred", "jobs", "--json")["jobs"] if job["name"] == "pretrain")
    assert pretrain["reason"].endswith("lacks 64 GPUs of ml.p5.48xlarge"), "without nodes Kueue's number stands"


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("multimodal", "which is enough: other teams must return borrowed quota (64 GPUs)."),
        ("", "which is enough; no other team borrows, so none must return quota."),
    ],
)
def test_others_give_back_only_what_they_borrow(ask: Callable[..., Any], group: str, words: str) -> None:
    ask("governed-hundred", "jobs", "--json")

    def borrows(item: Object) -> bool:
        if item["kind"] == "LocalQueue" and group and item["metadata"]["namespace"].endswith(group):
            for flavor in item["status"]["flavorsReservation"]:
                for resource in flavor["resources"] if flavor["name"] == "ml.p5.48xlarge" else ():
                    resource["total"] = {"nvidia.com/gpu": "304"}.get(resource["name"], resource["total"])
        return True

    edit(ask.folders["governed-hundred"], borrows)  # type: ignore[attr-defined]
    assert words in " ".join(ask("governed-hundred", "why", "p40").split())


def edit(folder: Path, change: Callable[[Object], bool]) -> None:
    """Keep the recorded objects for which a function is true; it may change them."""
    file = folder / "cluster.json"
    file.write_text(json.dumps([item for item in json.loads(file.read_text()) if change(item)]))


def test_no_forecast_contradicts_kueue(ask: Callable[..., Any]) -> None:
    """Without the Workloads of others the simulation has place for the job, and Kueue's refusal still stands."""
    ask("ultraserver-72", "jobs", "--json")
    folder = ask.folders["ultraserver-72"]  # type: ignore[attr-defined]
    edit(folder, lambda item: item["kind"] != "Workload" or "mixture" in item["metadata"]["name"])
    answer = ask("ultraserver-72", "why", "mixture", "--json")
    assert answer["forecast"] == {"unknown": "the simulation would start it at once, and Kueue has just refused that"}


def test_a_job_that_waits_for_an_unknown_end_is_told_whose(ask: Callable[..., Any]) -> None:
    """The two jobs have run for longer than the four hours that work without history takes."""
    ask("ultraserver-72", "jobs", "--json")

    def earlier(item: Object) -> bool:
        for entry in item.get("status", {}).get("conditions", ()) if "mixture" not in item["metadata"]["name"] else ():
            if item["kind"] == "Workload":
                entry["lastTransitionTime"] = "2026-11-27T12:00:00Z"
        return True

    edit(ask.folders["ultraserver-72"], earlier)  # type: ignore[attr-defined]
    answer = ask("ultraserver-72", "why", "mixture", "--json")["forecast"]
    assert (answer["starts_in"], {*answer["unknown_ends"]}) == (None, {"tune", "evaluate"})
    output = " ".join(ask("ultraserver-72", "why", "mixture").split())
    assert "mixture of experts starts at an unknown time: nothing says when" in output
