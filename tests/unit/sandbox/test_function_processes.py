"""Processes of functions: each is forked, has its invocation alone, and ends with all that it started."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.sandbox.services.function_processes import Ended, FunctionProcesses, TimedOutError
from waiting import CEILING_SECONDS, until

BOTO3 = "VERSION = 'of the runtime'\n"


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A runtime with a boto3 that takes no time to import."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    (folder / "boto3.py").write_text(BOTO3)
    return folder


@pytest.fixture
def processes(runtime: Path) -> Iterator[FunctionProcesses]:
    """What starts them."""
    processes = FunctionProcesses(runtime)
    yield processes
    processes.close()


def run(
    processes: FunctionProcesses, folder: Path, code: str, seconds: float = CEILING_SECONDS, **variables: str
) -> Ended:
    """Invoke a handler with that code."""
    (folder / "index.py").write_text(code)
    invocation: dict[str, Any] = {
        "Handler": "index.handler",
        "Event": {"key": "value"},
        "FunctionName": "name",
        "FunctionArn": "arn",
        "MemorySize": 128,
        "RequestId": "request",
        "LogGroup": "group",
        "LogStream": "stream",
        "Timeout": 1,
        "SleepScale": 0.0,
        "Path": [str(folder)],
        "Folder": str(folder),
        "Environment": variables,
    }
    return processes.run(invocation, seconds)


def test_an_invocation_has_its_event_folder_and_variables_alone(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = "import os\ndef handler(event, context):\n    print('hello')\n"
    code += "    return [event, os.getcwd(), dict(os.environ)]\n"
    ended = run(processes, tmp_path, code, NAME="one")
    assert json.loads(ended.answer) == {"result": [{"key": "value"}, str(tmp_path), {"NAME": "one"}]}
    assert ended.log == "hello\n"


def test_modules_of_one_invocation_are_not_in_the_next(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = "import boto3\ndef handler(event, context):\n    boto3.VERSION += ', changed'\n    return boto3.VERSION\n"
    answers = [run(processes, tmp_path, code).answer for _ in range(2)]
    assert answers == ['{"result": "of the runtime, changed"}'] * 2


def test_a_function_may_bring_its_own_boto3(processes: FunctionProcesses, tmp_path: Path) -> None:
    (tmp_path / "boto3.py").write_text("VERSION = 'own'\n")
    code = "import boto3\ndef handler(event, context):\n    return boto3.VERSION\n"
    assert run(processes, tmp_path, code).answer == '{"result": "own"}'


def test_a_failure_and_a_process_that_ends_by_itself(processes: FunctionProcesses, tmp_path: Path) -> None:
    failed = run(processes, tmp_path, "def handler(event, context):\n    raise SystemExit(3)\n")
    assert json.loads(failed.answer)["error"]["errorType"] == "SystemExit"
    ended = run(
        processes, tmp_path, "import os\ndef handler(event, context):\n    print('x', flush=True)\n    os._exit(1)\n"
    )
    assert ended == Ended("", "x\n")


def test_a_large_log_does_not_block(processes: FunctionProcesses, tmp_path: Path) -> None:
    assert len(run(processes, tmp_path, "def handler(event, context):\n    print('x' * 1_000_000)\n").log) == 1_000_001


def test_all_that_a_function_started_ends_at_its_time_out(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = (
        "import os, subprocess\ndef handler(event, context):\n"
        f"    child = subprocess.Popen(['sleep', '{CEILING_SECONDS:.0f}'])\n"
        "    print(os.getpid(), child.pid, flush=True)\n    child.wait()\n"
    )
    with pytest.raises(TimedOutError) as raised:
        run(processes, tmp_path, code, 3)
    for process in str(raised.value).split():
        until(lambda process=process: not Path("/proc", process, "exe").exists())


def test_invocations_run_at_the_same_time(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = (
        "import os, pathlib\ndef handler(event, context):\n"
        "    pathlib.Path(os.environ['OWN']).touch()\n"
        "    while not pathlib.Path(os.environ['OTHER']).exists(): pass\n"
    )
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    own, other = (str(tmp_path / name) for name in ("a", "b"))
    threads = [
        threading.Thread(target=run, args=(processes, folders[0], code), kwargs={"OWN": own, "OTHER": other}),
        threading.Thread(target=run, args=(processes, folders[1], code), kwargs={"OWN": other, "OTHER": own}),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_another_process_forks_after_the_first_was_killed(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = "import os\ndef handler(event, context):\n    return os.getppid()\n"
    first = json.loads(run(processes, tmp_path, code).answer)["result"]
    os.kill(first, signal.SIGKILL)
    assert processes._parent is not None
    processes._parent.wait()
    assert json.loads(run(processes, tmp_path, code).answer)["result"] == processes._parent.pid != first
