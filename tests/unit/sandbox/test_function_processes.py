"""Processes of functions: each is forked, has its invocation alone, and ends with all that it started."""

import json
import os
import signal
import socket
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
    processes: FunctionProcesses,
    folder: Path,
    code: str,
    seconds: float = CEILING_SECONDS,
    scale: float = 0.0,
    **variables: str,
) -> Ended:
    """Invoke a handler with that code, environment variables and scale of its sleeps."""
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
        "SleepScale": scale,
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


@pytest.mark.parametrize("file", ["queue.py", "queue/__init__.py"])
def test_a_function_may_bring_a_module_that_boto3_has_imported(
    runtime: Path, processes: FunctionProcesses, tmp_path: Path, file: str
) -> None:
    (runtime / "boto3.py").write_text("import email.message, queue\nEMPTY = queue.Empty.__name__\n")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("Empty = 'own'\n")
    # Neither is a module that replaces Python's.
    (tmp_path / "email").mkdir()
    (tmp_path / "__main__.py").write_text("raise RuntimeError\n")
    code = "import boto3, email.message, os, queue, sys\ndef handler(event, context):\n"
    code += "    same = email.message is boto3.email.message\n"
    code += "    return [queue.Empty, boto3.EMPTY, same, sys.modules['__main__'].__file__]\n"
    result = json.loads(run(processes, tmp_path, code).answer)["result"]
    assert result[:3] == ["own", "Empty", True]
    assert Path(result[3]).name == "lambda_bootstrap.py"


def test_a_function_that_brings_botocore_gets_a_boto3_that_uses_it(
    runtime: Path, processes: FunctionProcesses, tmp_path: Path
) -> None:
    (runtime / "botocore.py").write_text("VERSION = 'of the runtime'\n")
    (runtime / "boto3.py").write_text("import botocore\n")
    (tmp_path / "botocore.py").write_text("VERSION = 'own'\n")
    code = "import boto3\ndef handler(event, context):\n    return boto3.botocore.VERSION\n"
    assert run(processes, tmp_path, code).answer == '{"result": "own"}'


def test_a_function_waits_as_much_shorter_as_the_sandbox_is_faster(
    processes: FunctionProcesses, tmp_path: Path
) -> None:
    code = "import time\ndef handler(event, context):\n    time.sleep({})\n"
    # Python's sleep refuses more than 9.2e9 seconds.
    assert run(processes, tmp_path, code.format("1e11"), scale=1e-12).answer == '{"result": null}'
    assert json.loads(run(processes, tmp_path, code.format("1e11"), scale=1.0).answer)["error"]["errorType"] == (
        "OverflowError"
    )


def test_an_invocation_has_its_own_time_zone(processes: FunctionProcesses, tmp_path: Path) -> None:
    code = "import time\ndef handler(event, context):\n    return [time.localtime(0).tm_hour, time.tzname[0]]\n"
    zones = {"ABC-5": [5, "ABC"], ":UTC": [0, "UTC"]}
    for zone, expected in zones.items():
        assert json.loads(run(processes, tmp_path, code, TZ=zone).answer)["result"] == expected


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


PARENT = "import os\ndef handler(event, context):\n    return os.getppid()\n"


def test_another_process_forks_after_the_first_was_killed(processes: FunctionProcesses, tmp_path: Path) -> None:
    first = json.loads(run(processes, tmp_path, PARENT).answer)["result"]
    os.kill(first, signal.SIGKILL)
    second = json.loads(run(processes, tmp_path, PARENT).answer)["result"]
    assert processes._parent is not None
    assert second == processes._parent.pid != first


def test_another_process_forks_if_the_first_is_killed_with_an_invocation_in_flight(
    processes: FunctionProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = json.loads(run(processes, tmp_path, PARENT).answer)["result"]
    # It does not receive what is sent.
    os.kill(first, signal.SIGSTOP)
    send = socket.send_fds

    def send_and_kill(*arguments: Any) -> int:
        monkeypatch.setattr(socket, "send_fds", send)
        sent = send(*arguments)
        os.kill(first, signal.SIGKILL)
        return sent

    monkeypatch.setattr(socket, "send_fds", send_and_kill)
    assert json.loads(run(processes, tmp_path, PARENT).answer)["result"] != first


def test_another_process_forks_if_the_first_stands_still(processes: FunctionProcesses, tmp_path: Path) -> None:
    first = json.loads(run(processes, tmp_path, PARENT).answer)["result"]
    os.kill(first, signal.SIGSTOP)
    assert processes._connection is not None
    processes._connection.settimeout(0.1)
    assert json.loads(run(processes, tmp_path, PARENT).answer)["result"] != first
    assert not Path("/proc", str(first), "exe").exists()


def test_descriptors_are_open_until_the_process_has_received_them(
    runtime: Path, processes: FunctionProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, fork, states = tmp_path / "imported", processes._fork, []
    # It receives nothing before its imports have ended.
    (runtime / "boto3.py").write_text(f"import pathlib\npathlib.Path({str(received)!r}).touch()\n")

    def record(descriptors: list[int]) -> None:
        fork(descriptors)
        states.append(received.exists())

    monkeypatch.setattr(processes, "_fork", record)
    run(processes, tmp_path, PARENT)
    assert states == [True]


def test_a_runtime_that_cannot_be_imported_is_an_error(
    runtime: Path, processes: FunctionProcesses, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (runtime / "boto3.py").write_text("raise RuntimeError('broken runtime')\n")
    with pytest.raises(ConnectionError):
        run(processes, tmp_path, PARENT)
    assert "broken runtime" in capfd.readouterr().err
