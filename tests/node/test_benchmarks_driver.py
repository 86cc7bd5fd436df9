"""The driver of the benchmarks on a node whose tools and programs are small scripts."""

import hashlib
import io
import json
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from listening import free_port
from needs import needs_programs
from podwright.lifecycle_scripts.podwright_benchmarks import __main__ as by_hand
from podwright.lifecycle_scripts.podwright_benchmarks import efa, files, job, neuron, run
from podwright.lifecycle_scripts.podwright_benchmarks.measured import finish, results
from podwright.lifecycle_scripts.podwright_benchmarks.programs import HOME, Unavailable, obtain
from podwright.planning.node.benchmark_results import BenchmarkResults
from waiting import CEILING_SECONDS, late_once, until

TYPE = "ml.p5en.48xlarge"
MACHINE = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), "x86_64")
GPU = '{"name":"%s","devices":[%s],"value":%s,"unit":"%s","peak":0,"note":""}'


def say(event: str, **facts: Any) -> None:
    """Nobody reads the log here."""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def packed(programs: dict[str, str], names: Callable[[str], str] = lambda name: f"bin/{name}") -> bytes:
    """An archive of programs, each a script."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in programs.items():
            content = f"#!/bin/bash\n{text}\n".encode()
            member = tarfile.TarInfo(names(name))
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def gpu_programs(rate: float = 760, wrong: int = 0) -> dict[str, str]:
    """What eight healthy H200 might print. `$2` is the device."""
    gemm = [("gemm_bf16", rate, "TFLOPS"), ("gemm_bf16_wrong", wrong, "errors")]
    pair = GPU % ("pair", "0,1", 380, "GB/s")
    return {
        "gemm": "\n".join(
            f"echo '{GPU % (name, chr(39) + '$2' + chr(39), value, unit)}'" for name, value, unit in gemm
        ),
        "memory": f"echo '{GPU % ('hbm_copy', chr(39) + '$2' + chr(39), 4200, 'GB/s')}'",
        "transfer": f"echo '{pair}'",
        "collectives": f"echo '{GPU % ('all_reduce', '0,1,2,3,4,5,6,7', 450, 'GB/s')}'",
    }


class Box:
    """A node: a root, a PATH with its tools, and what S3 holds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.tools = folder / "root", folder / "tools"
        self.object, self.fetches = folder / "object", folder / "fetches"
        self.root.mkdir()
        self.fetches.touch()
        script(self.tools / "aws", f'echo "$@" >>{self.fetches}; cp {self.object} "${{@: -1}}"')
        self.smi(8)
        monkeypatch.setenv("PATH", f"{self.tools}:/usr/bin:/bin")

    def smi(self, gpus: int, driver: str = "580.159.03", mig: str = "Disabled", busy: str = "") -> None:
        rows = "".join(f"{index}, {driver}, 9.0, {mig}\n" for index in range(gpus))
        script(
            self.tools / "nvidia-smi",
            f"case $1 in --query-gpu=*) printf '{rows}' ;; --query-compute-apps=pid) printf '{busy}' ;; esac",
        )

    def publish(self, content: bytes, digest: str = "") -> dict[str, Any]:
        """Put an archive into S3; the facts that name it."""
        self.object.write_bytes(content)
        sha256 = digest or hashlib.sha256(content).hexdigest()
        archives = [{"file": f"{sha256}/kernels", "sha256": sha256, "architecture": MACHINE}]
        return {"programs": "shipped", "driver_minimum": "580", "archives": archives, "archives_uri": "s3://b/archives"}

    def run(self, benchmarks: dict[str, Any]) -> dict[str, Any]:
        kind = {"accelerator_vendor": "nvidia", "accelerator_count": 8, "efa_interfaces": 0}
        facts = {
            "cluster": {"name": "prod"},
            "instance_types": {TYPE: kind},
            "file_systems": {"lustre": {}},
            "benchmarks": benchmarks,
        }
        return run(facts, TYPE, "quick", self.root, self.root, say)


@pytest.fixture
def box(tmp_path, monkeypatch) -> Box:
    return Box(tmp_path, monkeypatch)


def reasons(record: dict[str, Any], outcome: str) -> list[str]:
    return [result["reason"] for result in record["results"] if result["outcome"] == outcome]


def test_a_healthy_node_passes_and_its_record_fits_the_schema(box):
    record = box.run(box.publish(packed(gpu_programs())))
    assert record["verdict"] == "pass"
    names = [(result["name"], result["devices"]) for result in record["results"]]
    assert names[0] == ("gpus", [])
    assert [devices for name, devices in names if name == "gemm_bf16"] == [[gpu] for gpu in range(8)]
    assert ("all_reduce", list(range(8))) in names
    assert BenchmarkResults.model_validate_json(json.dumps(record)).thresholds_version


def test_one_wrong_element_fails_the_node(box):
    record = box.run(box.publish(packed(gpu_programs(wrong=1))))
    assert record["verdict"] == "fail"
    assert reasons(record, "fail")[0] == "1 errors is above 0"


def has_ended(pid: int) -> bool:
    """True if a process has ended, although its parent may not have asked for its end yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    started = tmp_path / "started"
    script = f"sleep 3600 & echo $! >{started}; wait"
    with late_once(lambda: started.exists() and started.read_text()):
        status, _, _ = finish(["bash", "-c", script], seconds=1)
    assert status is None
    # A signal is sent, not delivered, when kill returns; without one the process would sleep for an hour.
    until(lambda: has_ended(int(started.read_text())), "the process that the program started has ended")


def test_programs_are_fetched_once_and_leave_nothing_beside_them(box):
    facts = box.publish(packed(gpu_programs()))
    box.run(facts)
    box.run(facts)
    assert len(box.fetches.read_text().splitlines()) == 1
    (actual,) = (box.root / HOME).iterdir()
    assert actual.name == facts["archives"][0]["sha256"][:16]


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda box: box.smi(8, driver="570.172.08"), "the driver is 570.172.08, the programs need 580 or newer"),
        (lambda box: box.smi(8, mig="Enabled"), "divided"),
        (lambda box: box.smi(8, busy="4711"), "processes use the GPUs"),
        (lambda box: script(box.tools / "aws", "echo no route >&2; exit 1"), "did not arrive: no route"),
        (lambda box: box.object.write_bytes(b"cut short"), "has the digest"),
    ],
)
def test_what_is_no_fault_of_the_gpus_is_skipped(box, prepare, why):
    facts = box.publish(packed(gpu_programs()))
    prepare(box)
    record = box.run(facts)
    assert "fail" not in {result["outcome"] for result in record["results"]}
    assert why in reasons(record, "skip")[0]
    assert not list(box.root.rglob("*.part")) + list(box.root.rglob("*.tar.gz"))


def test_an_old_driver_is_seen_before_anything_is_fetched(box):
    facts = box.publish(packed(gpu_programs()))
    box.smi(8, driver="570.172.08")
    box.run(facts)
    assert box.fetches.read_text() == ""


def test_a_node_without_published_programs_says_how_to_get_them(box):
    record = box.run({"programs": "shipped", "archives": [], "archives_uri": ""})
    assert reasons(record, "skip") == [
        f"no benchmark programs were published for {MACHINE}: see `podwright kernels build`"
    ]


@pytest.mark.parametrize("name", ["/etc/cron.d/evil", "../../evil"])
def test_an_archive_cannot_write_elsewhere(box, name):
    facts = box.publish(packed({"x": "true"}, names=lambda _: name))
    with pytest.raises(Unavailable, match="not a plain file below"):
        obtain(facts, box.root, box.root, set(), say)
    assert [path for path in box.root.rglob("*") if path.is_file()] == []


def test_a_missing_gpu_fails(box):
    box.smi(7)
    assert "7 GPUs is below 8" in reasons(box.run(box.publish(packed(gpu_programs()))), "fail")[0]


def test_without_nvidia_smi_nothing_is_measured(box):
    (box.tools / "nvidia-smi").unlink()
    record = box.run({})
    assert (record["verdict"], reasons(record, "skip")) == ("skip", ["nvidia-smi is not on this image"])


def test_a_driver_that_fails_is_a_fault(box):
    script(box.tools / "nvidia-smi", "echo 'Unable to determine the device handle: GPU is lost' >&2; exit 15")
    assert "GPU is lost" in reasons(box.run({}), "fail")[0]


@pytest.mark.parametrize(
    ("text", "failed", "why"),
    [
        ('echo \'{"error":"cudaMalloc: cudaErrorECCUncorrectable (x)"}\'; exit 1', True, "ECC"),
        ('echo \'{"error":"cudaSetDevice: cudaErrorInsufficientDriver (x)"}\'; exit 1', False, "Insufficient"),
        ("kill -SEGV $$", True, "ended with -11"),
        ("echo 'libx.so: cannot open shared object file' >&2; exit 127", False, "cannot open"),
    ],
)
def test_a_program_that_breaks(tmp_path, text, failed, why):
    program = script(tmp_path / "gemm", f"echo '{GPU % ('gemm_bf16', 0, 7, 'TFLOPS')}'\n{text}")
    first, broken = results([str(program)], name="gemm", devices=(0,), environment={}, seconds=CEILING_SECONDS)
    assert first.value == 7
    assert (broken.name, broken.value, broken.failed) == ("gemm", None, failed)
    assert why in broken.reason


def test_a_program_that_hangs_fails_and_keeps_what_it_measured(tmp_path):
    measures = f"echo '{GPU % ('gemm_bf16', 0, 7, 'TFLOPS')}'"
    program = script(tmp_path / "gemm", f"{measures}; touch {tmp_path}/hangs; sleep 3600 & sleep 3600")
    with late_once((tmp_path / "hangs").exists):
        first, broken = results([str(program)], name="gemm", devices=(0,), environment={}, seconds=5)
    assert first.value == 7
    assert (broken.name, broken.value, broken.failed) == ("gemm", None, True)
    assert "did not end within 5 s" in broken.reason


def test_compiling_on_the_node_needs_a_compiler(box, monkeypatch):
    (box.root / "benchmarks").mkdir()
    monkeypatch.setattr("podwright.lifecycle_scripts.podwright_benchmarks.programs.TOOLKITS", (str(box.root / "cuda"),))
    with pytest.raises(Unavailable, match="no nvcc in"):
        obtain({"programs": "compile"}, box.root, box.root, {"90"}, say)
    script(box.root / "cuda/bin/nvcc", "true")
    script(box.root / "benchmarks/build.sh", 'mkdir -p "$1/bin"; echo "$TOOLKIT $GPUS" >"$1/bin/gemm"')
    made = obtain({"programs": "compile"}, box.root, box.root, {"100", "90"}, say)
    assert (made / "bin/gemm").read_text() == f"{box.root}/cuda 90 100\n"
    script(box.root / "benchmarks/build.sh", "echo error: bad >&2; exit 1")
    with pytest.raises(Unavailable, match="do not compile here: error: bad"):
        obtain({"programs": "compile"}, box.root, box.root, {"90"}, say)


@needs_programs("fi_pingpong", package="libfabric-bin")
def test_loops_of_a_real_fi_pingpong(monkeypatch):
    """Over TCP, because there is no EFA here; the rate is this machine's and means nothing."""
    monkeypatch.setattr(efa, "ROUNDS", {"quick": "5"})
    monkeypatch.setattr(efa, "SECONDS", {"quick": CEILING_SECONDS})
    monkeypatch.setattr(efa, "FIRST_PORT", free_port())
    measureds = efa.measure(1, "quick", say, provider="tcp")
    assert measureds
    assert all(loop.value and loop.value > 0 for loop in measureds)
    assert [loop.devices for loop in measureds] == [(index,) for index in range(len(measureds))]


# Its server ends after its client has come.
EFA_TOOLS = {
    "fi_info": "for i in 0 1; do printf 'provider: efa\\n    domain: rdmap%d-rdm\\n' $i; done",
    "fi_pingpong": """[[ $FI_EFA_ENABLE_SHM_TRANSFER == 0 ]] || exit 9
        case "$*" in *{broken}*) echo "fi_domain: -19" >&2; exit 1 ;; esac
        if [[ ${{@: -1}} == 127.0.0.1 ]]; then touch "$0.${{@: -2:1}}"; else
            until [[ -e "$0.${{@: -1}}" ]]; do sleep 0.05; done
            rm "$0.${{@: -1}}"
        fi
        printf 'bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\\n'
        printf '1m      200     =200     400m        0.05s   8000.12     131.07       0.01\\n'""",
}


@pytest.mark.parametrize(
    ("broken", "observed"),
    [
        ("none", [(8.0, False), (8.0, False)]),
        ("rdmap1-rdm", [(8.0, False), (None, True)]),
        # What arrives differs: the rounds that compare fail.
        ("rdmap0-rdm*-c", [(None, True), (8.0, False)]),
        # All of them alike: rather the image than each device.
        ("rdmap", [(None, False), (None, False)]),
    ],
)
def test_efa_devices(box, monkeypatch, broken, observed):
    monkeypatch.setattr(efa, "SECONDS", {"quick": CEILING_SECONDS})
    for name, text in EFA_TOOLS.items():
        script(box.tools / name, text.replace("{broken}", broken).replace("{{", "{").replace("}}", "}"))
    measureds = efa.measure(2, "quick", say)
    assert [(loop.value and round(loop.value, 1), loop.failed) for loop in measureds] == observed


def test_neuron_devices(box):
    script(box.tools / "neuron-ls", 'echo \'[{"nc_count": 2}, {"nc_count": 2}]\'')
    script(
        box.tools / "nccom-test",
        'case "$*" in *--check*) exit 0 ;; *"-r 4 "*all_reduce) echo "Avg bus bandwidth:	37.0281GB/s" ;; esac',
    )
    actual = {item.name: item for item in neuron.measure(2, "quick", say)}
    assert actual["neuron_devices"].value == 2
    assert actual["neuron_all_reduce"].value == pytest.approx(37.0281)
    assert actual["neuron_all_reduce_wrong"].value == 0
    script(box.tools / "nccom-test", "echo unknown option >&2; exit 2")
    assert [(item.value, item.failed) for item in neuron.measure(2, "quick", say)[1:]] == [(None, False)] * 2


def test_files_are_measured_and_removed(tmp_path):
    actual = {item.name: item for item in files.measure(tmp_path, "lustre", "quick", say, mib=8)}
    assert set(actual) == {f"lustre_{name}" for name in ("write", "read", "wrong", "create", "stat", "remove")}
    assert actual["lustre_wrong"].value == 0
    assert all(item.value and item.value > 0 for name, item in actual.items() if name != "lustre_wrong")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_refuses_costs_no_node(tmp_path):
    (tmp_path / "file").touch()
    (measureds,) = files.measure(tmp_path / "file", "lustre", "quick", say)
    assert not measureds.failed
    assert "Not a directory" in measureds.reason


def test_a_read_that_returns_something_else_is_seen(tmp_path, monkeypatch):
    retained = files.os.fsync

    def damage(descriptor: int) -> None:
        retained(descriptor)
        (large,) = tmp_path.rglob("large")
        with large.open("r+b") as file:
            file.seek(5 << 20)
            byte = file.read(1)
            file.seek(5 << 20)
            file.write(bytes([byte[0] ^ 1]))

    monkeypatch.setattr(files.os, "fsync", damage)
    actual = {item.name: item.value for item in files.measure(tmp_path, "lustre", "quick", say, mib=8)}
    assert actual["lustre_wrong"] == 1


def test_tasks_of_a_job_share_the_id(tmp_path):
    port = free_port()
    shared = tmp_path / "id"
    got: list[str] = []
    asking = [threading.Thread(target=lambda: got.append(job.ask("127.0.0.1", port))) for _ in range(3)]
    for thread in asking:
        thread.start()
    serving = threading.Thread(target=job.serve, args=(shared, 3, port))
    serving.start()
    shared.touch()
    time.sleep(0.2)
    shared.write_text("0af1")
    for thread in (*asking, serving):
        thread.join(CEILING_SECONDS)
    assert got == ["0af1"] * 3


@pytest.mark.parametrize(
    ("variables", "location"),
    [
        ({"WORLD_SIZE": "4", "RANK": "2", "MASTER_ADDR": "job-0"}, job.TaskRank(4, 2, "job-0")),
        (
            {"SLURM_NNODES": "2", "SLURM_NODEID": "1", "SLURM_JOB_NODELIST": "ip-[1-2]", "RANK": "9"},
            job.TaskRank(2, 1, "ip-1"),
        ),
    ],
)
def test_where_a_task_is(box, variables, location):
    script(box.tools / "scontrol", '[[ "$*" == "show hostnames ip-[1-2]" ]] && printf "ip-1\\nip-2\\n"')
    assert job.TaskRank.from_environment(variables) == location


def test_a_task_alone_says_how_to_start_it():
    with pytest.raises(Unavailable, match=r"WORLD_SIZE.*srun --ntasks-per-node=1"):
        job.TaskRank.from_environment({})


def test_the_command_prints_a_record(box, tmp_path):
    """From a copy of the published folder, with the interpreter alone: it takes nothing else from podwright."""
    scripts = Path(run.__code__.co_filename).parents[1]
    bundle = tmp_path / "bundle"
    shutil.copytree(scripts / "podwright_benchmarks", bundle / "podwright_benchmarks")
    (bundle / "node.json").write_text('{"cluster": {"name": "prod"}, "instance_types": {"ml.m5.4xlarge": {}}}')
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, '.'); import runpy; sys.argv[1:] = "]
    command[-1] += "['run', 'ml.m5.4xlarge']; runpy.run_module('podwright_benchmarks', run_name='__main__')"
    done = subprocess.run(command, cwd=bundle, capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "skip"), done.stderr


@pytest.mark.parametrize(
    ("written", "kind", "output"),
    [
        (None, "ml.p5en.48xlarge", "node.json does not describe the cluster ([Errno 2]"),
        ("{", "ml.p5en.48xlarge", "node.json does not describe the cluster (Expecting"),
        ("[]", "ml.p5en.48xlarge", "node.json does not describe the cluster (list"),
        (
            '{"instance_types": {"ml.p5en.48xlarge": {}}}',
            "ml.p5en.48xlrage",
            "this cluster has no ml.p5en.48xlrage; it has",
        ),
    ],
)
def test_the_command_measures_nothing_that_it_does_not_know(tmp_path, monkeypatch, capsys, written, kind, output):
    monkeypatch.setattr(by_hand, "__file__", str(tmp_path / "podwright_benchmarks/__main__.py"))
    if written:
        (tmp_path / "node.json").write_text(written)
    with pytest.raises(SystemExit) as ended:
        by_hand.main(["run", kind])
    assert ended.value.code == 2
    assert output in capsys.readouterr().err
