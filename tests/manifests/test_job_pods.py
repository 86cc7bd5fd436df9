"""What pods of jobs take from namespace and node, in every kind whose pods are written in full; and patches."""

import json
import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from job_environment import PODS, planned, rendered, with_jobs
from podwright.cdk8s_charts.jobs.render import render
from podwright.cdk8s_charts.jobs.strategic_merge import merged
from podwright.config.settings.jobs.patch import patch_of
from podwright.config.settings.jobs.pods import Security
from podwright.planning.kubernetes.isolation import pod_freedoms
from podwright.planning.rules.run import findings
from podwright.sandbox.kubernetes import custom_kinds

Object = dict[str, Any]
FULL: dict[str, Object] = {
    "hyperpod_pytorch": {"nodes": 2},
    "pytorch": {"nodes": 2},
    "ray": {"ray_version": "2.49.0", "command": ["a"]},
    "mpi": {"command": ["mpirun"]},
    "nccl_test": {"nodes": 2},
    "job": {"command": ["a"]},
    "ray_cluster": {"ray_version": "2.49.0", "head": {"accelerators": 1}},
    "jobset": {"nodes": 2},
    "leader_worker_set": {"nodes": 2, "leader_command": ["serve"]},
}


def pods_of(value: Any) -> list[Object]:
    """Specs of all pod templates in an object."""
    if isinstance(value, list):
        return [spec for item in value for spec in pods_of(item)]
    if not isinstance(value, dict):
        return []
    own = [value["spec"]] if "containers" in (value.get("spec") or {}) else []
    return own + [spec for item in value.values() for spec in pods_of(item)]


def pod(kind: str = "job", **job: Any) -> Object:
    """The spec of the pods that have the accelerators."""
    return pods_of(rendered(kind, **FULL[kind] | job)[-1])[-1]


def found(job: Object, **settings: Any) -> set[tuple[str, str]]:
    environment = with_jobs({"job": {"kind": "job"} | job}, **settings)
    return {(item.id, item.path) for item in findings(environment) if item.path.startswith("jobs.job")}


RECORDING = {"llm": {"quota": {"h100": 4}, "access": {"mlflow": True}}, "other": {"quota": {"h100": 4}}}
KINDS_WITH_VARIABLES = FULL | {"train": {"nodes": 2, "command": ["a"]}}


@pytest.mark.parametrize("kind", KINDS_WITH_VARIABLES)
@pytest.mark.parametrize(
    ("teams", "env", "expected"),
    [
        (None, {}, []),
        (RECORDING, {}, [{"configMapKeyRef": {"name": "podwright-mlflow", "key": "MLFLOW_TRACKING_URI"}}]),
        (RECORDING, {"MLFLOW_TRACKING_URI": "https://mlflow.example.com"}, [None]),
    ],
)
def test_jobs_of_a_team_that_records_runs_find_the_app(
    kind: str, teams: Any, env: dict[str, str], expected: list[Any]
) -> None:
    environment = with_jobs({"job": {"kind": kind, "env": env} | KINDS_WITH_VARIABLES[kind]}, teams=teams)
    text = json.dumps(render(planned(environment, "job"))[-1])
    entries = [
        json.loads(match) for match in re.findall(r'{"name": "MLFLOW_TRACKING_URI"(?:[^{}]|{[^{}]*{[^{}]*}})*}', text)
    ]
    # Every container of the job that has variables, and each of them once.
    assert [entry.get("valueFrom") for entry in entries[:1]] == expected
    assert all(entry == entries[0] for entry in entries)


@pytest.mark.parametrize("kind", FULL)
def test_every_kind_with_whole_pods_says_all_of_it(kind: str) -> None:
    spec = pod(kind, **PODS)
    (container,) = spec["containers"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["claim-0"] == {"name": "claim-0", "persistentVolumeClaim": {"claimName": "data"}}
    assert [volume for volume in volumes if volume.startswith("claim")] == ["claim-0"], "one volume a claim"
    assert {"name": "claim-0", "mountPath": "/models", "subPath": "models/llama", "readOnly": True} in container[
        "volumeMounts"
    ]
    assert volumes["scratch"]["hostPath"] == {"path": "/opt/dlami/nvme/teams/llm", "type": "DirectoryOrCreate"}
    assert volumes["secret-0"]["projected"] == {"sources": [{"secret": {"name": "hub"}}]}
    assert volumes["config-map-0"]["configMap"] == {"name": "settings"}
    assert {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}} in container["env"]
    assert {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "lr"}}} in container["env"]
    assert container["imagePullPolicy"] == "Always"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) == (1000, 2000)
    assert container["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"], "drop": ["NET_RAW"]}
    assert spec["tolerations"][-2:] == [
        {"key": "dedicated", "operator": "Equal", "value": "llm"},
        {"key": "drain", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    ]
    node = spec["affinity"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][-2:] == [
        {"key": "topology.k8s.aws/zone-id", "operator": "In", "values": ["usw2-az2"]},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    assert spec["affinity"]["podAntiAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
    requests, limits = container["resources"]["requests"], container["resources"]["limits"]
    assert (requests["cpu"], requests["memory"]) == ("8", "64Gi")
    assert int(limits["cpu"]) > 100
    assert {**limits, "cpu": "8", "memory": "64Gi"} == requests
    opens, fetch = spec["initContainers"]
    assert (opens["command"], opens["securityContext"]) == (["chmod", "1777", "/scratch"], {"runAsUser": 0})
    assert (fetch["name"], fetch["command"]) == ("fetch", ["fetch", "/scratch"])
    assert fetch["env"][-1] == {"name": "FROM", "value": "hub"}
    assert fetch["volumeMounts"] == container["volumeMounts"]
    assert fetch["resources"] == {
        "requests": {"cpu": "8", "memory": "64Gi"},
        "limits": {"cpu": limits["cpu"], "memory": limits["memory"]},
    }


@pytest.mark.parametrize("kind", ["ray", "mpi"])
def test_a_pod_beside_the_workers_has_what_it_needs_and_prepares_nothing(kind: str) -> None:
    head, worker = pods_of(rendered(kind, **FULL[kind], **PODS)[-1])
    assert [item["name"] for item in worker["initContainers"]] == ["scratch", "fetch"]
    assert [item["name"] for item in head["initContainers"]] == ["scratch"]
    (container,) = head["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["volumeMounts"] == worker["containers"][0]["volumeMounts"]


@pytest.mark.parametrize(
    ("job", "group", "folder"),
    [
        ({}, {}, "/opt/dlami/nvme/teams/llm"),
        ({"team": None, "namespace": "lab"}, {}, "/opt/dlami/nvme/namespaces/lab"),
        ({"group": "disk"}, {"disk": {"instance_type": "ml.m5.4xlarge", "count": 1}}, "/opt/sagemaker/teams/llm"),
    ],
)
def test_scratch_is_the_folder_that_its_team_may_mount(job: Object, group: Object, folder: str) -> None:
    plan = planned(with_jobs({"job": {"kind": "job", "scratch": "/scratch"} | job}, groups=group))
    assert plan.pod.scratch == folder


def test_a_secret_of_secrets_manager_comes_by_a_class_of_its_own() -> None:
    provider, job = rendered(
        "job",
        service_account="trainer",
        secrets={"hub": {"secrets_manager": "research/hub", "env": {"HF_TOKEN": "api-token"}}},
    )
    assert custom_kinds.violations(provider) == []
    assert provider["metadata"] == {"name": "job-hub", "namespace": job["metadata"]["namespace"]}
    parameters = provider["spec"]["parameters"]
    assert (parameters["region"], parameters["usePodIdentity"]) == ("us-west-2", "true")
    assert yaml.safe_load(parameters["objects"]) == [
        {
            "objectName": "research/hub",
            "objectType": "secretsmanager",
            "objectAlias": "hub",
            "jmesPath": [{"path": '"api-token"', "objectAlias": "api-token"}],
        }
    ]
    (spec,) = pods_of(job)
    (container,) = spec["containers"]
    (synced,) = provider["spec"]["secretObjects"]
    (variable,) = [item for item in container["env"] if item["name"] == "HF_TOKEN"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": synced["secretName"], "key": "api-token"}
    # Without a volume the driver makes no Secret, and the pod would wait for it.
    (mount,) = [item for item in container["volumeMounts"] if item["name"] == "secret-0"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/run/podwright-secrets/hub", True)
    (volume,) = [item for item in spec["volumes"] if item["name"] == "secret-0"]
    assert volume["csi"]["volumeAttributes"] == {"secretProviderClass": "job-hub"}


def test_a_whole_secret_of_secrets_manager_is_one_file() -> None:
    provider, _ = rendered("job", secrets={"key": {"secrets_manager": "research/key", "path": "/keys"}})
    assert "secretObjects" not in provider["spec"]
    assert "jmesPath" not in json.loads(provider["spec"]["parameters"]["objects"])[0]


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        (
            {"a": 2},
            {"a": 2, "l": [1], "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}], "m": {"k": 1}},
        ),
        ({"l": [2], "m": None}, {"a": 1, "l": [2], "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}]}),
        (
            {"env": [{"name": "x", "value": "2"}, {"name": "z", "value": "3"}, {"name": "y", "$patch": "delete"}]},
            {"a": 1, "l": [1], "env": [{"name": "x", "value": "2"}, {"name": "z", "value": "3"}], "m": {"k": 1}},
        ),
        (
            {"env": [{"name": "z"}, {"$patch": "replace"}], "m": {"$patch": "replace", "n": 1}},
            {"a": 1, "l": [1], "env": [{"name": "z"}], "m": {"n": 1}},
        ),
        (
            {"m": {"$patch": "delete"}, "env": [], "l": None, "a": None},
            {"env": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}]},
        ),
    ],
)
def test_lists_of_named_items_merge_and_others_are_replaced(patch: Object, result: Object) -> None:
    original = {"a": 1, "l": [1], "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}], "m": {"k": 1}}
    before = json.dumps(original)
    assert merged(original, patch) == result
    assert json.dumps(original) == before


def test_a_patch_has_the_last_word_on_the_job_object() -> None:
    patch = """
        spec:
          template:
            spec:
              containers: [{name: main, tty: true, env: [{name: PYTHONUNBUFFERED, value: '0'}]}]
              terminationGracePeriodSeconds: 600
    """
    without, spec = pod(), pod(patch=patch)
    (container,) = spec["containers"]
    assert (container["tty"], spec["terminationGracePeriodSeconds"]) == (True, 600)
    assert {item["name"]: item.get("value") for item in container["env"]}["PYTHONUNBUFFERED"] == "0"
    assert len(container["env"]) == len(without["containers"][0]["env"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "YAML; this is none"),
        ("just text", "a mapping as YAML text"),
        ("[" * 2000, "YAML"),
        ("a: &a {b: 1}\nc: *a", "without aliases"),
    ],
)
def test_a_patch_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        patch_of(text)
    with pytest.raises(ValidationError, match=words):
        with_jobs({"job": {"kind": "job", "patch": text}})


@pytest.mark.parametrize(
    ("patch", "setting"),
    [
        ("spec: {parallelism: 3}", "nodes"),
        ("spec: {pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure}}}", "nodes"),
        ("metadata: {name: other}", "the key under jobs"),
        ("metadata: {labels: {kueue.x-k8s.io/queue-name: other}}", "team and priority"),
        ("spec: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1}}}]}}}", "accelerators"),
        ("spec: {template: {spec: {containers: [{name: main, securityContext: {privileged: true}}]}}}", "security"),
        ("spec: {template: {spec: {volumes: [{name: root, hostPath: {path: /}}]}}}", "scratch"),
        ("spec: {template: {metadata: {labels: {example.com/a: b}}}}", None),
    ],
)
def test_a_patch_of_what_rules_go_by_is_refused_with_the_setting(patch: str, setting: str | None) -> None:
    items = [item for item in findings(with_jobs({"job": {"kind": "job", "patch": patch}})) if item.id == "JOB031"]
    assert [item.path for item in items] == (["jobs.job.patch"] if setting else [])
    assert all(setting in item.hint for item in items if setting)


@pytest.mark.parametrize(
    ("kind", "job", "fields"),
    [
        ("train", {"pull": "always", "init": PODS["init"]}, {"pull", "init"}),
        ("train", {"mounts": {"/a": "data", "/b": "other", "/c": {"claim": "data", "sub_path": "c"}}}, {"mounts./c"}),
        ("train", {"scratch": "/s", "security": {"run_as_user": 5}}, {"scratch"}),
        (
            "hyperpod_pytorch",
            PODS | {"security": {"fs_group": 5, "run_as_user": 5}},
            {"security.fs_group", "affinity.near", "affinity.apart"},
        ),
        (
            "recipe",
            {"path": "a/b", **{name: PODS[name] for name in PODS if name != "mounts"}, "patch": "a: 1"},
            {*PODS, "patch"} - {"mounts"},
        ),
        ("recipe", {"path": "a/b", "mounts": PODS["mounts"]}, {"mounts./models.sub_path", "mounts./models.read_only"}),
        (
            "inference",
            {"model_name": "m", "model": {"hugging_face": "a/b"}, **PODS},
            {"mounts", "scratch", "security", "pull", "pull_secrets", "tolerations", "init", "affinity.near"}
            | {"affinity.apart", "secrets.hub.path", "config_maps.settings.path"},
        ),
        (
            "space",
            PODS,
            {"scratch", "pull", "pull_secrets", "init", "secrets.hub.path", "config_maps.settings.path"}
            | {"mounts./models.sub_path", "mounts./models.read_only"},
        ),
        ("job", PODS | {"security": {"fs_group": 5}}, set()),
    ],
)
def test_what_the_object_of_a_kind_has_no_field_for_is_refused(kind: str, job: Object, fields: set[str]) -> None:
    refused = {path for id, path in found({"kind": kind} | job) if id == "JOB028"}
    assert refused == {f"jobs.job.{field}" for field in fields}


@pytest.mark.parametrize(
    ("variable", "value", "secret"),
    [
        ("HF_TOKEN", "hf_" + "a" * 34, True),
        ("ANYTHING", "hf_" + "a" * 34, True),
        ("ANYTHING", "AKIA" + "A" * 16, True),
        ("WANDB_API_KEY", "0123456789abcdef", True),
        ("DB_PASSWORD", "swordfish", True),
        ("HF_TOKEN", "$(OTHER)", False),
        ("HF_TOKEN_PATH", "/secrets/hub/token", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("MAX_TOKENS", "4096", False),
        ("NCCL_DEBUG", "INFO", False),
        ("DATA", "s3://acme-data/corpora/2026-11/tokenized/shard-00001-of-00512.parquet", False),
    ],
)
def test_a_secret_in_a_variable_is_found_and_not_repeated(variable: str, value: str, secret: bool) -> None:
    for job, path in (
        ({"env": {variable: value}}, f"jobs.job.env.{variable}"),
        ({"init": {"a": {"command": ["b"], "env": {variable: value}}}}, f"jobs.job.init.a.env.{variable}"),
    ):
        items = [item for item in findings(with_jobs({"job": {"kind": "job"} | job})) if item.id == "JOB027"]
        assert [item.path for item in items] == ([path] if secret else [])
        assert not any(value in item.message + item.hint for item in items)


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ({"mounts": {"/a": "data"}, "scratch": "/a"}, "scratch"),
        ({"secrets": {"s": {"path": "/a"}}, "config_maps": {"c": {"path": "/a"}}}, "config_maps.c.path"),
        ({"scratch": "/dev/shm"}, "scratch"),
        ({"env": {"A": "b"}, "secrets": {"s": {"env": {"A": "b"}}}}, "secrets.s.env.A"),
        ({"scratch": "/dev/shm", "shm_gib": 0}, None),
        ({"secrets": {"s": {"path": "/a", "env": {"A": "b"}}}, "config_maps": {"c": {"path": "/b"}}}, None),
    ],
)
def test_a_path_and_a_variable_are_there_once(job: Object, path: str | None) -> None:
    assert {each for id, each in found(job) if id == "JOB034"} == ({f"jobs.job.{path}"} if path else set())


@pytest.mark.parametrize("level", ["baseline", "restricted", "privileged", None])
@pytest.mark.parametrize(
    ("job", "path"),
    [
        ({"scratch": "/a"}, "jobs.job.scratch"),
        ({"security": {"privileged": True}}, "jobs.job.security"),
        ({"security": {"capabilities": ["IPC_LOCK"]}}, "jobs.job.security"),
        ({"security": {"capabilities": ["CHOWN"], "run_as_user": 5}}, None),
    ],
)
def test_what_a_namespaces_standard_refuses_is_said_before(level: str | None, job: Object, path: str | None) -> None:
    teams = {"llm": {"quota": {"h100": 8}, "access": {"pod_security": level}}}
    refused = {each for id, each in found(job, teams=teams, governance={"engine": "kueue"}) if id == "ISO012"}
    assert refused == ({path} if path and level in ("baseline", "restricted") else set())


@pytest.mark.parametrize(
    ("security", "freed"),
    [({"privileged": True}, True), ({"capabilities": ["SYS_ADMIN"]}, True), ({"capabilities": ["IPC_LOCK"]}, False)],
)
def test_a_job_that_says_it_may_more_frees_its_team(security: Object, freed: bool) -> None:
    environment = with_jobs({"job": {"kind": "job", "security": security}})
    freedoms = pod_freedoms(environment.governance, environment.jobs.values())
    assert freedoms.privileged == (("llm",) if freed else ())


@pytest.mark.parametrize(
    ("instance_type", "job", "ranks"),
    [
        ("ml.trn1.32xlarge", {}, 32),
        ("ml.trn2.48xlarge", {}, 64),
        ("ml.trn2.48xlarge", {"env": {"NEURON_LOGICAL_NC_CONFIG": "1"}}, 128),
        ("ml.trn2.48xlarge", {"accelerators": 4}, 16),
        ("ml.trn2.3xlarge", {}, 4),
        ("ml.p5.48xlarge", {"env": {"NEURON_LOGICAL_NC_CONFIG": "1"}}, 8),
    ],
)
def test_a_neuron_device_has_a_rank_for_each_logical_core(instance_type: str, job: Object, ranks: int) -> None:
    groups = {"trn": {"instance_type": instance_type, "count": 4, "zone": "usw2-az2"}}

    def spec(kind: str, **more: Any) -> Object:
        written = {"kind": kind, "group": "trn", "team": None, "nodes": 2} | job | more
        return render(planned(with_jobs({"job": written}, groups=groups)))[-1]["spec"]

    assert spec("hyperpod_pytorch")["nprocPerNode"] == str(ranks)
    assert spec("pytorch")["nprocPerNode"] == str(ranks)
    assert spec("train")["trainer"]["numProcPerNode"] == ranks
    assert spec("mpi")["slotsPerWorker"] == ranks
    layout = {"kind": "pytorch", "group": "trn", "team": None, "nodes": 2} | job
    for tensor, wrong in ((2 * ranks, False), (4 * ranks, True)):
        refused = found(layout | {"parallelism": {"tensor": tensor}}, groups=groups)
        assert ("JOB009" in {id for id, _ in refused}) == wrong


KIMI = {"tensor": 8, "pipeline": 8, "expert": 32}


@pytest.mark.parametrize(
    ("nodes", "layout", "ids"),
    [
        (32, KIMI, {"JOB035"}),
        (32, KIMI | {"expert_tensor": 2}, {"JOB009", "JOB035"}),
        (32, KIMI | {"expert": 64}, {"JOB009", "JOB035"}),
        (32, KIMI | {"expert": 8}, set()),
        (31, KIMI | {"expert": 1}, {"JOB009"}),
        (4, {"tensor": 8, "expert": 4, "expert_tensor": 2}, set()),
        (3, {"tensor": 8, "expert": 16}, {"JOB009", "JOB035"}),
    ],
)
def test_experts_lie_over_the_ranks_of_a_stage(nodes: int, layout: Object, ids: set[str]) -> None:
    groups = {"b300": {"instance_type": "ml.p6-b300.48xlarge", "count": 32, "zone": "usw2-az2"}}
    job = {"kind": "hyperpod_pytorch", "group": "b300", "team": None, "nodes": nodes, "parallelism": layout}
    assert {id for id, _ in found(job, groups=groups)} & {"JOB009", "JOB035"} == ids
    variables = planned(with_jobs({"job": job}, groups=groups)).pod.env
    specified = {"EXPERT_TENSOR_PARALLEL_SIZE": str(layout["expert_tensor"])} if "expert_tensor" in layout else {}
    assert {name: value for name, value in variables.items() if name.startswith("EXPERT_TENSOR")} == specified


@pytest.mark.parametrize("access", [None, {}, {"storage": {"other": {"path": "/a"}}}])
@pytest.mark.parametrize("kind", ["job", "space", "hyperpod_pytorch"])
def test_a_claim_that_nothing_makes_is_found_with_or_without_access(kind: str, access: Object | None) -> None:
    teams = {"llm": {"quota": {"h100": 8}} | ({} if access is None else {"access": access})}
    job = {"kind": kind, "mounts": {"/a": "data", "/b": "other"}}
    made = {"/b"} if access else set()
    paths = {path for id, path in found(job, teams=teams) if id == "JOB021"}
    assert paths == {f"jobs.job.mounts.{path}" for path in {"/a", "/b"} - made}
    alone = {path for id, path in found(job | {"team": None}) if id == "JOB021"}
    assert alone == {"jobs.job.mounts./a", "jobs.job.mounts./b"}


@pytest.mark.parametrize(("security", "expected"), [({}, None), ({"run_as_user": 1000}, (1000, 5001))])
def test_a_hyperpod_job_has_the_group_of_its_team_only_with_a_user(security: dict[str, Any], expected: object) -> None:
    # containerd starts no container with a group alone.
    access = {"gid": 5001, "storage": {"data": {"path": "/llm"}}}
    overrides = {"teams": {"llm": {"quota": {"h100": 4}, "access": access}}, "storage": {"lustre": {}}}
    (job,) = rendered(
        "hyperpod_pytorch", overrides=overrides, command=["train.py"], mounts={"/fsx": "data"}, security=security
    )
    context = job["spec"]["replicaSpecs"][0]["template"]["spec"].get("securityContext")
    assert (context and (context["runAsUser"], context["runAsGroup"])) == expected


def test_a_group_without_a_user_is_refused() -> None:
    with pytest.raises(ValidationError, match="run_as_user with run_as_group"):
        Security(run_as_group=2000)
