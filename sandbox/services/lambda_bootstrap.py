"""What a Lambda function's process runs: imports the handler, calls it once and writes the outcome.

The sandbox starts it with Python's isolated mode and no site-packages, so a handler finds the standard library, its own
code, its layers and boto3, as in AWS's Python runtime, and nothing else of this machine. It imports boto3 and forks a
process for each invocation. That one gets three files from the socket in argv: one with the invocation as JSON, a pipe
for the result as JSON, and one for what the handler prints, its log.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path
from typing import Any, TextIO


class Context:
    """The context object of the Lambda programming model for Python."""

    def __init__(self, invocation: dict[str, Any]) -> None:
        self.function_name = invocation["FunctionName"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = invocation["FunctionArn"]
        self.memory_limit_in_mb = str(invocation["MemorySize"])
        self.aws_request_id = invocation["RequestId"]
        self.log_group_name = invocation["LogGroup"]
        self.log_stream_name = invocation["LogStream"]
        self.identity = None
        self.client_context = None
        self._deadline = time.monotonic() + invocation["Timeout"]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def main() -> None:
    """Run one invocation in each process that is forked here."""
    runtime = Path(sys.argv[2])
    invocation, answer = _next_invocation(socket.socket(fileno=int(sys.argv[1])), runtime)
    sys.path[:0] = invocation["Path"]
    _forget_replaced(invocation["Path"], {package.stem for package in runtime.iterdir()})
    pause, scale = time.sleep, invocation["SleepScale"]
    # A handler that waits for something real waits as much shorter as the sandbox is faster.
    time.sleep = lambda seconds: pause(seconds * scale)
    module, _, name = invocation["Handler"].rpartition(".")
    try:
        # AWS allows a path in front of the module's name.
        handler = getattr(importlib.import_module(module.replace("/", ".")), name)
        result = {"result": handler(invocation["Event"], Context(invocation))}
        text = json.dumps(result)
    except BaseException as error:  # noqa: BLE001 - also SystemExit is the function's error, as in AWS
        traceback.print_exc()
        text = json.dumps({"error": {
            "errorMessage": str(error), "errorType": type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }})  # fmt: skip
    with answer:
        answer.write(text)


def _forget_replaced(folders: list[str], packages: set[str]) -> None:
    """Let imports find the function's modules in place of imported ones of the same names.

    Modules that have imported those keep them. This function searches no archives, such as eggs.

    Args:
        folders: Folders of the function and its layers.
        packages: Packages of the runtime, boto3 among them.
    """
    brought = {file.name.partition(".")[0] for folder in folders for file in Path(folder).glob("*")}
    replaced = {name for name in brought.intersection(sys.modules) if _is_imported_from(name, folders)}
    if replaced & packages:
        # A function that brings its own botocore gets a boto3 that uses it.
        replaced |= packages
    for name in [name for name in sys.modules if name.partition(".")[0] in replaced]:
        del sys.modules[name]


def _is_imported_from(name: str, folders: list[str]) -> bool:
    """True if an import of this name finds a module in these folders, which are the first of sys.path."""
    if name == "__main__" or BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name):
        return False
    spec = PathFinder.find_spec(name, folders)
    # A folder without __init__.py is a package only if no other folder of sys.path has a module of that name.
    return spec is not None and spec.origin is not None


def _next_invocation(connection: socket.socket, runtime: Path) -> tuple[dict[str, Any], TextIO]:
    """Fork a process for each invocation; return in the process that runs it, with the file for its answer."""
    sys.path.insert(0, str(runtime))
    importlib.import_module("boto3")
    # Nothing waits for these processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The garbage collector would copy the memory of what is imported.
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        if not message:
            sys.exit()
        connection.sendall(b".")
        if not os.fork():
            break
        for descriptor in descriptors:
            os.close(descriptor)
    connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # The sandbox kills the group of a function that exceeds its time-out.
    os.setsid()
    request, answered, log = descriptors
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    # The first line of an answer says which process it is.
    os.write(answered, f"{os.getpid()}\n".encode())
    with os.fdopen(request, "rb") as file:
        invocation = json.load(file)
    os.chdir(invocation["Folder"])
    os.environ.clear()
    os.environ.update(invocation["Environment"])
    time.tzset()
    return invocation, os.fdopen(answered, "w")


if __name__ == "__main__":
    main()
