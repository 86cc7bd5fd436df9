"""Jobs against quotas: what the rules allow is what the manifests ask for, whatever the teams."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from job_environment import planned, with_jobs
from podwright.cdk8s_charts.jobs.render import render
from podwright.config.catalog.instance_types import environment_types
from podwright.planning.quota.policy import environment_policy
from podwright.planning.rules.run import findings
from podwright.planning.simulation.planned_workload import planned_workload

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
    if manifest["kind"] == "HyperPodPyTorchJob":
        workers = manifest["spec"]["replicaSpecs"]
    else:
        workers = list(manifest["spec"]["pytorchReplicaSpecs"].values())
    (worker,) = workers
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
    # Kueue grows a HyperPodPyTorchJob only, and KAI and YuniKorn a PyTorchJob.
    own = more > 0 and engine in ("hyperpod", "kueue")
    job: dict[str, Any] = {"kind": "hyperpod_pytorch" if own else "pytorch", "accelerators": accelerators}
    elastic = {"min_replicas": nodes, "max_replicas": nodes + more} | ({"step": 1} if own else {})
    job |= {"elastic": elastic} if more else {"nodes": nodes}
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


@pytest.mark.parametrize(
    ("nodes", "accelerators", "head", "fits"),
    [
        (8, 8, 0, True),
        (8, 8, 1, False),
        (7, 8, 8, True),
        # Two workers share a node; the head takes the other half of the last one, or what is left of all.
        (15, 4, 4, True),
        (16, 4, 1, False),
    ],
)
@pytest.mark.parametrize("kind", ["ray", "ray_cluster"])
def test_a_head_with_gpus_needs_a_node_that_has_them(
    kind: str, nodes: int, accelerators: int, head: int, fits: bool
) -> None:
    job = {"kind": kind, "ray_version": "2.49.0", "nodes": nodes, "accelerators": accelerators, "efa": 4}
    environment = with_jobs({"job": job | {"head": {"accelerators": head}}}, teams={"llm": {"quota": {"h100": 8}}})
    assert ("JOB005" not in found(environment)) == fits
    # Its quota counts the head, too: 64 GPUs are all that there are.
    assert ("JOB015" not in found(environment)) == (nodes * accelerators + head <= 64)
    (workload, *_) = [planned_workload(planned(environment), 0, 0.0)]
    gpus = [
        part["count"] * int(part["template"]["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
        for part in workload["spec"]["podSets"]
    ]
    assert sum(gpus) == nodes * accelerators + head


def test_a_head_is_no_larger_than_a_node() -> None:
    job = {"kind": "ray_cluster", "ray_version": "2.49.0", "head": {"accelerators": 9}}
    paths = {item.path for item in findings(with_jobs({"job": job})) if item.id == "JOB006"}
    assert paths == {"jobs.job.head.accelerators"}


def test_groups_beyond_the_quota_are_found_and_the_first_one_is_what_it_starts_with() -> None:
    teams = {"llm": {"quota": {"h100": 4}, "borrow_limit_percent": 1}, "other": {"quota": {"h100": 4}}}
    job = {"kind": "leader_worker_set", "nodes": 2}
    ids = [found(with_jobs({"job": job | {"replicas": count}}, teams=teams)) for count in (2, 3)]
    assert ["JOB039" in each for each in ids] == [False, True]
    assert not any("JOB015" in each for each in ids)
    assert "JOB015" in found(with_jobs({"job": job | {"nodes": 5}}, teams=teams))


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("leader_worker_set", "leader_worker_set"),
        ("jobset", "kubeflow_trainer"),
        ("train", "kubeflow_trainer"),
        ("ray_cluster", "kuberay"),
    ],
)
def test_a_kind_is_refused_until_its_operator_is_installed(kind: str, part: str) -> None:
    job: dict[str, Any] = {"kind": kind, "nodes": 2} | ({"ray_version": "2.49.0"} if kind == "ray_cluster" else {})
    environment = with_jobs({"job": job})
    (finding,) = [item for item in findings(environment) if item.id == "JOB019"]
    assert f"`{part}: {{}}` under platform" in finding.hint
    on = environment.platform.model_validate(environment.platform.model_dump() | {part: {}})
    assert "JOB019" not in found(environment.model_copy(update={"platform": on}))


def test_an_endpoint_that_scales_beyond_its_quota_is_found() -> None:
    teams = {"llm": {"quota": {"h100": 2}, "borrow_limit_percent": 1}}
    query = {"a": {"query": "b", "server": "http://prometheus.example", "target": 1}}
    job: dict[str, Any] = {"kind": "jumpstart", "model_id": "m"}
    ids = [
        found(with_jobs({"job": job | {"autoscaling": {"max_replicas": most, "prometheus": query}}}, teams=teams))
        for most in (2, 3)
    ]
    assert ["JOB017" in each for each in ids] == [False, True]
