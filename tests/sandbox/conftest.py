"""A running sandbox for the tests of this folder, with the real CDK CLI and boto3 pointed at it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
import pytest

from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.node import cdk_command
from sandbox_stacks import StackUnderTest

REGION = "us-west-2"
APPS = Path(__file__).parent / "apps"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Running]:
    """One server for each test file, since the order of files varies; a fork takes half a second."""
    root = tmp_path_factory.mktemp("sandbox")
    running = server.start(root, port=0, time_scale=0.25)
    yield running
    server.stop(root)


@pytest.fixture(scope="module")
def aws(sandbox: server.Running) -> Callable[[str], Any]:
    """Gives the boto3 client of a service of the sandbox. A new one in each poll would take longer than the call."""
    session = boto3.Session("sandbox", "sandbox", region_name=REGION)
    return cache(partial(session.client, endpoint_url=sandbox.endpoint))


@pytest.fixture
def cdk(sandbox: server.Running, tmp_path: Path) -> Callable[..., str]:
    """Runs the real CDK CLI on a synthesized app against the sandbox and gives its output; a failure fails the test."""

    def run(assembly: Path, *arguments: str) -> str:
        command = cdk_command(*arguments, "--app", str(assembly), "--no-notices")
        environment = {**os.environ, **sandbox.environment(REGION), "CDK_HOME": str(tmp_path)}
        result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout + result.stderr

    return run


@pytest.fixture
def synthesized(tmp_path: Path) -> Callable[..., Path]:
    """Synthesizes an app of `apps/` with context values; gives the cloud assembly."""

    def run(app: str, **context: str) -> Path:
        folder = tmp_path / "-".join(["assembly", *context.values()])
        variables = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context)}
        subprocess.run([sys.executable, APPS / app], env=os.environ | variables, check=True, capture_output=True)
        return folder

    return run


@pytest.fixture
def stack(aws: Callable[[str], Any]) -> StackUnderTest:
    """A stack that does not exist yet."""
    return StackUnderTest(aws("cloudformation"))


@pytest.fixture
def other_stack(aws: Callable[[str], Any]) -> StackUnderTest:
    """A second one."""
    return StackUnderTest(aws("cloudformation"))
