"""The benchmark programs compile and link for every GPU, start on nodes' images, and verify what they say they do.

Nothing here runs on a GPU: tests/gpu does.
"""

import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuda_toolkit import toolkit
from needs import needs, needs_programs
from podwright.config.errors import CommandError
from podwright.lifecycle_scripts.podwright_benchmarks.measured import results
from podwright.operations.artifacts.kernels import compile_programs, newest_glibc, pack_programs
from podwright.planning.node.kernels import SOURCES, programs, recipe, wheels

NAMES = ("gemm", "memory", "transfer", "collectives")
ROOT = SOURCES.parents[1]

needs_compiler = needs(
    sys.platform == "linux" and find_spec("nvidia") and shutil.which("g++"),
    "Linux, g++, and CUDA's wheels, which `bin/setup test` installs",
)


@pytest.fixture(scope="module")
def gpus(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """The compute capabilities to compile for: with --all every one, which takes longer, otherwise Hopper's."""
    return (80, 90, 100, 103, 120) if request.config.getoption("--all") else (90,)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, gpus: tuple[int, ...]) -> Iterator[Path]:
    """Yield all programs, compiled two at a time, with the real libraries next to them."""
    folder = tmp_path_factory.mktemp("programs")
    home = toolkit()
    nccl = home.parent / "nccl"

    def one(name: str) -> None:
        compile_programs(
            folder, toolkit=home, headers=[nccl / "include"], libraries=[home / "lib", nccl / "lib"], only=(name,)
        )

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        if len(gpus) == 1:
            # With --all the recipe's own list is what counts.
            patch.setenv("GPUS", str(*gpus))
        list(pool.map(one, NAMES))
    (folder / "lib").mkdir()
    for library in (home / "lib/libcublasLt.so.13", nccl / "lib/libnccl.so.2"):
        (folder / "lib" / library.name).symlink_to(library)
    yield folder
    shutil.rmtree(folder)


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_has_code_for_every_gpu(built, gpus, name):
    code = (built / "bin" / name).read_bytes()
    assert [gpu for gpu in (80, 90, 100, 103, 120) if f"sm_{gpu}".encode() in code] == [*gpus]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "library"),
    [("gemm", "libcublasLt.so.13"), ("memory", None), ("transfer", None), ("collectives", "libnccl.so.2")],
)
def test_takes_its_library_from_beside_itself(built, name, library):
    loaded = subprocess.run(["ldd", built / "bin" / name], capture_output=True, text=True, check=True).stdout
    assert "not found" not in loaded
    assert "libcudart" not in loaded, "the runtime is inside"
    actual = dict(re.findall(r"(libcublasLt\.so\.13|libnccl\.so\.2) => (\S+)", loaded))
    assert set(actual) == ({library} if library else set())
    assert all(Path(path).parent.resolve() == (built / "lib").resolve() for path in actual.values())


@needs_compiler
def test_starts_on_the_oldest_image(built):
    assert newest_glibc(built / "bin") <= tuple(map(int, recipe()["glibc_maximum"].split(".")))


@needs_compiler
@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine may have a driver")
@pytest.mark.parametrize("name", NAMES)
def test_without_a_driver_nothing_is_measured_and_nothing_fails(built, name):
    (measureds,) = results([str(built / "bin" / name)], name=name, devices=(0,), environment={}, seconds=60)
    assert (measureds.value, measureds.failed) == (None, False)
    assert "cudaErrorInsufficientDriver" in measureds.reason


@needs_compiler
@needs_programs("aarch64-linux-gnu-g++", package="g++-aarch64-linux-gnu")
@needs(platform.machine() == "x86_64", "x86, as it is about compiling there for Arm")
def test_compiles_for_arm(tmp_path):
    home, target = toolkit(), tmp_path / "transfer.o"
    options = ["-std=c++17", "-c", "-ccbin", "aarch64-linux-gnu-g++", "-gencode", "arch=compute_100,code=sm_100"]
    subprocess.run([home / "bin/nvcc", *options, SOURCES / "transfer.cu", "-o", target], check=True)
    assert int.from_bytes(target.read_bytes()[18:20], "little") == 183, "ELF's number of AArch64"


@needs_compiler
def test_a_source_that_does_not_compile_is_shown(tmp_path):
    with pytest.raises(CommandError, match=r"no libcublasLt\.so in"):
        compile_programs(tmp_path, toolkit=toolkit(), headers=[], libraries=[tmp_path], only=("gemm",))


@needs_programs("g++", package="g++")
def test_seeded_faults_show(tmp_path):
    """One flipped bit in a million words, two that changed places, one flipped bit in a product of 10⁶ elements."""
    program = tmp_path / "faults"
    source = Path(__file__).with_name("verify_faults.cpp")
    subprocess.run(["g++", "-std=c++17", "-O2", "-Wall", "-Werror", f"-I{SOURCES}", source, "-o", program], check=True)
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert out == ["64 4", "1", "0 1", "0.00 1.00 1"]


@needs_programs("g++", package="g++")
def test_kernels_do_the_right_thing_on_the_host(tmp_path):
    program, source = tmp_path / "host", Path(__file__).with_name("kernels_on_host.cpp")
    options = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", f"-I{SOURCES}", "-pthread"]
    subprocess.run(["g++", *options, source, "-o", program], check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()
    wrong = [line for line in lines if line.rpartition(" ")[2] != ("1" if "-flipped " in line else "0")]
    assert wrong == []
    assert len(lines) == 25


def test_pins_of_tests_are_those_that_ship():
    tested = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["test"]
    pinned = {line.partition(";")[0].strip() for line in tested if line.startswith("nvidia-")}
    assert pinned == {item.address for part in ("tools", "libraries") for item in wheels(part, "x86_64")}


def test_versions_follow_from_the_sources(monkeypatch, tmp_path):
    before = programs("x86_64")
    assert before.name != programs("arm64").name
    changed = tmp_path / "sources"
    shutil.copytree(SOURCES, changed)
    monkeypatch.setattr("podwright.planning.node.kernels.SOURCES", changed)
    assert programs("x86_64") == before
    (changed / "gemm.cu").write_text((changed / "gemm.cu").read_text() + "\n")
    assert programs("x86_64").name != before.name


def test_an_archive_depends_on_names_and_contents_alone(tmp_path):
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/gemm").write_bytes(b"program")
        (folder / "contents.json").write_text("{}")
        pack_programs(folder, tmp_path / f"{name}.tar.gz")
        (folder / "bin/gemm").touch()
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
