"""HyperPodPyTorchJob: against its schema and against AWS's own model, and what follows from group, team and policy."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from hyp_jobs import MODEL, accepted, compared, has_options, made_by_hyp
from job_environment import PODS, aws_model, planned, rendered, with_jobs
from podwright.config.loading.load import load_environment
from podwright.config.settings.jobs.pytorch import Elastic, HyperPodPyTorchJob
from podwright.sandbox.kubernetes import custom_kinds

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
STEP = {"min_replicas": 2, "max_replicas": 8, "step": 2}
VALUES = {"min_replicas": 2, "max_replicas": 8, "values": [2, 4, 8]}
RULES = {
    "start": {"pattern": "Experiment configuration", "start_seconds": 120},
    "hang": {"pattern": r"step (\d+)", "every_seconds": 300, "stop_pattern": "Training finished"},
    "slow": {"pattern": r"samples/s: (\d+)", "threshold": 80, "operator": "lteq", "data_points": 25},
}
EVERYTHING: dict[str, Any] = {
    "priority": "training",
    "command": ["train.py", "--model", "llama"],
    "mounts": {"/fsx": "fsx-llm"},
    "service_account": "trainer",
    "labels": {"example.com/project": "llama"},
    "log_rules": RULES,
    "restarts": {"retries": 10, "avoid_repeat_offenders": 2, "scale_up_pause_seconds": 60},
    "active_deadline_seconds": 86400,
    "startup_deadline_seconds": 900,
    "fault_deadline_seconds": 3600,
    "clean_pods": "only_complete",
    "keep_seconds": -1,
    "parallelism": {"tensor": 8},
}
# AWS's model has the fields of nodes for other pods too, so JOB028 refuses these.
_NODES = {name: PODS["affinity"][name] for name in ("nodes", "prefer")}
CASES: dict[str, dict[str, Any]] = {
    "one node": {},
    "fixed size with spares": {
        "nodes": 4,
        "spares": 1,
        "checkpoints": {"tiered": True, "s3": "s3://acme-checkpoints/a"},
    },
    "elastic by steps": {"elastic": STEP} | EVERYTHING,
    "elastic by values": {"elastic": VALUES, "nodes": 4},
    "elastic with a base": {"elastic": STEP | {"extra_priority": "extra"}, "priority": "training"},
    "checkpointless": {"nodes": 2, "checkpoints": {"checkpointless": True}, "command": ["train.py"]},
    "part of a node": {"accelerators": 2, "shm_gib": 0},
    "all of pods": PODS | {"affinity": _NODES, "checkpoints": {"checkpointless": True}, "nodes": 2},
    "launched by the image": {"nodes": 2, "launch": "image", "command": ["/entrypoint.sh"]},
}


@pytest.fixture(scope="module")
def strict() -> type[BaseModel]:
    return aws_model(MODEL, "_HyperPodPytorchJob")


@pytest.mark.parametrize("name", CASES)
def test_fits_the_schema_and_a_pod_template(name: str) -> None:
    (manifest,) = rendered("hyperpod_pytorch", **CASES[name])
    assert custom_kinds.violations(manifest) == []


@pytest.mark.parametrize("name", CASES)
def test_fits_the_model_of_aws(name: str, strict: type[BaseModel]) -> None:
    (manifest,) = rendered("hyperpod_pytorch", **CASES[name])
    accepted(strict, manifest)


def test_the_model_of_aws_is_strict(strict: type[BaseModel]) -> None:
    (manifest,) = rendered("hyperpod_pytorch")
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["immage"] = "x"
    with pytest.raises(ValidationError, match="immage"):
        accepted(strict, manifest)


def test_hyp_makes_the_same_of_it() -> None:
    """Of every job in one piece; a second part, or a volume at two paths, is not to be had of its options."""
    jobs = [json.loads(json.dumps(rendered("hyperpod_pytorch", **case)[0])) for case in CASES.values()]
    whole = [job for job in jobs if has_options(job["spec"])]
    assert len(whole) >= len(CASES) - 2
    for job, made in zip(whole, made_by_hyp(whole), strict=True):
        for volume in compared(made)["claims"]:
            volume["persistentVolumeClaim"].pop("readOnly")
        assert compared(made) == compared(job["spec"])


def test_steps_beside_values_are_refused() -> None:
    """The schema's own rule, which stands in prose where it comes from."""
    (manifest,) = rendered("hyperpod_pytorch", elastic=STEP)
    manifest["spec"]["elasticPolicy"]["replicaDiscreteValues"] = [2, 4]
    assert len(custom_kinds.violations(manifest)) == 1


def test_schema_and_model_of_aws_know_the_same_fields(strict: type[BaseModel]) -> None:
    """The guide names one field that release 3.12.0 of the model lacks."""
    schema = custom_kinds.definition("sagemaker.amazonaws.com", "HyperPodPyTorchJob")
    spec = schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert fields_of(spec) - fields_of(strict) == {"runPolicy.logMonitoringConfiguration.faultOnMatch"}
    assert fields_of(strict) - fields_of(spec) == set()


def fields_of(known: Any) -> set[str]:
    """Paths of all fields outside of pod templates."""
    if isinstance(known, dict):
        known = known.get("items", known)
        children = known.get("properties", {})
    else:
        children = {name: _model(field.annotation) for name, field in known.model_fields.items()} if known else {}
    actual = set()
    for name, child in children.items():
        actual |= {name} | (
            {f"{name}.{inner}" for inner in fields_of(child)} if name != "template" and child else set()
        )
    return actual


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model, get_args(annotation))), None)


def spec_of(**job: Any) -> dict[str, Any]:
    (manifest,) = rendered("hyperpod_pytorch", **job)
    return manifest["spec"]


def test_elastic_by_steps() -> None:
    spec = spec_of(elastic=STEP)
    assert spec["elasticPolicy"] == {
        "minReplicas": 2,
        "maxReplicas": 8,
        "replicaIncrementStep": 2,
        "scalingTimeoutInSeconds": 60,
        "gracefulShutdownTimeoutInSeconds": 600,
        "faultyScaleDownTimeoutInSeconds": 30,
    }
    (replicas,) = spec["replicaSpecs"]
    assert (replicas["replicas"], replicas["maxReplicas"]) == (2, 8)
    pod = replicas["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 600
    assert {"name": "HYPERPOD_SIGNAL_COORDINATION", "value": "distributed"} in pod["containers"][0]["env"]


def test_elastic_by_values() -> None:
    spec = spec_of(elastic=VALUES, nodes=4)
    assert spec["elasticPolicy"]["replicaDiscreteValues"] == [2, 4, 8]
    assert "replicaIncrementStep" not in spec["elasticPolicy"]
    assert spec["replicaSpecs"][0]["replicas"] == 4


def test_sizes_are_the_values_or_every_step() -> None:
    assert (Elastic.model_validate(STEP).sizes, Elastic.model_validate(VALUES).sizes) == ((2, 4, 6, 8), (2, 4, 8))


def test_only_what_is_beyond_the_minimum_can_be_taken_away() -> None:
    base, extra = spec_of(elastic=STEP | {"extra_priority": "extra"}, priority="training")["replicaSpecs"]
    assert (base["replicas"], "maxReplicas" in base) == (2, False)
    assert (extra["replicas"], extra["maxReplicas"]) == (0, 6)
    classes = [each["template"]["spec"]["priorityClassName"] for each in (base, extra)]
    assert classes == ["training-70", "extra-60"]


def test_a_job_with_two_priorities_has_no_label_that_gives_it_one() -> None:
    (manifest,) = rendered("hyperpod_pytorch", elastic=STEP | {"extra_priority": "extra"}, priority="training")
    labels = [manifest["metadata"]["labels"]]
    labels += [each["template"]["metadata"]["labels"] for each in manifest["spec"]["replicaSpecs"]]
    assert all("kueue.x-k8s.io/priority-class" not in each for each in labels)
    assert all("kueue.x-k8s.io/queue-name" in each for each in labels)


def test_a_whole_node_follows_from_the_group() -> None:
    pod = spec_of(nodes=2)["replicaSpecs"][0]["template"]["spec"]
    (container,) = pod["containers"]
    asked = container["resources"]["requests"]
    assert asked == container["resources"]["limits"]
    assert (asked["nvidia.com/gpu"], asked["vpc.amazonaws.com/efa"], "hugepages-2Mi" in asked) == ("8", "32", False)
    assert (asked["cpu"], asked["memory"]) == ("179", "1890Gi")
    assert pod["nodeSelector"] == {
        "sagemaker.amazonaws.com/instance-group-name": "h100",
        "node.kubernetes.io/instance-type": "ml.p5.48xlarge",
    }
    assert container["command"] + container["args"][:3] == [
        "hyperpodrun",
        "--nnodes=2",
        "--nproc-per-node=8",
        "--rdzv-backend=hyperpod",
    ]


def test_huge_pages_go_with_what_libfabric_is_told() -> None:
    job = {"kind": "hyperpod_pytorch", "nodes": 2}
    variables = {"node_software": {"variables": {"FI_EFA_USE_HUGE_PAGE": "1"}}}
    assert planned(with_jobs({"job": job}, cluster=variables)).pod.huge_pages_mib == 5120
    assert planned(with_jobs({"job": job | {"env": {"FI_EFA_USE_HUGE_PAGE": "1"}}})).pod.huge_pages_mib == 5120
    assert planned(with_jobs({"job": job})).pod.huge_pages_mib == 0
    (manifest,) = rendered("hyperpod_pytorch", nodes=2, huge_pages_mib=1024)
    pod = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"]["hugepages-2Mi"] == "1024Mi"


def test_a_pod_alone_needs_no_fabric() -> None:
    asked = spec_of()["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert asked.keys() == {"nvidia.com/gpu", "cpu", "memory"}


def test_a_part_of_a_node_is_a_part_of_everything() -> None:
    plan = planned(with_jobs({"job": {"kind": "hyperpod_pytorch", "nodes": 2, "accelerators": 2}}))
    assert plan.pod.resources == {"nvidia.com/gpu": 2, "cpu": 44000, "memory": 472 * 1024, "vpc.amazonaws.com/efa": 8}


def test_tiered_checkpoints_take_their_memory_first() -> None:
    overrides = {"cluster": {"tiered_checkpoints": {"memory_percent": 25}}}
    whole = planned(with_jobs({"job": {"kind": "hyperpod_pytorch"}})).pod.resources["memory"]
    rest = planned(with_jobs({"job": {"kind": "hyperpod_pytorch"}}, **overrides)).pod.resources["memory"]
    assert whole - rest == 2048 * 1024 // 4


def test_checkpointless_keeps_the_agent_the_first_process() -> None:
    pod = spec_of(nodes=2, checkpoints={"checkpointless": True}, command=["train.py"])["replicaSpecs"][0]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["command"][:2] == ["/bin/sh", "-c"]
    assert container["command"][2].endswith('exec "$@"')
    assert container["args"][0] == "hyperpodrun"
    assert "--inprocess-restart" in container["args"]
    assert [port["containerPort"] for port in container["ports"]] == [8080, *range(9000, 9006)]
    assert (pod["spec"]["hostNetwork"], container["securityContext"]) == (True, {"privileged": True})
    assert {"name": "HPCT_USE_ROOTLESS", "value": "1"} in container["env"]


def test_pods_go_only_to_healthy_nodes_and_through_the_taints_of_their_group() -> None:
    taint = {"key": "reserved", "value": "llm", "effect": "NoSchedule"}
    group = {"instance_type": "ml.p5.48xlarge", "count": 8, "zone": "usw2-az2", "taints": [taint]}
    (manifest,) = rendered("hyperpod_pytorch", overrides={"groups": {"h100": group}})
    pod = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]
    assert pod["tolerations"] == [taint | {"operator": "Equal"}]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (needed,) = term["matchExpressions"]
    assert needed == {"key": "sagemaker.amazonaws.com/node-health-status", "operator": "In", "values": ["Schedulable"]}


def test_one_ultraserver_where_it_is_large_enough() -> None:
    group = {"instance_type": "ml.p6e-gb200.36xlarge", "count": 18, "zone": "usw2-az2"}
    plan = {"teams": {"llm": {"quota": {"gb200": 18}}}, "groups": {"gb200": group}}
    domain, manifest = rendered(
        "hyperpod_pytorch", overrides=plan, group="gb200", nodes=18, parallelism={"tensor": 4, "expert": 18}
    )
    assert domain["spec"]["numNodes"] == 18
    assert custom_kinds.violations(manifest) == []
    template = manifest["spec"]["replicaSpecs"][0]["template"]
    claims = template["spec"]["resourceClaims"]
    assert claims[0]["resourceClaimTemplateName"] == domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    level = "topology.k8s.aws/ultraserver-id"
    assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-required-topology": level}
    assert template["spec"]["nodeSelector"]["kubernetes.io/arch"] == "arm64"
    values = {each["name"]: each["value"] for each in template["spec"]["containers"][0]["env"]}
    assert (values["TENSOR_MODEL_PARALLEL_SIZE"], values["EXPERT_MODEL_PARALLEL_SIZE"]) == ("4", "18")
    _, far = rendered("hyperpod_pytorch", overrides=plan, group="gb200", nodes=36)
    annotations = far["spec"]["replicaSpecs"][0]["template"]["metadata"]["annotations"]
    assert annotations == {"kueue.x-k8s.io/podset-preferred-topology": level}


@pytest.mark.parametrize(
    ("nodes", "settings", "together"),
    [
        pytest.param(18, {"team": None, "namespace": "research"}, True, id="no team, so no queue"),
        pytest.param(18, {"governance": {"engine": "yunikorn"}}, True, id="an engine that does not place"),
        pytest.param(18, {}, False, id="a queue that places"),
        pytest.param(36, {"team": None, "namespace": "research"}, False, id="more than one UltraServer holds"),
    ],
)
def test_without_a_queue_pods_go_where_their_first_one_is(nodes: int, settings: dict[str, Any], together: bool) -> None:
    group = {"instance_type": "ml.p6e-gb200.36xlarge", "count": 36, "zone": "usw2-az2"}
    overrides: dict[str, Any] = {"teams": {"llm": {"quota": {"gb200": 36}}}, "groups": {"gb200": group}}
    overrides |= {"governance": settings["governance"]} if "governance" in settings else {}
    job = {name: settings[name] for name in ("team", "namespace") if name in settings}
    _, manifest = rendered("pytorch", overrides=overrides, group="gb200", nodes=nodes, **job)
    template = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    term = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "job"}},
        "topologyKey": "topology.k8s.aws/ultraserver-id",
    }
    expected = {"requiredDuringSchedulingIgnoredDuringExecution": [term]} if together else None
    assert template["spec"]["affinity"].get("podAffinity") == expected
    assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "job"


@pytest.mark.parametrize(
    ("elastic", "words"),
    [
        (STEP | {"values": [2, 8]}, "one of `step` and `values`"),
        ({"min_replicas": 2, "max_replicas": 8}, "one of `step` and `values`"),
        (STEP | {"min_replicas": 9}, "min_replicas of at most max_replicas"),
        (STEP | {"step": 4}, "4 does not divide 8 - 2"),
        (VALUES | {"values": [2, 8, 4]}, "in rising order"),
        (VALUES | {"values": [4, 8]}, "values from min_replicas to max_replicas"),
    ],
)
def test_elastic_sizes_that_contradict_each_other(elastic: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        with_jobs({"job": {"kind": "hyperpod_pytorch", "elastic": elastic}})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"pattern": "loss (", "every_seconds": 1}, "this one is none"),
        ({"pattern": "loss"}, "otherwise it finds nothing"),
        ({"pattern": "loss", "threshold": 2, "operator": "gt"}, "a group around the number"),
        ({"pattern": r"loss (\d+)", "threshold": 2}, "threshold and operator together"),
    ],
)
def test_log_rules_that_could_find_nothing(rule: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        with_jobs({"job": {"kind": "hyperpod_pytorch", "log_rules": {"a": rule}}})


def test_log_rules_of_the_scenarios_match_lines_that_begin_with_the_time() -> None:
    # hyperpod-elastic-agent 1.1.3 takes re.match.
    jobs = [job for file in ENVIRONMENTS.glob("*.yaml") for job in load_environment(file).environment.jobs.values()]
    rules = [rule for job in jobs if isinstance(job, HyperPodPyTorchJob) for rule in job.log_rules.values()]
    patterns = [pattern for rule in rules for pattern in (rule.pattern, rule.stop_pattern) if pattern]
    assert patterns
    assert [pattern for pattern in patterns if not pattern.startswith(".*")] == []
