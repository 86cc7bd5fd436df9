"""The `podwright` command of stories, forked from one process that has imported it: that is most of a short command.

A folder for PATH has a program `podwright`, which hands its arguments, folder, variables and streams to that process,
and ends as the command does.
"""

import array
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

_PACKAGE: Final = "podwright.operations"
_IMPORTED_LATE: Final = ("boto3", "rich.console", "rich.table")
"""What commands import only when they need it."""
_SERVICES: Final = ("cloudformation", "ec2", "eks", "sagemaker", "sts")
_WITHOUT_CLI: Final = "--without-cdk-cli"
_FAILED: Final = 70
"""Exit status of a command that left none."""
_SIZE_BYTES: Final = 4
_PROGRAM: Final = """#!{python} -IS
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    streams = array.array("i", [0, 1, 2])
    connection.sendmsg([len(request).to_bytes({size}, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    connection.sendall(request)
    status = connection.recv(1)
sys.exit(status[0] if status else {failed})
"""


@contextmanager
def forked_commands(*, cdk_cli: bool = True) -> Iterator[Path]:
    """Yield a folder with the program `podwright`.

    Args:
        cdk_cli: Whether `podwright deploy` starts the CDK CLI. Otherwise it deploys by CloudFormation's API.
    """
    # The address of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="podwright-") as folder, socket.socket(socket.AF_UNIX) as listener:
        address, program = Path(folder, "socket"), Path(folder, "podwright")
        listener.bind(str(address))
        listener.listen()
        text = _PROGRAM.format(python=sys.executable, address=str(address), size=_SIZE_BYTES, failed=_FAILED)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        # Its own group: an interrupt is for the test process, which then ends this one.
        arguments = [sys.executable, "-P", __file__, str(listener.fileno()), *[_WITHOUT_CLI] * (not cdk_cli)]
        process = subprocess.Popen(arguments, pass_fds=[listener.fileno()], start_new_session=True)
        try:
            yield Path(folder)
        finally:
            process.terminate()
            process.wait()


def _serve(listener: socket.socket) -> None:
    """Fork a process for each request; return in the one that is to run the command, with its streams and folder."""
    # Nothing waits for the processes that wait for commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            break
        connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.close()
    arguments, folder, variables, streams = _request(connection)
    command = os.fork()
    if command:
        _wait(connection, command)
    connection.close()
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # What Python knows of the streams is from its start.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["podwright", *arguments]


def _request(connection: socket.socket) -> tuple[Sequence[str], str, Mapping[str, str], Sequence[int]]:
    """The arguments, folder, variables and streams of a command."""
    streams = array.array("i")
    size, passed, _, _ = connection.recvmsg(_SIZE_BYTES, socket.CMSG_SPACE(3 * streams.itemsize))
    for _, _, data in passed:
        streams.frombytes(data)
    with connection.makefile("rb") as source:
        arguments, folder, variables = json.loads(source.read(int.from_bytes(size, "big")))
    return arguments, folder, variables, streams


def _wait(connection: socket.socket, command: int) -> None:
    """End as the command does, and answer by its status; end it where nothing waits for the answer."""
    ended = os.pidfd_open(command)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        # The program was killed. It leads the session of all that it started.
        os.killpg(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    code = os.waitstatus_to_exitcode(status)
    if ended in ready:
        connection.send(bytes([code if code >= 0 else _FAILED]))
    os._exit(0)


def _read_models() -> None:
    """Read the models of the services that most commands ask, once for all commands."""
    import_module("service_models").share()
    session = import_module("boto3").Session("none", "none", region_name="us-west-2")
    for name in _SERVICES:
        session.client(name)


def main(descriptor: str, *options: str) -> int:
    """Serve commands; this returns in each process that has run one."""
    cli: Any = import_module(f"{_PACKAGE}.cli")
    for command in cli.COMMANDS:
        import_module(command.module, _PACKAGE)
    for name in _IMPORTED_LATE:
        import_module(name)
    # Pydantic builds the schema of environments with the first one: 0.3 CPU seconds.
    import_module("podwright.config.settings.environment").Environment.model_rebuild()
    sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    _read_models()
    if _WITHOUT_CLI in options:
        deployment: Any = import_module(f"{_PACKAGE}.cdk.deployment")
        deployment.Cdk = import_module("cloudformation_cli").CloudFormationCdk
    # What is collected is copied in every process.
    gc.freeze()
    _serve(socket.socket(fileno=int(descriptor)))
    return cli.main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
