"""Each kind of job against our schema of its operator, where we have one, and what the kinds are there for."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from pydantic import ValidationError

from job_environment import PODS, UPSTREAM_CASES, aws_model, planned, rendered, with_jobs
from podwright.cdk8s_charts.jobs.recipe import arguments, script
from podwright.sandbox.kubernetes import custom_kinds

MODEL = {"model_name": "mistral", "model": {"bucket": "acme-models", "location": "mistral/7b"}}
CASES: dict[str, tuple[str, dict[str, Any]]] = UPSTREAM_CASES | {
    "endpoint from a bucket": ("inference", {**MODEL, "replicas": 2, "accelerators": 1, "endpoint": "mistral"}),
    "endpoint from a hub": (
        "inference",
        {"model_name": "m", "model": {"hugging_face": "mistralai/Mistral-7B-v0.1", "token_secret": "hf"}},
    ),
    "endpoint with variables": (
        "inference",
        {
            **MODEL,
            **{name: PODS[name] for name in ("requests",)},
            "secrets": {"hub": {"env": {"HF_TOKEN": "token"}}},
            "config_maps": {"settings": {"env": {"LR": "lr"}}},
            "affinity": {"nodes": PODS["affinity"]["nodes"]},
        },
    ),
    "space with what it has of pods": (
        "space",
        {
            **{name: PODS[name] for name in ("security", "tolerations", "affinity", "requests")},
            "secrets": {"hub": {"env": {"HF_TOKEN": "token"}}},
        },
    ),
    "space": ("space", {"accelerators": 1, "mounts": {"/data": "data"}, "priority": "extra", "template": "lab"}),
}


def only(kind: str, **job: Any) -> dict[str, Any]:
    (manifest,) = rendered(kind, **job)
    return manifest


@pytest.mark.parametrize("name", sorted(CASES.keys() - UPSTREAM_CASES))
def test_fits_our_schema_of_its_operator(name: str) -> None:
    kind, job = CASES[name]
    assert custom_kinds.violations(only(kind, **job)) == []


@pytest.mark.parametrize("name", CASES)
def test_its_queue_is_the_teams(name: str) -> None:
    kind, job = CASES[name]
    manifest = only(kind, **job)
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "hyperpod-ns-llm-localqueue"


@pytest.mark.parametrize("version", ["1.33", "1.34", "1.35"])
def test_a_plain_job_fits_kubernetes(version: str) -> None:
    manifest = only("job", nodes=3, command=["sh", "-c", "true"], active_deadline_seconds=60, **PODS)
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", ["train", "train with what it has of pods"])
def test_trainer_takes_every_field_of_a_train_job(name: str) -> None:
    """The model drops what it does not know, so what comes back is what went in only when it knows everything."""
    api = import_module("kubeflow_trainer_api.models.trainer_v1alpha1_train_job")
    manifest = only(*CASES[name][:1], **CASES[name][1])
    assert without_nothing(api.TrainerV1alpha1TrainJob.from_dict(manifest).to_dict()) == manifest


def without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nothing(item) for key, item in value.items() if item is not None}
    return [without_nothing(item) for item in value] if isinstance(value, list) else value


def test_hyperpod_resumes_a_pytorch_job() -> None:
    annotations = only("pytorch", auto_resume=3)["metadata"]["annotations"]
    assert annotations == {
        "sagemaker.amazonaws.com/enable-job-auto-resume": "true",
        "sagemaker.amazonaws.com/job-max-retry-count": "3",
    }


@pytest.mark.parametrize(("job", "processes"), [({}, "8"), ({"accelerators": 2}, "2"), ({"group": "system"}, "1")])
def test_torchrun_starts_a_process_for_each_gpu_and_one_without(job: dict[str, Any], processes: str) -> None:
    assert only("pytorch", **job)["spec"]["nprocPerNode"] == processes
    policy = only("pytorch", **job, elastic={"min_replicas": 1, "max_replicas": 2, "max_restarts": 1})["spec"]
    assert str(policy["elasticPolicy"]["nProcPerNode"]) == processes


def test_ray_leaves_room_for_its_head_on_a_node() -> None:
    spec = only("ray", nodes=2, ray_version="2.49.0", command=["python", "a b.py"])["spec"]
    assert spec["entrypoint"] == "python 'a b.py'"
    cluster = spec["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    (worker,) = cluster["workerGroupSpecs"]
    asked = [pod["containers"][0]["resources"]["requests"] for pod in (head, worker["template"]["spec"])]
    assert asked[0] == {"cpu": "4", "memory": "16Gi"}
    assert asked[1]["nvidia.com/gpu"] == "8"
    alone = planned(with_jobs({"job": {"kind": "pytorch"}})).pod.resources
    assert (asked[1]["cpu"], alone["cpu"]) == ("175", 179000)
    assert "submitterPodTemplate" not in spec, "the head submits"
    assert head["nodeSelector"] == worker["template"]["spec"]["nodeSelector"]


def test_ray_grows_only_where_it_may() -> None:
    cluster = only("ray", nodes=1, max_nodes=3, ray_version="2.49.0", command=["a"])["spec"]["rayClusterSpec"]
    (worker,) = cluster["workerGroupSpecs"]
    assert (worker["replicas"], worker["minReplicas"], worker["maxReplicas"]) == (1, 1, 3)
    assert cluster["enableInTreeAutoscaling"]
    assert "enableInTreeAutoscaling" not in only("ray", ray_version="2.49.0")["spec"]["rayClusterSpec"]


@pytest.mark.parametrize("engine", ["hyperpod", "kueue", "kai"])
@pytest.mark.parametrize("kind", ["ray", "ray_cluster"])
def test_a_ray_cluster_that_grows_says_so_to_kueue(engine: str, kind: str) -> None:
    """Without, its webhook refuses every cluster in a queue that grows by itself."""
    job = {"overrides": {"governance": {"engine": engine}}, "ray_version": "2.49.0"}
    marks = [only(kind, **job, **more)["metadata"].get("annotations", {}) for more in ({}, {"max_nodes": 3})]
    elastic = {"kueue.x-k8s.io/elastic-job": "true"}
    assert [elastic.items() <= each.items() for each in marks] == [False, engine != "kai"]
    alone = only(kind, ray_version="2.49.0", max_nodes=3, team=None)
    assert "annotations" not in alone["metadata"]


def test_a_ray_cluster_stays_and_its_head_may_have_gpus() -> None:
    spec = only("ray_cluster", nodes=2, ray_version="2.49.0", head={"accelerators": 4, "vcpu": 32})["spec"]
    head = spec["headGroupSpec"]
    (container,) = head["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"nvidia.com/gpu": "4", "cpu": "32", "memory": "8Gi"}
    # Ray counts what its containers have, and gives the head tasks.
    assert head["rayStartParams"] == {"dashboard-host": "0.0.0.0"}
    plain = only("ray_cluster", ray_version="2.49.0")["spec"]["headGroupSpec"]
    assert plain["rayStartParams"] == {"dashboard-host": "0.0.0.0", "num-cpus": "0", "num-gpus": "0"}
    neuron = {"trn": {"instance_type": "ml.trn2.48xlarge", "count": 2, "zone": "usw2-az2"}}
    trained = {"overrides": {"groups": neuron}, "group": "trn", "team": None}
    spec = only("ray_cluster", ray_version="2.49.0", head={"accelerators": 2}, **trained)["spec"]
    (container,) = spec["headGroupSpec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["aws.amazon.com/neurondevice"] == "2"


def test_pods_of_a_jobset_are_divided_and_find_the_first_of_them() -> None:
    spec = only("jobset", nodes=6, slices=3, retries=2, command=["torchrun", "a.py"])["spec"]
    (part,) = spec["replicatedJobs"]
    batch = part["template"]["spec"]
    assert (part["replicas"], batch["parallelism"], batch["completions"]) == (3, 2, 2)
    # One failed pod ends the set, which makes all anew, and not its Job alone.
    assert (batch["backoffLimit"], spec["failurePolicy"]) == (0, {"maxRestarts": 2})
    (container,) = batch["template"]["spec"]["containers"]
    variables = {item["name"]: item.get("value") for item in container["env"]}
    assert variables["MASTER_ADDR"] == variables["PET_MASTER_ADDR"] == f"job-{part['name']}-$(SLICE_INDEX)-0.job"
    assert variables["PET_NNODES"] == "2"
    # Kubernetes expands a variable only where it comes first.
    assert list(variables).index("SLICE_INDEX") < list(variables).index("MASTER_ADDR")
    own = only("jobset", env={"MASTER_ADDR": "10.0.0.1"})["spec"]["replicatedJobs"][0]["template"]["spec"]
    (container,) = own["template"]["spec"]["containers"]
    assert {"name": "MASTER_ADDR", "value": "10.0.0.1"} in container["env"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": batch}
    kubernetes_validate.validate(job, "1.34", strict=True)


def test_leaders_run_what_they_are_told() -> None:
    spec = only("leader_worker_set", nodes=4, replicas=2, command=["work"], leader_command=["lead"])["spec"]
    template = spec["leaderWorkerTemplate"]
    assert (spec["replicas"], template["size"], template["restartPolicy"]) == (2, 4, "RecreateGroupOnPodRestart")
    pods = [template[f"{name}Template"]["spec"]["containers"][0] for name in ("leader", "worker")]
    assert [(pod["name"], pod["command"]) for pod in pods] == [("leader", ["lead"]), ("worker", ["work"])]
    assert pods[0]["resources"] == pods[1]["resources"]
    alike = only("leader_worker_set", restart="pod", wait_for_leader=True)["spec"]
    assert (alike["startupPolicy"], alike["leaderWorkerTemplate"]["restartPolicy"]) == ("LeaderReady", "None")
    assert "leaderTemplate" not in alike["leaderWorkerTemplate"]


@pytest.mark.parametrize("kind", ["ray_cluster", "jobset", "leader_worker_set"])
@pytest.mark.parametrize("engine", ["hyperpod", "kueue", "kai", "yunikorn"])
def test_pods_of_every_kind_carry_their_queue(kind: str, engine: str) -> None:
    written = {"ray_cluster": {"ray_version": "2.49.0"}}.get(kind, {})
    overrides = {"governance": {"engine": engine}}
    manifest = only(kind, overrides=overrides, nodes=2, **written)
    queue = {name for name in manifest["metadata"]["labels"] if "queue" in name}
    assert queue
    templates = [each["metadata"] for each in templates_of(manifest["spec"])]
    assert all(queue <= each.get("labels", {}).keys() for each in templates)
    gang = [each for each in templates if "yunikorn.apache.org/task-groups" in each.get("annotations", {})]
    assert bool(gang) == (engine == "yunikorn" and kind != "ray_cluster")


def templates_of(value: Any) -> list[dict[str, Any]]:
    """All pod templates in an object."""
    if isinstance(value, list):
        return [each for item in value for each in templates_of(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if "containers" in (value.get("spec") or {}) else []
    return own + [each for item in value.values() for each in templates_of(item)]


def test_nccl_test_runs_on_every_gpu_and_hands_its_variables_on() -> None:
    spec = only("nccl_test", nodes=2)["spec"]
    (launcher,) = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    command = launcher["command"]
    assert command[: command.index("--bind-to")] == ["mpirun", "--allow-run-as-root", "-np", "16", "-N", "8"]
    assert [command[at + 1] for at, part in enumerate(command) if part == "-x"][:3] == [
        "LD_LIBRARY_PATH",
        "PATH",
        "FI_EFA_USE_HUGE_PAGE",
    ]
    program = command.index("/opt/nccl-tests/build/all_reduce_perf")
    assert command[program + 1 : program + 7] == ["-b", "8", "-e", "16G", "-f", "2"]
    assert "nvidia.com/gpu" not in launcher["resources"]["requests"]
    assert spec["slotsPerWorker"] == 8


# What all_reduce_perf of nccl-tests 2.17 prints, shortened to its first and last size.
RESULT = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    55.31    0.00    0.00      0    55.02    0.00    0.00      0
 17179869184    4294967296     float     sum      -1  66107.2  259.88  {busbw}      0  66144.8  259.73  486.99      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 128.7
"""


@pytest.mark.parametrize(
    ("printed", "code", "words"),
    [
        (RESULT.format(busbw="487.28"), 0, "Avg bus bandwidth"),
        (RESULT.format(busbw="312.10"), 1, "312.10 GB/s is below the expected 430"),
        ("# nothing measured\n", 1, "no result"),
    ],
)
def test_nccl_test_fails_below_what_is_expected(printed: str, code: int, words: str, tmp_path: Any) -> None:
    spec = only("nccl_test", nodes=2, expect_gb_per_second=430)["spec"]
    (launcher,) = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    shell, flag, script, dashes, *_ = launcher["command"]
    (tmp_path / "printed").write_text(printed)
    done = subprocess.run(
        [shell, flag, script, dashes, "cat", str(tmp_path / "printed")], capture_output=True, text=True
    )
    assert (done.returncode, words in done.stdout) == (code, True), done


def test_a_notebook_takes_parts_of_two_gpus_with_kai() -> None:
    overrides = {"governance": {"engine": "kai", "kai": {"gpu_sharing": True}}}
    (manifest,) = rendered(
        "job", overrides=overrides, gpu_share={"memory_mib": 20480, "devices": 2}, command=["jupyter", "lab"]
    )
    template = manifest["spec"]["template"]
    assert template["metadata"]["annotations"] == {"gpu-memory": "20480", "gpu-fraction-num-devices": "2"}
    assert template["spec"]["schedulerName"] == "kai-scheduler"
    (container,) = template["spec"]["containers"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    kubernetes_validate.validate(manifest, "1.34", strict=True)


@pytest.mark.parametrize(
    ("minutes", "shutdown"), [(None, None), (45, {"enabled": True, "idleTimeoutInMinutes": 45, "detection": {}})]
)
def test_a_space_that_nobody_uses_stops_only_where_the_file_says_when(minutes: int | None, shutdown: Any) -> None:
    """One that keeps running holds its GPU; one that stops unasked takes somebody's work along."""
    assert only("space", accelerators=1, idle_minutes=minutes)["spec"].get("idleShutdown") == shutdown


def test_a_space_names_the_template_that_limits_it() -> None:
    assert only("space", accelerators=1, template="lab")["spec"]["templateRef"] == {"name": "lab"}
    assert "templateRef" not in only("space", accelerators=1)["spec"]


@pytest.mark.parametrize(
    ("engine", "labels", "scheduler"),
    [
        ("hyperpod", {"kueue.x-k8s.io/queue-name": "hyperpod-ns-llm-localqueue"}, None),
        ("kueue", {"kueue.x-k8s.io/queue-name": "llm"}, None),
        ("kai", {"kai.scheduler/queue": "llm.h100", "kai.scheduler/node-pool": "h100"}, "kai-scheduler"),
        ("yunikorn", {"yunikorn.apache.org/queue": "root.h100.llm", "yunikorn.apache.org/app-id": "job"}, "yunikorn"),
    ],
)
def test_each_engine_finds_the_pods_of_a_job(engine: str, labels: dict[str, str], scheduler: str | None) -> None:
    (manifest,) = rendered("pytorch", overrides={"governance": {"engine": engine}}, nodes=2)
    template = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    assert labels.items() <= template["metadata"]["labels"].items()
    assert template["spec"].get("schedulerName") == scheduler
    assert manifest["metadata"]["namespace"] == ("hyperpod-ns-llm" if engine == "hyperpod" else "team-llm")


def test_without_teams_a_job_waits_in_no_queue() -> None:
    (manifest,) = rendered("job", overrides={"teams": {}, "governance": {"priorities": {}}}, namespace="research")
    assert manifest["metadata"]["namespace"] == "research"
    assert not any("queue" in label for label in manifest["metadata"]["labels"])


def test_a_partition_in_place_of_gpus() -> None:
    group = {
        "instance_type": "ml.p5.48xlarge",
        "count": 8,
        "zone": "usw2-az2",
        "labels": {"nvidia.com/mig.config": "all-1g.10gb"},
    }
    plan = planned(with_jobs({"job": {"kind": "job", "partition": "mig-1g.10gb"}}, groups={"h100": group}))
    assert plan.pod.resources["nvidia.com/mig-1g.10gb"] == 1
    assert plan.pod.resources["cpu"] == 3000


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"kind": "ray", "ray_version": "2.49.0", "nodes": 4, "max_nodes": 2}, "max_nodes of at least nodes"),
        ({"kind": "jobset", "nodes": 4, "slices": 3}, "3 does not divide 4"),
        ({"kind": "ray_cluster", "ray_version": "2.49.0", "nodes": 4, "max_nodes": 2}, "max_nodes of at least nodes"),
        ({"kind": "job", "gpu_share": {"devices": 2}}, "one of `fraction` and `memory_mib`"),
        ({"kind": "inference", "model_name": "m", "model": {}}, "one of `bucket`, `file_system` and `hugging_face`"),
        ({"kind": "horovod"}, "does not match any of the expected tags"),
    ],
)
def test_settings_that_contradict_each_other(job: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        with_jobs({"job": job})


def test_the_launcher_of_recipes_learns_queue_nodes_and_elastic_policy() -> None:
    job = {"kind": "recipe", "path": "fine-tuning/llama/x", "elastic": _SIZES, "mounts": {"/data": "data"}}
    environment = with_jobs({"job": job | {"priority": "training", "overrides": {"recipes.a": "b c"}}})
    first, *others = arguments(planned(environment))
    # The launcher looks for the recipe in the first one.
    assert first == "recipes=fine-tuning/llama/x"
    provided = dict(argument.split("=", 1) for argument in others)
    assert (
        provided.items()
        >= {
            "instance_type": "p5.48xlarge",
            "recipes.trainer.num_nodes": "1",
            "cluster.use_hyperpod_pytorch_job": "true",
            "cluster.queue_name": "hyperpod-ns-llm-localqueue",
            "cluster.priority_class_name": "training-priority",
            "++recipes.elastic_policy.max_nodes": "4",
            "++recipes.training_config.training_args.override_training_dir": "true",
            "+cluster.persistent_volume_claims.0.claimName": "data",
        }.items()
    )
    assert not any("replica_increment_step" in argument for argument in others)


_SIZES = {"min_replicas": 1, "max_replicas": 4, "values": [1, 2, 4]}
_MAIN = "import json, sys; print(json.dumps(sys.argv[1:]))"
_RECIPE = """
scale_config:
  1: {trainer: {num_nodes: 1}, training_config: {training_args: {train_batch_size: 128, learning_rate: 0.0004}}}
  2: {trainer: {num_nodes: 2}, training_config: {training_args: {uneven_batch: {use_uneven_batch: true}}}}
  4: {trainer: {num_nodes: 4}}
  8: {trainer: {num_nodes: 8}}
"""


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the script of a recipe in a collection whose launcher prints what it is words."""
    recipe = tmp_path / "recipes_collection/recipes/fine-tuning/llama/x.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(_RECIPE)
    (tmp_path / "main.py").write_text(_MAIN)
    # The python3 with the launcher's requirements, of which the script itself uses PyYAML.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def launched(elastic: dict[str, Any] | None) -> subprocess.CompletedProcess[str]:
        job = {"kind": "recipe", "path": "fine-tuning/llama/x", "elastic": elastic, "overrides": {"recipes.a": "b c"}}
        text = script(planned(with_jobs({"job": job})))
        variables = {"PATH": path, "SAGEMAKER_TRAINING_LAUNCHER_DIR": str(tmp_path)}
        return subprocess.run(["bash", "-s", "dry_run=true"], input=text, env=variables, capture_output=True, text=True)

    return launched


def test_an_elastic_recipe_keeps_its_settings_for_the_sizes_of_the_job(launch: Callable[..., Any]) -> None:
    words = json.loads(launch(_SIZES).stdout)
    assert words[0] == "recipes=fine-tuning/llama/x"
    assert words[-1] == "dry_run=true"
    assert "recipes.a=b c" in words
    # Taken away first, or Hydra would add to the recipe's own, and the job could have 8 nodes as well.
    at = words.index("~recipes.scale_config")
    assert words[at + 1] == (
        "+recipes.scale_config={"
        "1:{trainer:{num_nodes:1},training_config:{training_args:{train_batch_size:128,learning_rate:0.0004}}},"
        "2:{trainer:{num_nodes:2},training_config:{training_args:{uneven_batch:{use_uneven_batch:true}}}},"
        "4:{trainer:{num_nodes:4}}}"
    )


def test_an_elastic_recipe_without_a_size_does_not_start(launch: Callable[..., Any]) -> None:
    done = launch({"min_replicas": 1, "max_replicas": 3, "step": 1})
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no settings for 3 nodes; it has them for: 1, 2, 4, 8" in done.stderr


def test_a_recipe_of_one_size_is_left_alone(launch: Callable[..., Any]) -> None:
    assert not any("scale_config" in argument for argument in json.loads(launch(None).stdout))


@pytest.mark.parametrize("name", ["endpoint from a bucket", "endpoint from a hub"])
def test_an_endpoint_fits_the_model_of_aws(name: str) -> None:
    model = aws_model("sagemaker/hyperpod/inference/config/hp_endpoint_config.py", "_HPEndpoint")
    model.model_validate(only("inference", **CASES[name][1])["spec"], by_name=True, by_alias=False)
    with pytest.raises(ValidationError, match="immage"):
        model.model_validate(only("inference", **CASES[name][1])["spec"] | {"immage": "x"}, by_name=True)
