"""Starts the sandboxes of tests by forking one process that has imported the server, which takes 3 CPU seconds.

The process starts with the first sandbox and ends with the test process, however that ends.
"""

import ctypes
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from unittest.mock import patch

from podwright.operations.aws import sandbox_server

_SERVER = "podwright.sandbox.__main__"
_IMPORTED_LATE = ("cryptography.hazmat.backends.openssl.backend",)
"""What a server imports when it makes its certificates."""
_RULES = "loaded_rules"
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([_SERVER, *_IMPORTED_LATE, _RULES])
_FOLDER = str(Path(__file__).parent)
# Fields of /proc/PID/stat, counted from the state: the addresses at which the command line begins and ends.
_COMMAND_LINE_START, _COMMAND_LINE_END = 45, 46


def run_server(
    arguments: Sequence[str], listeners: tuple[socket.socket, socket.socket], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Fork a server, wait until it answers or fails, and return what it printed.

    Takes the place of `sandbox_server.run_server`.
    """
    variables = os.environ | sandbox_server.MALLOC_SETTINGS
    # glibc reads its variables only when a program starts. Python 3.11 does not hand its path on to this program.
    with patch.dict(os.environ, variables | {"PYTHONPATH": _FOLDER}):
        forkserver.ensure_running()
    with tempfile.TemporaryDirectory() as printed:
        process = _CONTEXT.Process(
            target=_become_server, args=([*arguments], listeners, str(folder), variables, printed)
        )
        process.start()
        process.join()
        output, errors = (Path(printed, name).read_text() for name in ("output", "errors"))
    assert process.exitcode is not None
    return subprocess.CompletedProcess(arguments, process.exitcode, output, errors)


def _become_server(
    arguments: list[str],
    listeners: tuple[socket.socket, socket.socket],
    folder: str,
    variables: Mapping[str, str],
    printed: str,
) -> None:
    for stream, name in ((1, "output"), (2, "errors")):
        file = os.open(Path(printed, name), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
        os.close(file)
    # Children hold these pipes so that they can fork too; the process would then live as long as its sandboxes.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # pyrefly: ignore[missing-attribute]
    os.close(resource_tracker.getfd())
    if missing := [name for name in (_SERVER, _RULES) if name not in sys.modules]:
        raise RuntimeError(f"the process that forks sandboxes could not import {', '.join(missing)}")
    from moto.moto_api._internal import mock_random

    from podwright.sandbox.__main__ import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    # Python seeds its own generator again after a fork, but not moto's: all sandboxes would make the same ids.
    mock_random.seed()
    sys.argv = ["podwright.sandbox", *arguments, *(str(listener.detach()) for listener in listeners)]
    _show_command_line()
    main()


def _show_command_line() -> None:
    """Write sys.argv over the memory that /proc shows, by which `sandbox_server` recognizes its process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_COMMAND_LINE_START]), int(fields[_COMMAND_LINE_END])
    size = end - start
    # The program and its port are the first words. The last byte has to stay NUL.
    words = b"".join(os.fsencode(word) + b"\0" for word in sys.argv)[: size - 1]
    ctypes.memmove(start, words.ljust(size, b"\0"), size)
