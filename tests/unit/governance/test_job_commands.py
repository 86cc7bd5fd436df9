"""`podwright render jobs` and `podwright submit`: what they print, what they refuse, and which way they go."""

import base64
import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from ruamel.yaml import YAML

from job_environment import IMAGE, PODS, with_jobs
from podwright.cdk8s_charts.jobs.render import render
from podwright.config.catalog.instance_types import environment_types
from podwright.operations.cli import main
from podwright.operations.commands import submit
from podwright.operations.kubernetes import in_vpc
from podwright.operations.kubernetes import kubectl as kubectl_module
from podwright.operations.kubernetes.job_manifests import yaml_text
from podwright.planning.jobs.origins import field_of
from podwright.planning.jobs.plan import Planner

FILE = f"""\
account: "111122223333"
region: us-west-2
network: {{zones: [usw2-az2, usw2-az3]}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  h100: {{instance_type: ml.p5.48xlarge, count: 4}}
governance: {{teams: {{llm: {{quota: {{h100: 2}}}}, other: {{quota: {{h100: 2}}}}}}}}
platform: {{cert_manager: {{}}, training_operator: {{}}}}
jobs:
  llama: {{kind: hyperpod_pytorch, team: llm, group: h100, image: "{IMAGE}", nodes: 2, command: [t.py]}}
  large: {{kind: hyperpod_pytorch, team: llm, group: h100, image: "{IMAGE}", nodes: 4, command: [t.py]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/test.yaml").write_text(FILE)
    return tmp_path


def test_one_job_is_printed_though_another_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "jobs", "test", "llama", "--project", str(project)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# jobs/llama.yaml\n---\n")
    (manifest,) = YAML(typ="safe").load_all(printed)
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("HyperPodPyTorchJob", "llama")


def test_what_a_patch_changes_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "environments/test.yaml"
    text = file.read_text().replace("nodes: 2, ", 'nodes: 2, patch: "spec: {runPolicy: {suspend: true}}", ')
    file.write_text(text)
    assert main(["render", "jobs", "test", "llama", "--project", str(project)]) == 0
    printed = capsys.readouterr().out
    assert "# by `patch`: spec.runPolicy.suspend\n" in printed
    (manifest,) = YAML(typ="safe").load_all(printed)
    assert manifest["spec"]["runPolicy"]["suspend"] is True
    assert main(["render", "jobs", "test", "llama", "--project", str(project), "--out", str(project / "out")]) == 0
    assert (project / "out/jobs/llama.yaml").read_text().startswith("# by `patch`: spec.runPolicy.suspend\n")


def test_a_team_that_can_never_run_its_job_is_told_the_numbers(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "jobs", "test", "--project", str(project)]) == 1
    output = capsys.readouterr().err
    assert "test.yaml:11  JOB015  error" in output
    assert (
        "its 4 pods ask for 32 GPUs at once; team llm has 16 GPUs of ml.p5.48xlarge and can hold 24 GPUs with all "
        "that it may borrow, so it would wait forever" in output
    )
    assert "run at most 3 pods of this size" in output


@pytest.mark.parametrize("before", [1, 2, 3])
def test_jobs_are_written_to_files(before: int, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever the options stand among the names."""
    words, options = ["jobs", "test", "llama"], ["--out", str(project / "out"), "--project", str(project)]
    assert main(["render", *words[:before], *options, *words[before:]]) == 0
    text = (project / "out/jobs/llama.yaml").read_text()
    assert "replicas: 2" in text
    assert "&id" not in text


def test_files_of_jobs_that_are_gone_go_when_all_are_rendered(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rendering one job leaves the others' files; nothing that someone else wrote is touched."""
    file, jobs = project / "environments/test.yaml", project / "out/jobs"
    command = ["render", "jobs", "test", "--out", str(project / "out"), "--project", str(project)]
    three = FILE.replace("nodes: 4", "nodes: 1")
    file.write_text(three + three.splitlines()[-1].replace("large", "small") + "\n")
    assert main(command) == 0
    (jobs / "mine.yaml").write_text("mine")
    assert main([*command[:3], "llama", *command[3:]]) == 0
    assert sorted(path.name for path in jobs.glob("*.yaml")) == ["large.yaml", "llama.yaml", "mine.yaml", "small.yaml"]
    file.write_text(three)
    assert main(command) == 0
    assert capsys.readouterr().out.endswith(f"2 files in {jobs}, 1 removed\n")
    assert sorted(path.name for path in jobs.glob("*.yaml")) == ["large.yaml", "llama.yaml", "mine.yaml"]


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["jobs", "test", "lama"], "test has no job lama\n    → known: llama, large"),
        (["test", "llama"], "llama is one word too many"),
    ],
)
def test_what_cannot_be_rendered(
    words: list[str], output: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", *words, "--project", str(project)]) == 2
    assert output in capsys.readouterr().err


def test_a_file_is_no_folder_for_jobs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "out").write_text("mine")
    assert main(["render", "jobs", "test", "llama", "--out", str(project / "out"), "--project", str(project)]) == 2
    assert f"--out {project}/out/jobs cannot be a folder: Not a directory" in capsys.readouterr().err


Way = Callable[..., list[list[str]]]


@pytest.fixture
def kubectl(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that keeps what it was given and answers as a file says."""
    program = project / "kubectl"
    program.write_text(
        f'#!/bin/sh\necho "${{KUBECONFIG%%:*}} $@" > {project}/arguments\ncat > {project}/given\n. {project}/answer\n'
    )
    program.chmod(0o755)
    (project / "answer").write_text("echo hyperpodpytorchjob/llama created\n")
    session = boto3.Session("key", "secret", region_name="us-west-2")
    account = SimpleNamespace(endpoint=None, session=lambda: session)
    monkeypatch.setattr(kubectl_module, "tool", lambda _: str(program))
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    monkeypatch.setattr(kubectl_module, "eks_cluster", lambda *_: CLUSTER)
    monkeypatch.setattr(kubectl_module, "write_kubeconfig", lambda *_: project / "direct")
    monkeypatch.setattr(kubectl_module, "reachable", lambda *_: True)
    return program


CLUSTER = {"name": "eks", "endpoint": "https://abc.eks.amazonaws.com"}


def submitted(project: Path, *more: str) -> int:
    return main(["submit", "test", "llama", *more, "--project", str(project)])


def test_a_job_is_applied(project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert submitted(project) == 0
    assert (project / "arguments").read_text() == f"{project}/direct --user podwright apply --filename=-\n"
    (job,) = json.loads((project / "given").read_text())["items"]
    assert job["metadata"]["name"] == "llama"
    output = capsys.readouterr().out
    assert "Where it stands:  podwright why test llama" in output
    assert output.endswith("podwright logs test llama --follow\n"), "the next command to type stands last"


def test_a_dry_run_runs_nothing(project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert submitted(project, "--dry-run") == 0
    assert "--dry-run=server" in (project / "arguments").read_text()
    assert "nothing runs" in capsys.readouterr().out


def test_a_store_of_the_sandbox_has_no_dry_run(
    project: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = {"name": "eks", "endpoint": "https://localhost:4600/podwright/kubernetes/us-west-2/eks"}
    monkeypatch.setattr(kubectl_module, "eks_cluster", lambda *_: store)
    assert submitted(project, "--dry-run") == 2
    assert "a store of the sandbox has no dry run" in capsys.readouterr().err
    assert not (project / "given").exists()
    assert submitted(project) == 0
    assert "--validate=false" in (project / "arguments").read_text()


def test_what_rules_refuse_is_not_handed_over(project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "test", "large", "--project", str(project)]) == 1
    assert "JOB015" in capsys.readouterr().err
    assert not (project / "given").exists()


def test_a_rejected_manifest_names_the_setting(
    project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "answer").write_text(
        "echo 'The HyperPodPyTorchJob \"llama\" is invalid: spec.replicaSpecs[0].replicas: Invalid value' >&2; exit 1\n"
    )
    assert submitted(project) == 1
    output = capsys.readouterr().err
    assert "environments/test.yaml:10  ENV003  error  jobs.llama.nodes became spec.replicaSpecs[0].replicas" in output


DOMAIN = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": "llama"}}


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that need an object beside their own, as those of UltraServers do."""
    made = submit.job_manifests

    def with_domain(loaded: Any, names: list[str]) -> dict[str, list[Any]]:
        return {name: [DOMAIN, *manifests] for name, manifests in made(loaded, names).items()}

    monkeypatch.setattr(submit, "job_manifests", with_domain)


# Adds each call to a file and keeps what it applied, one object a line; refuses what the file `refused` names.
CLUSTER_OF_FILES = """#!/bin/sh
here=$(dirname "$0"); case $1 in --kubeconfig|--user) shift 2;; esac
echo "$@" >> $here/arguments; verb=$1
objects=$(cat | tr ',' '\\n' | sed -n 's/.*"kind": "\\([A-Z][A-Za-z]*\\)"$/\\1/p' | grep -v List)
for object in $objects; do
  case $object in C*) group=resource.nvidia.com;; *) group=sagemaker.amazonaws.com;; esac
  named=$(echo $object | tr A-Z a-z).$group/llama
  case "$verb $*" in
    *--dry-run*) ! grep -q "dry $object" $here/refused || { echo "no matches for kind $object" >&2; exit 1; };;
    apply*) ! grep -q "real $object" $here/refused || { echo "quota exceeded by $object" >&2; exit 1; }
            grep -qx $named $here/there || { echo $named >> $here/there; echo $named created; };;
    get*) grep -x $named $here/there || true;;
    delete*) grep -vx $named $here/there > $here/left; mv $here/left $here/there;;
  esac
done
"""


@pytest.fixture(params=["direct", "runner"])
def cluster(
    request: pytest.FixtureRequest, project: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """A cluster that is reached directly or by the runner: `cluster(refused)` gives the objects that it has then."""
    kubectl.write_text(CLUSTER_OF_FILES)
    (project / "there").touch()

    def runner(_account: Any, _environment: Any, command: str, write: Callable[[str], None]) -> int:
        environment = os.environ | {"PATH": f"{project}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            write(line)
        return done.returncode

    if request.param == "runner":
        monkeypatch.setattr(kubectl_module, "reachable", lambda *_: False)
        monkeypatch.setattr(in_vpc, "run_in_vpc", runner)

    def submit_with(refused: str) -> list[str]:
        (project / "refused").write_text(refused)
        submitted(project)
        return (project / "there").read_text().split()

    return submit_with


BOTH = ["computedomain.resource.nvidia.com/llama", "hyperpodpytorchjob.sagemaker.amazonaws.com/llama"]


@pytest.mark.usefixtures("pair")
def test_a_job_is_made_whole_or_not_at_all(
    cluster: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster("dry HyperPodPyTorchJob") == []
    assert "the cluster refuses llama: no matches for kind HyperPodPyTorchJob" in capsys.readouterr().err
    # What a dry run does not count, such as quotas that are used up meanwhile.
    assert cluster("real HyperPodPyTorchJob") == []
    output = capsys.readouterr().err
    assert "took back computedomain.resource.nvidia.com/llama, so that nothing is left of it" in output
    assert "the cluster refuses llama: quota exceeded by HyperPodPyTorchJob" in output
    assert cluster("") == BOTH
    assert capsys.readouterr().out.count("created") == 2


@pytest.mark.usefixtures("pair")
def test_what_was_there_before_stays(cluster: Callable[..., list[str]], project: Path) -> None:
    (project / "there").write_text(f"{BOTH[0]}\n")
    assert cluster("real HyperPodPyTorchJob") == BOTH[:1]


def test_a_tunnel_that_is_open_is_used(project: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_module, "reachable", lambda host, port: (host, port) == ("127.0.0.1", 8443))
    file = project / ".podwright/kubeconfig/test"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"clusters": [{"cluster": {"server": "https://127.0.0.1:8443"}}]}))
    assert submitted(project) == 0
    assert str(file) in (project / "arguments").read_text()


def test_else_the_runner_inside_the_vpc_applies_it(
    project: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[str] = []

    def runner(_account: Any, _environment: Any, command: str, write: Callable[[str], None]) -> int:
        commands.append(command)
        write(f"podwright-out {base64.b64encode(gzip.compress(b'hyperpodpytorchjob/llama created')).decode()}")
        write("podwright-code 0")
        return 0

    monkeypatch.setattr(kubectl_module, "reachable", lambda *_: False)
    monkeypatch.setattr(in_vpc, "run_in_vpc", runner)
    assert submitted(project) == 0
    (command,) = commands
    packed = re.search(r"echo (\S+) \| base64 -d \| gunzip \| kubectl apply --filename=-", command)
    assert packed
    (job,) = json.loads(gzip.decompress(base64.b64decode(packed[1])))["items"]
    assert job["metadata"]["name"] == "llama"
    assert len(command) < 5500, "CodeBuild takes no more"
    assert "hyperpodpytorchjob/llama created" in capsys.readouterr().out


def test_a_job_too_long_for_the_runner_is_said(
    project: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kubectl_module, "reachable", lambda *_: False)
    monkeypatch.setattr(in_vpc, "_MOST", 100)
    assert submitted(project) == 1
    output = capsys.readouterr().err
    assert "too long for the runner" in output
    assert "podwright connect test" in output


def test_a_run_has_settings_of_its_own(project: Path, kubectl: Path) -> None:
    words = [
        "--name",
        "llama-2",
        "--set",
        "nodes=1",
        "--set",
        "env.LR=1e-4",
        "--set",
        "command=[train.py, --seed, '2']",
    ]
    assert submitted(project, *words, "--set", "parallelism.tensor=8") == 0
    (job,) = json.loads((project / "given").read_text())["items"]
    (replicas,) = job["spec"]["replicaSpecs"]
    (container,) = replicas["template"]["spec"]["containers"]
    assert (job["metadata"]["name"], replicas["replicas"]) == ("llama-2", 1)
    assert container["args"][-3:] == ["train.py", "--seed", "2"]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert (variables["LR"], variables["TENSOR_MODEL_PARALLEL_SIZE"]) == ("1e-4", "8")
    assert "nodes: 2" in (project / "environments/test.yaml").read_text(), "the file stays"


@pytest.mark.parametrize(
    ("setting", "code", "output"),
    [
        ("nodes=four", 2, "--set nodes=four:1  ENV003  error  jobs.llama.nodes"),
        ("node=4", 2, "--set node=4:1  ENV001  error  jobs.llama.node"),
        ("nodes=4", 1, "--set nodes=4:1  JOB015  error"),
        ("nodes", 2, "--set nodes is not a setting\n    → write --set KEY=VALUE"),
        ("image.tag=2", 2, "--set image.tag=2: image is "),
        ("nodes=[", 2, "--set nodes=[:1  "),
    ],
)
def test_a_setting_of_a_run_is_judged_as_one_of_the_file(
    setting: str, code: int, output: str, project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submitted(project, "--set", setting) == code
    assert output in capsys.readouterr().err
    assert not (project / "given").exists()


def test_what_was_made_is_printed_as_json(project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert submitted(project, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["objects"] == ["hyperpodpytorchjob.sagemaker.amazonaws.com/llama"]
    assert answer["next"] == ["podwright why test llama", "podwright logs test llama --follow"]


def ran(project: Path, *words: str) -> int:
    options = ["--project", str(project), "--team", "llm", "--group", "h100"]
    return main(["run", "test", *options, *words])


def test_a_command_runs_without_a_line_in_the_file(
    project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(project, "--nodes", "2", "--set", "env.LR=1", "--", "torchrun", "train.py", "--steps", "5") == 0
    output = capsys.readouterr().out
    _, shown, rest = output.split("---\n")
    manifest, (job,) = YAML(typ="safe").load(shown), json.loads((project / "given").read_text())["items"]
    assert manifest == job, "what is shown is what is applied"
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    (container,) = worker["template"]["spec"]["containers"]
    assert (job["kind"], worker["replicas"]) == ("PyTorchJob", 2)
    assert container["command"] == ["torchrun", "train.py", "--steps", "5"]
    assert container["image"] == IMAGE, "that of the jobs of the file"
    name = job["metadata"]["name"]
    assert re.fullmatch(r"train-\d{4}-\d{6}", name)
    assert rest.endswith(f"podwright logs test {name} --follow\n")


@pytest.mark.parametrize(
    ("words", "kind", "command"),
    [
        (["--", "nvidia-smi", "-L"], "Job", ["nvidia-smi", "-L"]),
        (["--", "torchrun", "a.py"], "PyTorchJob", ["torchrun", "a.py"]),
        (["--kind", "hyperpod_pytorch", "--", "torchrun", "a.py", "--x"], "HyperPodPyTorchJob", ["a.py", "--x"]),
        (["--nodes", "2", "--kind", "job", "--", "bash", "-c", "a -- b"], "Job", ["bash", "-c", "a -- b"]),
    ],
)
def test_the_kind_of_a_run_follows_from_its_command(
    words: list[str], kind: str, command: list[str], project: Path, kubectl: Path
) -> None:
    assert ran(project, "--image", "mine:1", "--name", "probe", *words) == 0
    (job,) = json.loads((project / "given").read_text())["items"]
    containers = json.dumps(job)
    assert (job["kind"], job["metadata"]["name"]) == (kind, "probe")
    assert json.dumps(command)[1:-1] in containers


def test_a_run_is_judged_by_the_same_rules(project: Path, kubectl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(project, "--nodes", "4", "--name", "big", "--", "torchrun", "a.py") == 1
    assert "the command line:1  JOB015  error" in capsys.readouterr().err
    assert ran(project, "--name", "Big", "--", "a") == 2
    assert "jobs.Big" in capsys.readouterr().err
    text = (project / "environments/test.yaml").read_text()
    (project / "environments/test.yaml").write_text(
        text.replace(f'image: "{IMAGE}", nodes: 4', "image: other:1, nodes: 1")
    )
    assert ran(project, "--", "a") == 2
    assert "which image? the jobs of test have 2 images\n    → say --image IMAGE" in capsys.readouterr().err
    assert not (project / "given").exists()


ELASTIC = {"min_replicas": 2, "max_replicas": 4, "step": 2}
KINDS: dict[str, dict[str, Any]] = {
    "hyperpod_pytorch": {
        "elastic": ELASTIC,
        "log_rules": {"first": {"pattern": "a", "every_seconds": 1}, "second": {"pattern": "b", "every_seconds": 1}},
        "mounts": {"/fsx": "fsx"},
        "priority": "training",
    },
    "pytorch": {"elastic": {"min_replicas": 1, "max_replicas": 2}, "auto_resume": 1, "active_deadline_seconds": 9},
    "ray": {"ray_version": "2.49.0", "command": ["a"], "max_nodes": 2},
    "ray_cluster": {"ray_version": "2.49.0", "max_nodes": 2},
    "jobset": {"nodes": 2, "command": ["a"], "active_deadline_seconds": 9},
    "leader_worker_set": {"nodes": 2, "leader_command": ["a"]},
    "mpi": {"command": ["a"], **PODS},
    "nccl_test": {"nodes": 2},
    "train": {"command": ["a"], "active_deadline_seconds": 9},
    "job": {"command": ["a"], "active_deadline_seconds": 9},
    "inference": {"model_name": "m", "model": {"hugging_face": "a/b"}, "command": ["a"], "endpoint": "m"},
    "jumpstart": {"model_id": "m", "endpoint": "m", "env": {"A": "b"}, "deploy_seconds": 60, "balance": "round_robin"},
    "space": {"command": ["a"], "storage_class": "fast", "template": "lab"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_manifest_leads_to_a_setting_of_its_kind(kind: str) -> None:
    environment = with_jobs({"job": {"kind": kind} | KINDS[kind]})
    job = environment.jobs["job"]
    (manifest,) = render(Planner(environment, environment_types({})).plan("job"))
    for location in places(manifest, ""):
        top, name, *fields = field_of("job", job, location)
        assert (top, name) == ("jobs", "job")
        actual: Any = job
        for field in fields:
            kind_of: Any = type(actual)
            assert field in (actual if isinstance(actual, dict) else kind_of.model_fields), (location, fields)
            actual = actual.get(field) if isinstance(actual, dict) else getattr(actual, str(field))


def places(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return [
            path,
            *(location for key, item in value.items() for location in places(item, f"{path}.{key}".lstrip("."))),
        ]
    if isinstance(value, list):
        return [path, *(location for index, item in enumerate(value) for location in places(item, f"{path}[{index}]"))]
    return [path]


@pytest.mark.parametrize(
    ("location", "field"),
    [
        ("spec.elasticPolicy.minReplicas", "elastic.min_replicas"),
        ("spec.runPolicy.logMonitoringConfiguration[1].logPattern", "log_rules.second"),
        ("spec.replicaSpecs[0].template.spec.containers[0].image", "image"),
        ("spec.replicaSpecs[0].template.spec.containers[0].resources.requests.memory", "memory_gib"),
        ("spec.replicaSpecs[0].template.spec.volumes[0].persistentVolumeClaim.claimName", "mounts"),
        ("spec.replicaSpecs[0].template.spec.initContainers[0].image", "init"),
        ("spec.replicaSpecs[0].template.spec.containers[0].securityContext.capabilities", "security"),
        ("spec.replicaSpecs[0].template.spec.volumes[2].hostPath.path", "scratch"),
        ("spec.replicaSpecs[0].template.spec.imagePullSecrets[0].name", "pull_secrets"),
        ("metadata.namespace", "team"),
        ("spec.elasticPolicy", "elastic"),
        ("status", ""),
    ],
)
def test_where_a_field_comes_from(location: str, field: str) -> None:
    job = with_jobs({"job": {"kind": "hyperpod_pytorch"} | KINDS["hyperpod_pytorch"]}).jobs["job"]
    assert ".".join(map(str, field_of("job", job, location)[2:])) == field


def test_text_is_read_back_as_it_was() -> None:
    manifests = [{"a": {"requests": {"cpu": "8"}, "text": "on", "list": ["1e-4", "$(X)"]}}, {"b": 1}]
    assert list(YAML(typ="safe").load_all(yaml_text(manifests))) == manifests
    assert re.search(r"^---$", yaml_text(manifests), re.MULTILINE)
