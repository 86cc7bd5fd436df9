"""Settings of all tests: the Node that podwright installs, a CDK without validation, and no AWS account."""

import gc
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import forked_sandboxes
import service_models
from needs import require
from podwright.operations.aws import sandbox_server
from podwright.operations.programs.node import use_bundled_node
from real_parts import needs_all

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def installed_packages() -> Iterator[None]:
    """Fail if a test installs a package into this environment: other shards' syntheses have it as an input."""
    before = _packages()
    yield
    assert _packages() == before


def _packages() -> set[str]:
    return {file.name for file in Path(sysconfig.get_path("purelib")).glob("*.dist-info")}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the snapshots instead of comparing them")
    parser.addoption("--update-release", action="store_true", help="take the snapshots for those of the last release")
    parser.addoption("--every-point", action="store_true", help="kill set-ups at every point, not at some of each step")
    parser.addoption(
        "--all", action="store_true", help="run the tests of real parts as well: tests/runner/real_parts.py"
    )
    parser.addoption("--aws", action="store_true", help="run the tests marked aws with the environment's credentials")


def pytest_configure(config: pytest.Config) -> None:
    # Hypothesis' limits of elapsed time fail on a busy machine.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
    # Collecting makes thousands of tests and no garbage.
    gc.disable()
    retained = ("AWS_",) if config.getoption("--aws") else ()
    for name in list(os.environ):
        if name.startswith(("AWS_", "CDK_", "JSII_")) and not name.startswith(retained):
            del os.environ[name]
    if not retained:
        # A test that forgets to stub a call fails for want of credentials instead of reaching somebody's account.
        os.environ |= {
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
    # Tests on the real control plane ask for it.
    os.environ |= {"PODWRIGHT_SANDBOX_KUBERNETES": "store", "PODWRIGHT_SANDBOX_REAL_NODES": "0"}
    service_models.share()
    # The validator takes 2 s of each synthesis; the tests that are about it turn it on again.
    os.environ |= {"CDK_VALIDATION": "false", "CDK_DISABLE_CLI_TELEMETRY": "true"}
    use_bundled_node()
    if not hasattr(config, "workerinput"):
        # Shards share their assemblies; they inherit this variable from the controller.
        os.environ["PODWRIGHT_TEST_ASSEMBLIES"] = tempfile.mkdtemp(prefix="podwright-assemblies-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # An assembly has tens of megabytes, and a run makes dozens.
        shutil.rmtree(os.environ["PODWRIGHT_TEST_ASSEMBLIES"], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def fork_sandboxes() -> Iterator[Callable[..., Any]]:
    """Fork the servers that this process starts instead of importing their code again for each.

    Gives the product's function, which starts a process for a server.
    """
    with pytest.MonkeyPatch.context() as patch:
        product = sandbox_server.run_server
        patch.setattr(sandbox_server, "run_server", forked_sandboxes.run_server)
        yield product


@pytest.fixture
def run_unforked(fork_sandboxes: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the servers of this test as the product does."""
    monkeypatch.setattr(sandbox_server, "run_server", fork_sandboxes)


def _has_gpu() -> bool:
    return bool(shutil.which("nvidia-smi")) and subprocess.run(["nvidia-smi"], capture_output=True).returncode == 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of real parts, except with --all or where their path is named."""
    if config.getoption("--all") or not collection_path.is_relative_to(ROOT):
        return None
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    path = collection_path.relative_to(ROOT).as_posix()
    inside = [each.relative_to(ROOT).as_posix() for each in named if each.is_relative_to(ROOT)]
    return needs_all(path, inside) or None


def pytest_collection_finish() -> None:
    # A shard collects file after file; frozen later, the garbage of its tests would never be freed.
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and not _has_gpu():
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU; nvidia-smi finds none"))
    if not config.getoption("--aws"):
        for item in items:
            if item.get_closest_marker("aws"):
                item.add_marker(pytest.mark.skip(reason="needs an AWS account; run with --aws"))
