"""Every single-GPU program on a real GPU: its rates against PyTorch's in the same run, and faults that it has to find.

Needs an NVIDIA GPU and driver, CUDA's wheels from `bin/setup test`, and for the comparisons PyTorch with CUDA. On a
machine without a package index PODWRIGHT_BENCHMARK_PROGRAMS names the folder of programs that were built elsewhere.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuda_toolkit import toolkit
from podwright.operations.artifacts.kernels import compile_programs

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if built := os.environ.get("PODWRIGHT_BENCHMARK_PROGRAMS"):
        yield Path(built)
        return
    folder, home = tmp_path_factory.mktemp("programs"), toolkit()
    libraries = [home / "lib", home.parent / "nccl/lib"]
    compile_programs(folder, toolkit=home, headers=[home.parent / "nccl/include"], libraries=libraries)
    (folder / "lib").mkdir()
    for library in (libraries[0] / "libcublasLt.so.13", libraries[1] / "libnccl.so.2"):
        (folder / "lib" / library.name).symlink_to(library)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def measure(programs: Path) -> Callable[..., dict[str, dict[str, Any]]]:
    """Run a program on GPU 0; its results by name."""

    def run(name: str, *arguments: str) -> dict[str, dict[str, Any]]:
        done = subprocess.run([programs / "bin" / name, *arguments], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return {item["name"]: item for item in map(json.loads, done.stdout.splitlines())}

    return run


def seconds(work: Callable[[], object], times: int = 10, batches: int = 10) -> float:
    """The shortest time of one `work`, over batches, by the GPU's clock."""
    torch = pytest.importorskip("torch", reason="PyTorch is what the rates are compared with")
    best = float("inf")
    for _ in range(3):
        work()
    for _ in range(batches):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(times):
            work()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3 / times)
    return best


def test_matrix_products_are_right_and_stable(measure):
    actual = measure("gemm", "--seconds", "1", "--runs", "50")
    for precision in ("bf16", "tf32", "fp64"):
        assert actual[f"gemm_{precision}"]["value"] > 0
    for name, item in actual.items():
        if name.endswith(("_wrong", "_unstable")) and item["value"] is not None:
            assert item["value"] == 0, name


def test_a_flipped_bit_in_a_product_is_found(measure):
    """Of 8192 x 8192 elements one has one wrong bit, in each format."""
    actual = measure("gemm", "--seconds", "0.2", "--runs", "10", "--flip", "1")
    for precision in ("bf16", "tf32", "fp64"):
        assert actual[f"gemm_{precision}_wrong"]["value"] == 1
        assert actual[f"gemm_{precision}_unstable"]["value"] == 1


def test_fifty_clean_runs_raise_no_alarm(measure):
    for _ in range(50):
        actual = measure("gemm", "--only", "bf16", "--seconds", "0.1", "--runs", "10", "--size", "4096")
        assert (actual["gemm_bf16_wrong"]["value"], actual["gemm_bf16_unstable"]["value"]) == (0, 0)


def test_bf16_products_reach_97_percent_of_pytorch(measure):
    torch = pytest.importorskip("torch", reason="PyTorch is what the rates are compared with")
    size = 8192
    best = 0.0
    for transposed in (False, True):
        a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
        b = b.t() if transposed else b
        out = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
        best = max(best, 2 * size**3 / seconds(lambda a=a, b=b, out=out: torch.matmul(a, b, out=out)) / 1e12)
    ours = measure("gemm", "--only", "bf16", "--seconds", "2", "--size", str(size))["gemm_bf16"]
    print(f"BF16: ours {ours['value']:.1f} median, {ours['peak']:.1f} best batch; PyTorch's best {best:.1f} TFLOPS")
    assert ours["peak"] >= 0.97 * best


def pytorch_copy(size: int) -> float:
    """GB/s of PyTorch's copy_, read and written."""
    torch = pytest.importorskip("torch", reason="PyTorch is what the rates are compared with")
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * size / seconds(lambda: target.copy_(source)) / 1e9


def test_memory_copies_are_as_fast_as_the_better_of_pytorch_and_the_runtime(measure):
    pytorch = pytorch_copy(4 << 30)
    pytest.importorskip("torch").cuda.empty_cache()
    actual = measure("memory", "--gib", "4", "--batches", "10", "--runtime", "1")
    ours, runtime = actual["hbm_copy"], actual["hbm_copy_runtime"]["peak"]
    print(
        f"HBM copy: ours {ours['peak']:.0f} ({ours['note']}), PyTorch {pytorch:.0f}, cudaMemcpyAsync {runtime:.0f} GB/s"
    )
    # 0.2 %: what two measurements of the same operation differ by.
    assert ours["peak"] >= 0.998 * max(pytorch, runtime)


def test_memory_keeps_what_is_written(measure):
    actual = measure("memory", "--gib", "1", "--passes", "2")
    assert actual["memory_tested"]["value"] >= 90
    assert actual["memory_wrong"]["value"] == 0
    assert all(actual[f"hbm_{name}"]["value"] > 0 for name in ("read", "write", "copy", "triad"))


def test_a_flipped_bit_in_memory_is_found(measure):
    actual = measure("memory", "--gib", "1", "--passes", "1", "--flip", "1")
    assert actual["memory_wrong"]["value"] == 1
    assert "first at byte" in actual["memory_wrong"]["note"]


def test_transfers_between_host_and_gpu(measure):
    actual = measure("transfer", "--mib", "64", "--batches", "3", "--reads", "1000")
    assert actual["host_to_device"]["value"] > 1
    assert actual["device_to_host"]["value"] > 1
    assert 0 < actual["host_latency"]["value"] < 1000


def test_collectives_of_the_gpus_that_there_are(measure):
    """With one GPU, NCCL starts and copies; with several, data crosses their links."""
    actual = measure("collectives", "--mib", "64", "--batches", "2")
    wrong = {name: item["value"] for name, item in actual.items() if name.endswith("_wrong")}
    assert wrong == dict.fromkeys(wrong, 0)
    assert len(wrong) == 4
