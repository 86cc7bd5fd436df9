"""`podwright simulate` as a user meets it, with a stand-in for who decides: what it prints, searches and refuses."""

import argparse
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from first_come import first_come
from loopback import Call, Reply, serving
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.operations.simulation import command, summary
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.operations.simulation.summary import duration
from podwright.planning.monitoring.recordings import recordings
from podwright.planning.simulation.answers.changes import changed
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.traces.forms import read_trace
from podwright.planning.simulation.traces.measured import QUERIES, STEP_SECONDS
from screens import COLOURS, screen

ROOT = Path(__file__).resolve().parents[3]
MADE = ("prod", "--generate", "3d", "--load", "1.2")


def simulate(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(words)
    args.project = ROOT
    return command.answer(args, first_come)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    simulate(*words, "--json")
    return json.loads(capsys.readouterr().out)


def test_two_policies_on_the_same_work(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    result = answer(capsys, *MADE, "--against", "governed-hundred", "--out", str(file))
    assert [policy["environment"] for policy in result["policies"]] == ["prod", "governed-hundred"]
    # Teams of one alone are unknown to the other, so only work of both is run.
    assert result["left_out"].keys() <= {"unknown team", "unknown priority", "too large"}
    text = file.read_text()
    assert text.count('class="figure"') >= 2
    assert "src=" not in text.partition("<script>")[0]


def test_what_one_policy_could_never_run_is_run_under_none() -> None:
    prod = Project.at(ROOT).load("prod").environment
    small = changed(prod, "nodes", "research", "h200", 4)
    policies = [policy_of(each, environment_types(each.instance_types)) for each in (prod, small)]
    rows = "".join(f"research,{index},1h,{pods},8\n" for index, pods in enumerate((1, 16, 2, 4)))
    trace = read_trace(f"team,submitted,duration,pods,accelerators\n{rows}", {})
    result = simulation(policies, trace, first_come, Assumptions())
    assert [(problem.line, problem.kind) for problem in result.problems] == [(3, "too large")]
    assert [len(figures.outcome.jobs) for figures in result.figures] == [3, 3]
    assert result.submitted == 3


def test_the_same_seed_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    first = answer(capsys, *MADE)
    assert first == answer(capsys, *MADE, "--seed", "1")
    assert first != answer(capsys, *MADE, "--seed", "2")
    (policy,) = first["policies"]
    assert sum(team["waits"]["jobs"] for team in policy["teams"]) == first["jobs"] > 100
    assert sum(count["count"] for count in policy["preemptions"]) == sum(team["stopped"] for team in policy["teams"])


def test_every_output_names_what_was_assumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = answer(capsys, *MADE, "--startup", "4m", "--failures", "0.001")
    assert "pods are ready 240 s after their job is admitted" in result["assumptions"]
    assert "a node fails 0.001 times an hour" in result["assumptions"]
    measured = answer(capsys, *MADE, "--throughput", "1=1,2=1.9,4=3.6")["assumptions"]
    assert any("slower as was measured: 1 pods do 1, 2 pods do 1.9, 4 pods do 3.6" in text for text in measured)
    assert any("by podwright's reading" in text for text in result["assumptions"])
    file = tmp_path / "reports/page.html"
    simulate(*MADE, "--out", str(file))
    printed, page = " ".join(capsys.readouterr().out.split()), file.read_text()
    for text in answer(capsys, *MADE)["assumptions"]:
        assert text in printed
        assert text in page.replace("&#39;", "'")


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("against", [(), ("--against", "prod")])
def test_the_summary_fits_a_terminal(width: int, against: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, *MADE, *against)
    with screen(width, NO_COLOR="1") as shown:
        summary.print_summary(result)
    assert max(map(len, shown.getvalue().splitlines())) <= width
    assert "…" not in shown.getvalue()
    assert {"team", "research", "product"} <= set(COLOURS.sub("", shown.getvalue()).split())


TRACE = """\
team,submitted,duration,job,pods,accelerators
research,0,1h,a,16,8
product,60,1h,b,1,8
nobody,120,1h,c,1,8
product,180,-1h,d,1,8
research,240,1h,e,1,9
product,7200,1h,f,1,8
"""


def test_bad_rows_are_named_and_the_rest_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(TRACE)
    result = answer(capsys, "prod", "--trace", str(file))
    assert result["left_out"] == {"unknown team": 1, "negative duration": 1, "too large": 1}
    assert [problem["line"] for problem in result["problems"]] == [4, 5, 6]
    assert result["jobs"] == 3
    simulate("prod", "--trace", str(file))
    printed = capsys.readouterr().out
    assert "line 4: c is of nobody; known: product, research" in printed


def test_what_is_no_trace_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    for text, expected in (("hello", ":1: 'hello' begins no trace"), ("team,what\n", ":1: the header is not")):
        file.write_text(text)
        with pytest.raises(CommandError, match=expected) as refused:
            simulate("prod", "--trace", str(file))
        assert refused.value.code == 2
    with pytest.raises(CommandError, match="cannot be read"):
        simulate("prod", "--trace", str(tmp_path / "none"))


def test_metrics_of_a_prometheus_are_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    last = time.time() // STEP_SECONDS * STEP_SECONDS
    labels = {"namespace": "hyperpod-ns-research", "job_name": "a"}

    def reply(call: Call) -> Reply:
        query = parse_qs(call.body.decode())["query"][0]
        name = query.partition("{")[0]
        amount = {"namespace_job:pods_running:sum": 2, "namespace_job:gpus:sum": 16}.get(name, 0)
        values = [[last - index * STEP_SECONDS, str(amount)] for index in range(30, 18, -1)]
        return Reply(body=json.dumps({"data": {"result": [{"metric": labels, "values": values}]}}).encode())

    with serving(reply) as server:
        result = answer(capsys, "prod", "--trace", server.url)
    assert result["work"] == "metrics of podwright"
    assert (result["jobs"], result["left_out"]) == (1, {})
    assert {query.partition("{")[0] for query in QUERIES.values()} <= {each.name for each in recordings()}
    with pytest.raises(CommandError, match="the metrics cannot be read"):
        simulate("prod", "--trace", server.url)
    for other in (Reply(body=b"<html>"), Reply(body=b"{}"), Reply(status=404, body=b"gone")):
        unreadable = pytest.raises(CommandError, match="the metrics cannot be read")
        with serving(lambda _, other=other: other) as stranger, unreadable:
            simulate("prod", "--trace", stranger.url)
    with pytest.raises(CommandError, match="at most 38"):
        simulate("prod", "--trace", server.url, "--days", "39")


def test_the_smallest_number_is_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*MADE, "--smallest", "nodes", "--of", "product:h200")
    result = answer(capsys, *words, "--longest-wait", "1h")
    assert result["now"] == 16
    # Without nodes no job is left that could wait, and that is no answer.
    assert result["tried"][0] == {"amount": 0, "seconds": None, "enough": False}
    assert result["smallest"] > 0
    tried = {each["amount"]: each["enough"] for each in result["tried"]}
    assert tried[result["smallest"]]
    assert not tried[result["smallest"] - 1]
    assert simulate(*words, "--longest-wait", "1h") == 0
    printed = capsys.readouterr()
    assert f"{result['smallest']} nodes are enough for product to wait at most 1.0 h" in printed.out
    assert printed.err.count("p90") == len(tried)
    assert simulate(*words, "--longest-wait", "0s", "--at-most", "2") == 1
    assert "2 nodes are not enough" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*MADE, "--smallest", "nodes"), "belong together"),
        ((*MADE, "--smallest", "nodes", "--of", "x:h200", "--longest-wait", "1h"), "no team x"),
        ((*MADE, "--smallest", "quota", "--of", "product:x", "--longest-wait", "1h"), "no group x"),
        ((*MADE, "--smallest", "borrow", "--of", "product", "--longest-wait", "1h", "--at-most", "0"), "at least 1"),
        ((*MADE, "--failures", "-1"), "0 or more"),
        ((*MADE, "--load", "0"), "no jobs can be generated: load is 0"),
        (("slurm-classic", "--generate", "1d"), "shares by slurm"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        simulate(*words)


@pytest.mark.parametrize("words", [("prod", "--generate", "-1d"), ("prod", "--trace", "a", "--generate", "1d")])
def test_a_command_line_that_cannot_be_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        simulate(*words)


def test_durations_are_said_as_people_say_them() -> None:
    assert [duration(seconds) for seconds in (0, 59, 60, 3599, 5400, 172800, float("inf"))] == [
        *("0 s", "59 s", "1 min", "60 min", "1.5 h", "2.0 d", "never")
    ]
