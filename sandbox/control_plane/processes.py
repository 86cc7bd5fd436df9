"""The processes of a control plane: started one after the other, each once the last is ready, and stopped by id."""

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from ...config.errors import CommandError
from ...operations.programs.process import command_line

_READY_SECONDS = 180.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_LAST_LINES = 8
_RECORD = "processes.json"


@dataclass(frozen=True, slots=True)
class Component:
    """A program with its arguments, and the URL that answers 200 once it is ready."""

    name: str
    command: Sequence[str]
    ready: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the components listen on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peers: int
    etcd_health: int
    controller_manager: int
    scheduler: int

    @classmethod
    def free(cls, api: int = 0) -> "Ports":
        """Ports that nobody listens on, all different; that of the API server may be chosen.

        Raises:
            CommandError: The chosen one is taken.
        """
        probes = [socket.socket() for _ in fields(cls)]
        try:
            for probe, port in zip(probes, (api, *[0] * len(probes)), strict=False):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            return cls(*(probe.getsockname()[1] for probe in probes))
        except OSError:
            raise CommandError(
                f"port {api} of the Kubernetes API is in use by another program", "end that, or choose another port"
            ) from None
        finally:
            for probe in probes:
                probe.close()


@dataclass(frozen=True, slots=True)
class Running:
    """A process that was started."""

    name: str
    pid: int
    program: str
    log: str


class Processes:
    """The processes whose record lies in a folder. Another process that opens the same folder can stop them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def running(self) -> list[Running]:
        """Those of the record that are alive, in the order of their start."""
        try:
            rows = json.loads((self._folder / _RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        return [item for row in rows if is_alive(item := Running(**row))]

    def start(self, component: Component, trusted: Path) -> Running:
        """Start a component and wait until it is ready.

        Args:
            component: What to start.
            trusted: The authority that signed its server's certificate.

        Raises:
            CommandError: It ended or did not get ready; with the last lines of its log.
        """
        log = self._folder / f"{component.name}.log"
        working_folder = self._folder / component.name
        working_folder.mkdir(exist_ok=True)
        with log.open("wb") as output:
            child = subprocess.Popen(
                component.command,
                cwd=working_folder,
                env=os.environ | dict(component.variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in a terminal is for the command that runs there.
                start_new_session=True,
            )
        self._children.append(child)
        started = Running(component.name, child.pid, str(component.command[0]), str(log))
        self._write([*self.running, started])
        self._wait(started, child, lambda: answers(component.ready, trusted))
        return started

    def _wait(self, item: Running, child: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        """Wait until a child is ready. Its command line, by which others know it, may not be readable at once."""
        deadline = time.monotonic() + _READY_SECONDS
        while not condition():
            if child.poll() is not None:
                raise CommandError(f"{item.name} ended at its start:\n{_tail(item.log)}", f"its log is {item.log}")
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{item.name} was not ready in {_READY_SECONDS:.0f} s:\n{_tail(item.log)}", f"its log is {item.log}"
                )
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop all of them, the last one first, and no process that is not of the record."""
        for item in reversed(self.running):
            _signal(item, signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            while self._is_alive(item):
                if time.monotonic() > deadline:
                    _signal(item, signal.SIGKILL)
                time.sleep(_POLL_SECONDS)
        for child in self._children:
            child.terminate()
            child.wait()
        self._children.clear()
        (self._folder / _RECORD).unlink(missing_ok=True)

    def _is_alive(self, item: Running) -> bool:
        for child in self._children:
            # A child that ended stays in the table of processes until somebody asks for its end.
            child.poll()
        return is_alive(item)

    def _write(self, items: list[Running]) -> None:
        new = self._folder / f"{_RECORD}.new"
        new.write_text(json.dumps([asdict(item) for item in items]), encoding="utf-8")
        new.replace(self._folder / _RECORD)


def _signal(item: Running, number: signal.Signals) -> None:
    # It may end by itself after it was seen alive.
    with suppress(ProcessLookupError):
        os.kill(item.pid, number)


def is_alive(item: Running) -> bool:
    """Whether the process lives and still is the recorded program; ids are given out again."""
    return item.program.encode() in command_line(item.pid)[:1]


def answers(url: str, trusted: Path) -> bool:
    """Whether a URL on loopback answers 200, over a certificate of `trusted`."""
    context = ssl.create_default_context(cafile=str(trusted)) if url.startswith("https:") else None
    # Loopback is never behind a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        # Not yet: nobody listens, or it says 500 until it is ready.
        return False


def _tail(log: str) -> str:
    return "\n".join(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:])
