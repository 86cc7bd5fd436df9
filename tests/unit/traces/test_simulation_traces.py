"""Traces: each form is read, each bad row is named with its line and counted, and the rest is read all the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.config.errors import InvalidValue
from podwright.planning.quota.amounts import required_number
from podwright.planning.simulation.traces import comma_separated, slurm_accounting
from podwright.planning.simulation.traces.forms import read_trace
from podwright.planning.simulation.traces.measured import STEP_SECONDS, read_series
from podwright.planning.simulation.traces.times import duration, timestamp
from podwright.planning.simulation.traces.trace import LONGEST_GAP, UnreadableTrace, counted

TEAMS = {"team-research": "research", "team-product": "product"}
HOUR = 3600.0


def problems(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.kind) for problem in read_trace(text, TEAMS).problems]


def test_csv_is_read_column_by_column() -> None:
    text = (
        "team,submitted,duration,job,pods,accelerators,vcpu,memory_gib,priority,group,least_pods,topology\n"
        "research,2027-01-04T08:00:00Z,90m,llama,8,8,96,1024,training,h200,4,topology.k8s.aws/network-node-layer-2\n"
        "product,1799050000,01:30:00,,,,,,,,,\n"
    )
    second, first = sorted(read_trace(text, TEAMS).jobs, key=lambda job: job.line, reverse=True)
    assert (first.name, first.team, first.submitted, first.seconds) == ("llama", "research", 1799049600.0, 5400.0)
    assert (first.pods, first.accelerators, first.vcpu, first.memory_gib) == (8, 8, 96.0, 1024.0)
    assert (first.priority, first.group, first.least_pods) == ("training", "h200", 4)
    assert first.topology == "topology.k8s.aws/network-node-layer-2"
    assert (second.name, second.seconds, second.pods, second.accelerators) == ("row-3", 5400.0, 1, 0)
    assert (second.vcpu, second.memory_gib, second.least_pods) == (None, None, None)


def test_bad_rows_are_named_and_the_rest_is_read() -> None:
    text = (
        "team,submitted,duration,pods,accelerators\n"
        "research,0,60,1,8\n"
        "research,1,-60,1,8\n"
        "research,yesterday,60,1,8\n"
        "research,3,an hour,1,8\n"
        "research,4,60,0.5,8\n"
        ",5,60,1,8\n"
        "research,6,60,1\n"
        "research,nan,60,1,8\n"
        "research,8,60,1,8\n"
    )
    trace = read_trace(text, TEAMS)
    assert [job.line for job in trace.jobs] == [2, 10]
    assert problems(text) == [(3, "negative duration"), *((line, "unreadable") for line in range(4, 10))]
    assert counted(trace.problems) == {"unreadable": 6, "negative duration": 1}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "empty"),
        ("hello\nworld\n", 1, "begins no trace"),
        ("team,when,duration\na,1,2\n", 1, "no column is called 'when'; without submitted"),
        ("team,submitted,duration,team\n", 1, "team is there twice"),
        ('team,submitted,duration\na,1,2\n"b,1,2\n', 3, "not CSV"),
        ('{"items": [{}]}', 1, "not a list of Kueue's Workloads"),
        ('{\n"items": }', 2, "not JSON"),
        ("JobID|Account|Submit|State\n", 1, "ElapsedRaw or Elapsed, AllocTRES or ReqTRES"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableTrace, match=message.replace("|", r"\|")) as refused:
        read_trace(text, TEAMS)
    assert refused.value.line == line
    assert refused.value.hint


def test_the_documented_columns_are_those_that_are_read() -> None:
    header = ",".join(comma_separated.COLUMNS)
    assert len(read_trace(f"{header}\nresearch,0,60{',' * (len(comma_separated.COLUMNS) - 3)}\n", TEAMS).jobs) == 1


def clocks(*times: float) -> str:
    return "team,submitted,duration\n" + "".join(f"research,{time},60\n" for time in times)


def test_a_clock_that_jumps_is_named() -> None:
    steady = [index * HOUR for index in range(20)]
    back = clocks(*steady[:10], 30.0, *steady[10:])
    assert problems(back) == [(12, "clock jump")]
    forward = clocks(*steady[:10], steady[-1] + 1, *steady[10:])
    assert problems(forward) == [(12, "clock jump")]
    epoch = clocks(*(1.8e9 + time for time in steady), 1.8e9 + steady[-1] + LONGEST_GAP + 1)
    assert problems(epoch) == [(22, "clock jump")]
    zero = clocks(0, *(1.8e9 + time for time in steady))
    assert problems(zero) == [(2, "clock jump")]
    for text in (back, forward, epoch, zero):
        trace = read_trace(text, TEAMS)
        assert len(trace.jobs) == 20
        assert {job.line for job in trace.jobs}.isdisjoint(problem.line for problem in trace.problems)


def test_a_file_in_another_order_has_no_clock_that_jumps() -> None:
    text = clocks(*(index * HOUR for index in reversed(range(20))))
    trace = read_trace(text, TEAMS)
    assert (len(trace.jobs), trace.problems) == (20, ())
    assert [job.submitted for job in trace.jobs] == sorted(job.submitted for job in trace.jobs)


@given(st.lists(st.integers(0, 10**9), max_size=60), st.booleans(), st.integers(0, 10**9))
def test_every_row_is_read_or_named(times: list[int], is_sorted: bool, odd: int) -> None:
    times = [*sorted(times), odd] if is_sorted else times
    trace = read_trace(clocks(*times), TEAMS)
    lines = [job.line for job in trace.jobs] + [problem.line for problem in trace.problems]
    assert sorted(lines) == list(range(2, len(times) + 2))


def workload(name: str, conditions: dict[str, str], **more: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "90500m", "memory": "1Ti"}}}
    pods = {"name": "main", "count": 4, "template": {"spec": {"containers": [container]}}}
    return {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team-research", "creationTimestamp": "2027-01-04T08:00:00Z"},
        "spec": {"queueName": "research", "podSets": [pods | more], "priorityClassRef": {"name": "training-priority"}},
        "status": {
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": time} for kind, time in conditions.items()
            ]
        },
    }


ENDED = {"Admitted": "2027-01-04T09:00:00Z", "Finished": "2027-01-04T11:00:00Z"}


def test_workloads_of_kueue_are_read() -> None:
    items = [
        workload("ended", ENDED, minCount=2),
        workload("running", {"Admitted": "2027-01-04T09:30:00Z"}),
        workload("waiting", {}),
        workload("cancelled", {"Finished": "2027-01-04T11:00:00Z"}),
        workload("backwards", {"Admitted": "2027-01-04T11:00:00Z", "Finished": "2027-01-04T09:00:00Z"}),
        workload("nameless", ENDED, template={"spec": {}}),
    ]
    trace = read_trace(json.dumps({"kind": "List", "items": items}), TEAMS)
    jobs = {job.name: job for job in trace.jobs}
    assert sorted(jobs) == ["ended", "running", "waiting"]
    ended = jobs["ended"]
    assert (ended.team, ended.priority, ended.pods, ended.accelerators) == ("research", "training", 4, 8)
    assert (ended.vcpu, ended.memory_gib, ended.least_pods, ended.seconds) == (90.5, 1024.0, 2, 2 * HOUR)
    assert jobs["waiting"].seconds == jobs["running"].seconds == 2 * HOUR
    assert [(problem.line, problem.kind) for problem in trace.problems] == [
        (4, "no duration"),
        (5, "negative duration"),
        (6, "unreadable"),
    ]
    assert trace.assumptions == ("2 jobs that have not ended run as long as the median of their team's that have",)


def test_workloads_of_a_team_of_which_nothing_ended_have_no_duration() -> None:
    trace = read_trace(json.dumps({"items": [workload("waiting", {})]}), TEAMS)
    assert [problem.kind for problem in trace.problems] == ["no duration"]


SACCT = """\
JobID|Account|Submit|ElapsedRaw|State|NNodes|AllocTRES|QOS
7|research|2027-01-04T08:00:00|7200|COMPLETED|4|billing=32,cpu=384,gres/gpu:h200=32,gres/gpu=32,mem=4T,node=4|training
7.batch|research|2027-01-04T08:00:00|7200|COMPLETED|1|cpu=96,node=1|
8|product|2027-01-04T08:10:00|0|CANCELLED by 1001|1|cpu=4,gres/gpu=1,mem=512G,node=1|
9|product|2027-01-04T08:20:00|60|RUNNING|1|cpu=4,gres/gpu=1,mem=512G,node=1|
10|product|2027-01-04T08:30:00|60|TIMEOUT|1|cpu=4,gres/gpu=one,mem=512G,node=1|
11|product|2027-01-04T08:40:00|60
12|product|2027-01-04T08:50:00|60|FAILED|1|cpu=4,gres/gpu=1,mem=512G,node=1|
"""


def test_slurms_accounting_is_read() -> None:
    trace = read_trace(SACCT, {})
    first, last = trace.jobs
    assert (first.name, first.team, first.pods, first.accelerators, first.priority) == (
        "7",
        "research",
        4,
        8,
        "training",
    )
    assert (first.vcpu, first.memory_gib, first.seconds) == (96.0, 1024.0, 7200.0)
    assert (last.name, last.line, last.memory_gib) == ("12", 8, 512.0)
    assert [(problem.line, problem.kind) for problem in trace.problems] == [
        (4, "no duration"),
        (5, "no duration"),
        (6, "unreadable"),
        (7, "unreadable"),
    ]


def test_the_command_that_is_named_prints_what_is_read() -> None:
    names = slurm_accounting.SACCT.partition("--format=")[2].replace(",", "|")
    assert read_trace(f"{names}\n", {}).jobs == ()


def test_metrics_of_our_own_are_read() -> None:
    def series(name: str, *values: float) -> dict[str, Any]:
        samples = [[index * STEP_SECONDS, str(value)] for index, value in enumerate(values)]
        return {"metric": {"namespace": "team-research", "job_name": name}, "values": samples}

    answers = {
        "running": [series("a", 0, 0, 4, 4, 0, 0), series("b", 0, 0, 0, 0, 2, 2)],
        "waiting": [series("a", 0, 4, 0, 0, 0, 0)],
        "accelerators": [series("a", 0, 0, 32, 32, 0, 0)],
    }
    trace = read_series(answers, TEAMS, 5 * STEP_SECONDS)
    (job,) = trace.jobs
    assert (job.name, job.team, job.submitted, job.seconds) == ("a", "research", STEP_SECONDS, 2 * STEP_SECONDS)
    assert (job.pods, job.accelerators) == (4, 8)
    assert [problem.message for problem in trace.problems] == ["team-research/b still runs"]
    with pytest.raises(UnreadableTrace, match="no pods of jobs"):
        read_series({key: [] for key in answers}, TEAMS, 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("90m", 5400), ("1.5h", 5400), ("30d", 2592000), ("01:00:01", 3601), ("2-00:00:00", 172800)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert duration(text) == seconds
    assert duration(f"-{text}") == -seconds


@pytest.mark.parametrize("text", ["", "soon", "1:2:3", "h", "1x"])
def test_what_is_no_duration_or_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        duration(text)
    with pytest.raises(InvalidValue):
        timestamp(text)


@pytest.mark.parametrize(
    ("text", "amount"), [("8", 8), ("1500m", 1.5), ("2Gi", 2**31), ("1e3", 1000), ("1k", 1000), ("0.5", 0.5)]
)
def test_quantities_of_kubernetes_are_read(text: str, amount: float) -> None:
    assert required_number(text) == amount


@pytest.mark.parametrize("text", ["", "-1", "1 Gi", "1g", "Gi"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        required_number(text)
