"""Processes of Lambda functions, forked from one that has imported boto3: an import takes half a CPU second.

Each fork sees only its own invocation's environment variables and working directory, and none of the modules that other
invocations have imported. Modules that boto3 has imported stay, unless the function's folders contain one of that name.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_BOOTSTRAP: Final = Path(__file__).with_name("lambda_bootstrap.py")
_READ_BYTES: Final = 65_536
_ANSWER_SECONDS: Final = 60.0
"""Limit for the process that forks, which first imports boto3, to receive an invocation."""


class TimedOutError(Exception):
    """A function was stopped at its time-out; `args[0]` is its log until then."""


@dataclass(frozen=True)
class Ended:
    """The answer and the log of an invocation that has ended."""

    answer: str
    """The JSON that the bootstrap wrote; empty if the process ended before."""
    log: str
    """What the handler printed."""


class FunctionProcesses:
    """Starts processes of functions. `runtime` is the folder with the packages of Lambda's runtime."""

    def __init__(self, runtime: Path):
        self._runtime = runtime
        self._lock = threading.Lock()
        self._parent: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def run(self, invocation: Mapping[str, Any], timeout_seconds: float) -> Ended:
        """Run the bootstrap in a new process and wait for its end.

        Args:
            invocation: What the bootstrap reads.
            timeout_seconds: Seconds until the process and all that it started are killed.

        Raises:
            TimedOutError: The function ran longer than `timeout_seconds`.
            OSError: The process that forks does not receive the invocation, also after it was started again.
        """
        with ExitStack() as stack:
            request = stack.enter_context(tempfile.TemporaryFile())
            request.write(json.dumps(invocation).encode())
            request.seek(0)
            # A separate pipe for the answer, since handlers and libraries print to the standard streams.
            (answers, answer), (logs, log) = os.pipe(), os.pipe()
            for descriptor in (answers, logs):
                stack.callback(os.close, descriptor)
            try:
                self._fork([request.fileno(), answer, log])
            finally:
                os.close(answer)
                os.close(log)
            return _read(answers, logs, time.monotonic() + timeout_seconds)

    def close(self) -> None:
        """End the process that forks; those of invocations run on."""
        if self._connection is not None and self._parent is not None:
            self._connection.close()
            # It holds nothing, and may stand still.
            self._parent.kill()
            self._parent.wait()
            self._connection = None

    def _fork(self, descriptors: list[int]) -> None:
        with self._lock:
            try:
                self._send(descriptors)
            except (ConnectionError, TimeoutError):
                # The process was killed or stopped before it received them, so no function runs yet.
                self.close()
                self._send(descriptors)

    def _send(self, descriptors: list[int]) -> None:
        """Send descriptors, and wait until they are received: macOS loses those that their sender closes before.

        Raises:
            ConnectionError: The process that forks has ended before it received them.
            TimeoutError: It has not received them after a minute.
        """
        connection = self._connection or self._start()
        socket.send_fds(connection, [b"."], descriptors)
        if not connection.recv(1):
            raise ConnectionResetError("the process that forks functions has ended")

    def _start(self) -> socket.socket:
        """Start the process that imports boto3. It ends when the sandbox closes the socket or dies."""
        connection, theirs = socket.socketpair()
        connection.settimeout(_ANSWER_SECONDS)
        with theirs:
            self._parent = subprocess.Popen(
                # -I and -S hide this machine's packages: a function sees only its layers and its runtime.
                [sys.executable, "-I", "-S", "-B", _BOOTSTRAP, str(theirs.fileno()), self._runtime],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={"PATH": os.defpath, "LANG": "en_US.UTF-8"},
                start_new_session=True,
            )
        self._connection = connection
        return connection


def _read(answers: int, logs: int, deadline: float) -> Ended:
    """Read both pipes until nothing has them open. The first line of the answer is the id of the process."""
    read: dict[int, bytearray] = {answers: bytearray(), logs: bytearray()}
    with selectors.DefaultSelector() as selector:
        for descriptor in read:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            for key, _ in ready:
                content = os.read(key.fd, _READ_BYTES)
                read[key.fd] += content
                if not content:
                    selector.unregister(key.fd)
            if not ready and time.monotonic() >= deadline:
                process, _, _ = read[answers].partition(b"\n")
                if process:
                    with suppress(ProcessLookupError):
                        os.killpg(int(process), signal.SIGKILL)
                raise TimedOutError(read[logs].decode(errors="replace"))
    _, _, answer = read[answers].decode().partition("\n")
    return Ended(answer, read[logs].decode(errors="replace"))
