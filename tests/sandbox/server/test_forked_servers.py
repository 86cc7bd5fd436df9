"""The process that forks the sandboxes of tests: its sandboxes differ, and it ends with the tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import boto3

import forked_sandboxes
from governed_cluster import until
from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.process import command_line

TEST_PROCESS = """
import sys
from multiprocessing import forkserver
from pathlib import Path

import forked_sandboxes
from podwright.operations.aws import sandbox_server

sandbox_server.run_server = forked_sandboxes.run_server
sandbox_server.start(Path(sys.argv[1]), port=0, kubernetes="store")
print(forkserver._forkserver._forkserver_pid, flush=True)
sys.stdin.read()
"""


def test_two_sandboxes_make_different_ids(tmp_path: Path) -> None:
    made = set[str]()
    for name in ("one", "two"):
        running = server.start(tmp_path / name, port=0, kubernetes="store")
        session = boto3.Session("sandbox", "sandbox", region_name="us-west-2")
        ec2 = session.client("ec2", endpoint_url=running.endpoint)
        made.add(ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])
        assert server.stop(tmp_path / name)
    assert len(made) == 2


def test_the_process_ends_with_a_test_process_that_is_killed(tmp_path: Path) -> None:
    """Its sandbox runs on, as one that the product starts does."""
    folders = os.pathsep.join([str(Path(forked_sandboxes.__file__).parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-P", "-c", TEST_PROCESS, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": folders},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        parent = int(process.stdout.readline())
        assert command_line(parent)
        process.send_signal(signal.SIGKILL)
    try:
        until(lambda: not any(command_line(parent)))
        assert server.status(tmp_path)
    finally:
        assert server.stop(tmp_path)
