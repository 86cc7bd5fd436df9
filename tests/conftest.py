"""What every test starts from: the Node that podwright installs, a fast CDK, and no AWS account within reach."""

import gc
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from needs import require
from podwright.operations.programs.node import use_bundled_node

WITH_CONTROL_PLANE = tuple(Path(__file__).resolve().parent / name for name in ("kubernetes", "stories"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the snapshots instead of comparing them")
    parser.addoption("--update-release", action="store_true", help="take the snapshots for those of the last release")
    parser.addoption("--every-point", action="store_true", help="kill set-ups at every point, not at some of each step")
    parser.addoption("--all", action="store_true", help="run the tests on the real Kubernetes control plane as well")
    parser.addoption("--aws", action="store_true", help="run the tests marked aws with the environment's credentials")


def pytest_configure(config: pytest.Config) -> None:
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
    os.environ["PODWRIGHT_SANDBOX_KUBERNETES"] = "store"
    # The validator takes 2 s of each synthesis; the tests that are about it turn it on again.
    os.environ |= {"CDK_VALIDATION": "false", "CDK_DISABLE_CLI_TELEMETRY": "true"}
    use_bundled_node()
    if not hasattr(config, "workerinput"):
        # Workers share what they synthesize; they get this variable from the process that starts them.
        os.environ["PODWRIGHT_TEST_ASSEMBLIES"] = tempfile.mkdtemp(prefix="podwright-assemblies-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # An assembly has tens of megabytes, and a run makes dozens.
        shutil.rmtree(os.environ["PODWRIGHT_TEST_ASSEMBLIES"], ignore_errors=True)


def _has_gpu() -> bool:
    return bool(shutil.which("nvidia-smi")) and subprocess.run(["nvidia-smi"], capture_output=True).returncode == 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what takes a control plane, unless it is asked for: by --all, or by its path."""
    if collection_path not in WITH_CONTROL_PLANE or config.getoption("--all"):
        return None
    named = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(collection_path) for path in named) else True


def pytest_collection_finish() -> None:
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
