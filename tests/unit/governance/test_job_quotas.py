"""Jobs against quotas: what the rules allow is what the manifests ask for, whatever the teams."""

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from job_environment import planned, with_jobs
from podwright.cdk8s_charts.jobs.render import render
from podwright.config.catalog.instance_types import environment_types
from podwright.planning.quota.policy import environment_policy
from podwright.planning.rules.run import findings

GPU = "nvidia.com/gpu"
ENGINES = st.sampled_from(["hyperpod", "kueue", "kai", "yunikorn"])
TEAM = st.fixed_dictionaries(
    {
        "quota": st.fixed_dictionaries({"h100": st.integers(0, 8)}),
        "share": st.sampled_from(["lend_and_borrow", "lend", "dont_lend"]),
        "borrow_limit_percent": st.integers(1, 300),
    }
)


def asked_at_once(manifest: dict[str, Any]) -> int:
    """GPUs of the pods without which the job does not run."""
    elastic = manifest["spec"].get("elasticPolicy")
    (worker,) = manifest["spec"]["pytorchReplicaSpecs"].values()
    pods = elastic["minReplicas"] if elastic else worker["replicas"]
    (container,) = worker["template"]["spec"]["containers"]
    return pods * int(container["resources"]["requests"][GPU])


def found(environment: Any) -> set[str]:
    return {item.id for item in findings(environment) if item.path.startswith("jobs.job")}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    # The GPUs are beyond its limit, the processors only beyond its guarantee: one finding, not two.
    "hyperpod",
    {"quota": {"h100": 3}, "share": "lend_and_borrow", "borrow_limit_percent": 24},
    {"quota": {"h100": 0}, "share": "lend_and_borrow", "borrow_limit_percent": 1},
    8,
    4,
    1,
)
@given(ENGINES, TEAM, TEAM, st.integers(1, 8), st.sampled_from([None, 1, 4, 8]), st.integers(0, 4))
def test_a_job_is_refused_exactly_when_its_team_can_never_hold_it(
    engine: str, llm: dict[str, Any], other: dict[str, Any], nodes: int, accelerators: int | None, more: int
) -> None:
    job: dict[str, Any] = {"kind": "pytorch", "accelerators": accelerators}
    job |= {"elastic": {"min_replicas": nodes, "max_replicas": nodes + more}} if more else {"nodes": nodes}
    environment = with_jobs({"job": job}, teams={"llm": llm, "other": other}, governance={"engine": engine})
    types = environment_types({})
    policy = environment_policy(environment, types)
    flavor = next((each for each in policy.flavors.values() if "h100" in each.groups), None)
    most = policy.most("llm", flavor.name, GPU) if flavor else 0
    share = policy.teams["llm"].shares.get(flavor.name, {}).get(GPU) if flavor else None
    (manifest,) = render(planned(environment))
    asked, ids = asked_at_once(manifest), found(environment)
    assert ("JOB015" in ids) == (asked > most)
    guaranteed = share.nominal if share else 0
    assert ("JOB016" in ids) == (more > 0 and guaranteed < asked <= most)


def test_a_pod_that_is_too_large_by_itself_is_to_ask_for_less() -> None:
    teams = {"llm": {"quota": {"h100": {"accelerators": 4}}, "share": "lend"}, "other": {"quota": {"h100": 1}}}
    (finding,) = (
        item for item in findings(with_jobs({"job": {"kind": "pytorch"}}, teams=teams)) if item.id == "JOB015"
    )
    assert "its 1 pod asks for 8 GPUs at once; team llm has 4 GPUs" in finding.message
    assert finding.hint.startswith("ask for less, or raise the quota")


def test_a_story_of_two_teams_in_numbers() -> None:
    """48 vCPUs a node are the quota; a pod takes the 44 that are free for it, and with the other node 88."""
    group = {"instance_type": "ml.g5.12xlarge", "count": 2, "zone": "usw2-az2"}
    teams = {name: {"quota": {"training": 1}, "borrow_limit_percent": 100} for name in ("a", "b")}
    job = {"kind": "pytorch", "team": "a", "group": "training", "nodes": 2}
    environment = with_jobs({"job": job}, groups={"training": group}, teams=teams)
    pod = planned(environment).pod.resources
    assert (2 * pod["cpu"], 2 * pod[GPU]) == (88_000, 8)
    policy = environment_policy(environment, environment_types({}))
    assert policy.most("a", "ml.g5.12xlarge", "cpu") == 96_000
    assert found(environment) == set()


def test_kueue_admits_an_elastic_job_whole_and_kai_by_its_fewest_workers() -> None:
    job = {"kind": "pytorch", "nodes": 4, "elastic": {"min_replicas": 2, "max_replicas": 4}}
    teams = {"llm": {"quota": {"h100": 2}, "share": "lend"}}
    refused = {
        engine: "JOB015" in found(with_jobs({"job": job}, teams=teams, governance={"engine": engine}))
        for engine in ("hyperpod", "kueue", "kai", "yunikorn")
    }
    assert refused == {"hyperpod": True, "kueue": True, "kai": False, "yunikorn": False}
