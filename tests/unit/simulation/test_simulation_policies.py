"""What decides: Kueue's objects of an environment, its nodes, and what a job of a trace asks of them."""

from collections import Counter
from pathlib import Path

import pytest

from podwright.config.catalog.facts import table
from podwright.config.catalog.instance_types import environment_types
from podwright.config.catalog.topologies import topology
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.simulation.policies import following_sentences, policy_of
from podwright.planning.helm.kueue_values import DEVICE_CLAIMS
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.kueue.feature_gates import feature_gates
from podwright.planning.simulation.plan_windows import plan_windows
from podwright.planning.simulation.snapshot import Snapshot
from podwright.planning.simulation.traces.forms import read_trace
from podwright.planning.simulation.traces.generator import Made, generated
from podwright.planning.simulation.traces.requested_work import SHARES, demands, requested, shapes
from podwright.planning.simulation.traces.workloads import workload

ROOT = Path(__file__).resolve().parents[3]


def environment(name: str) -> Environment:
    return Project.at(ROOT).load(name).environment


@pytest.mark.parametrize("name", ["prod", "governed-hundred", "shared-platform-worker", "ultraserver-72"])
def test_every_flavor_has_its_nodes(name: str) -> None:
    loaded = environment(name)
    types = environment_types(loaded.instance_types)
    policy = policy_of(loaded, types)
    kinds = Counter(item["kind"] for item in policy.objects)
    teams = len(loaded.governance.teams)
    assert kinds["ClusterQueue"] == teams
    assert len(
        {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in policy.objects}
    ) == sum(kinds.values())
    nodes = [item for item in policy.objects if item["kind"] == "Node"]
    levels = {item["metadata"]["name"]: item["spec"]["levels"] for item in policy.objects if item["kind"] == "Topology"}
    for flavor in (item for item in policy.objects if item["kind"] == "ResourceFlavor"):
        labels = flavor["spec"]["nodeLabels"].items()
        own = [node["metadata"]["labels"] for node in nodes if labels <= node["metadata"]["labels"].items()]
        assert len(own) == environment_policy(loaded, types).flavors[flavor["metadata"]["name"]].instances
        needed = {level["nodeLabel"] for level in levels[flavor["spec"]["topologyName"]]}
        assert all(needed <= each.keys() for each in own)
    assert policy.assumptions


def test_an_ultraserver_has_its_instances() -> None:
    loaded = environment("ultraserver-72")
    policy = policy_of(loaded, environment_types(loaded.instance_types))
    servers = Counter(
        item["metadata"]["labels"]["topology.k8s.aws/ultraserver-id"]
        for item in policy.objects
        if item["kind"] == "Node"
    )
    assert set(servers.values()) == {18}


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("three-projects", "shares by kai", "fairshare-simulator"),
        ("shared-platform", "shares by yunikorn", "podwright deploy shared-platform --sandbox"),
        ("slurm-classic", "shares by slurm", "sbatch --test-only"),
        ("training-jobs-queue", "has no cluster", "one with one"),
        ("shared-platform-wanted", "hands all work to other clusters", "one of its workers"),
    ],
)
def test_what_is_not_kueues_decision_is_refused(name: str, message: str, hint: str) -> None:
    loaded = environment(name)
    with pytest.raises(CommandError, match=message) as refused:
        policy_of(loaded, environment_types(loaded.instance_types))
    assert hint in refused.value.hint or hint == "one with one"
    assert refused.value.code == 2


def test_task_governance_is_marked_as_we_read_it() -> None:
    loaded = environment("prod")
    policy = policy_of(loaded, environment_types(loaded.instance_types))
    assert "by podwright's reading" in policy.assumptions[0]
    assert policy.configuration["fairSharing"]["preemptionStrategies"]


ROWS = """\
team,submitted,duration,job,pods,accelerators,vcpu,memory_gib,priority,group,least_pods,topology
research,0,60,fits,2,8,,,training,h200,,
research,1,60,whole,1,8,4,16,,,,
nobody,2,60,unknown,1,8,,,,,,
research,3,60,odd,1,8,,,urgent,,,
research,4,60,wide,1,9,,,,,,
research,5,60,many,17,8,,,,h200,,
research,6,60,elastic,17,8,,,,h200,16,
research,7,60,elsewhere,1,8,,,,h100,,
product,8,60,small,1,1,,,,,,
"""


def test_jobs_that_could_never_run_are_named() -> None:
    loaded = environment("prod")
    types = environment_types(loaded.instance_types)
    known, policy = shapes(loaded, types), environment_policy(loaded, types)
    work = requested(read_trace(ROWS, {}), known, policy.teams, policy.priorities)
    jobs = {item.job.name: item for item in work.jobs}
    assert list(jobs) == ["fits", "whole", "elastic", "small"]
    assert [(problem.line, problem.kind) for problem in work.problems] == [
        (4, "unknown team"),
        (5, "unknown priority"),
        (6, "too large"),
        (7, "too large"),
        (9, "too large"),
    ]
    node = known["ml.p5en.48xlarge"].node
    assert jobs["fits"].requests == node
    assert jobs["whole"].requests == {"nvidia.com/gpu": 8, "cpu": 4000, "memory": 16384}
    assert jobs["small"].requests["cpu"] == node["cpu"] // 8
    assert SHARES in work.assumptions


def test_a_job_becomes_the_workload_that_its_operator_would_make() -> None:
    loaded = environment("shared-platform-worker")
    types = environment_types(loaded.instance_types)
    known, policy = shapes(loaded, types), environment_policy(loaded, types)
    team, (flavor, shape) = next(iter(policy.teams)), next(iter(known.items()))
    priority, value = next(iter(policy.priorities.items()))
    level = topology(shape.types, types).levels[0]
    row = f"{team},1800000000,60,a,4,8,,,{priority},{shape.groups[0]},2,{level}\n"
    work = requested(read_trace(ROWS.partition("\n")[0] + "\n" + row, {}), known, policy.teams, policy.priorities)
    (item,) = work.jobs
    made = workload(item, "kueue", known, policy.priorities)
    assert (item.flavor, made["spec"]["priority"], made["spec"]["queueName"]) == (flavor, value, team)
    assert made["metadata"]["creationTimestamp"] == "2027-01-15T08:00:00Z"
    (pods,) = made["spec"]["podSets"]
    assert (pods["count"], pods["minCount"], pods["topologyRequest"]) == (4, 2, {"required": level})
    selector = pods["template"]["spec"]["nodeSelector"]
    assert selector == {"sagemaker.amazonaws.com/instance-group-name": shape.groups[0]}


def test_generated_work_fits_the_environment_that_it_is_made_for() -> None:
    for name in ("prod", "governed-hundred", "ultraserver-72", "shared-platform-worker"):
        loaded = environment(name)
        types = environment_types(loaded.instance_types)
        known, policy = shapes(loaded, types), environment_policy(loaded, types)
        trace = generated(demands(policy, known), Made(3, 1, priorities=tuple(policy.priorities)))
        work = requested(trace, known, policy.teams, policy.priorities)
        assert (len(work.jobs), work.problems) == (len(trace.jobs), ())
        assert {item.job.team for item in work.jobs} <= policy.teams.keys()


def test_windows_of_plans_are_those_of_the_file() -> None:
    assert list(plan_windows(environment("prod"))) == []
    dated = environment("prod")
    plan = dated.training_plans["h200-q1"].model_validate(
        {
            "zone": "usw2-az2",
            "instance_type": "ml.p5en.48xlarge",
            "count": 16,
            "start": "2027-01-04T00:00:00Z",
            "end": "2027-02-01T00:00:00Z",
        }
    )
    (window,) = plan_windows(dated.model_copy(update={"training_plans": {"h200-q1": plan}}))
    assert (window["group"], window["instances"], window["from"]) == ("h200", 16, "2027-01-04 00:00")
    assert window["end"] - window["start"] == 28 * 86400


def test_gates_that_change_decisions_are_simulated_or_named() -> None:
    loaded = environment("shared-platform-worker")
    types = environment_types(loaded.instance_types)
    before = policy_of(loaded, types).assumptions
    gates = {
        "TASBalancedPlacement": True,
        "PartialAdmission": False,
        "LocalQueueMetrics": False,
        "KueueDRAIntegration": True,
    }
    kueue = loaded.governance.kueue.model_copy(update={"feature_gates": gates})
    changed = loaded.model_copy(update={"governance": loaded.governance.model_copy(update={"kueue": kueue})})
    policy = policy_of(changed, types)
    named = [
        f"feature gate {gate} is on, and what Kueue decides by that is not simulated"
        for gate in ("KueueDRAIntegration", "TASBalancedPlacement")
    ]
    assert sorted(set(policy.assumptions) - set(before)) == named
    assert not feature_gates(policy.configuration)["PartialAdmission"]
    snapshot = Snapshot(0.0, (), (), {}, ())
    assert [each for each in following_sentences(snapshot, changed, 0.0) if "gate" in each] == named


def test_every_gate_says_which_values_are_simulated() -> None:
    gates = table("kueue_feature_gates")
    assert {row["simulated"] for row in gates} == {"on", "off", "either", "none"}
    # Those that podwright itself sets otherwise, and their opposite.
    own = {row["gate"] for row in gates if row["simulated"] in ("on", "off") and row["simulated"] != row["default"]}
    assert own == {name for name, is_on in DEVICE_CLAIMS.items() if not is_on} - {
        "KueueDRARejectWorkloadsWhenDRADisabled"
    }
