"""The launcher that a command begins with: torchrun, hyperpodrun, or Python with the module behind torchrun.

Sources: PyTorch 2.11, `torch/distributed/run.py`; hyperpod-elastic-agent 1.1.3, `run.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

HYPERPODRUN: Final = "hyperpodrun"
TORCHRUN: Final = "torchrun"
_PROGRAMS: Final = (TORCHRUN, HYPERPODRUN)
_MODULE: Final = "torch.distributed.run"
PYTHON: Final = re.compile(r"python[0-9.]*")
"""Names of Python's own program."""
_UNBUFFERED: Final = "-u"
_RENDEZVOUS: Final = (
    *("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"),
    *("node-rank", "master-addr", "master-port"),
)
_SIZES: Final = ("nnodes", "nproc-per-node")
FLAGS: Final = ("standalone", "module", "no-python", "run-path", "virtual-local-rank", "inprocess-restart")
"""Options of torchrun and hyperpodrun without a value."""
VALUES: Final = (
    *_RENDEZVOUS,
    *_SIZES,
    *("max-restarts", "monitor-interval", "start-method", "event-log-handler", "role", "log-dir", "redirects", "tee"),
    *("local-ranks-filter", "duplicate-stdout-filters", "duplicate-stderr-filters", "local-addr", "logs-specs"),
    *("numa-binding", "signals-to-handle"),
    # Of hyperpodrun alone.
    *("shutdown-signal", "shutdown-timeout", "inprocess-timeout", "pre-train-script", "pre-train-args"),
    *("post-train-script", "post-train-args", "server-host", "server-port", "server-log-level"),
    "server-shutdown-timeout",
)
"""Their options with a value."""
_SHORT: Final = {"-m": "module", "-r": "redirects", "-t": "tee"}
SET_BY_PODWRIGHT: Final = frozenset((*_RENDEZVOUS, *_SIZES, "standalone"))
"""Arguments of the launcher that follow from the job's nodes and accelerators."""


class Launch(NamedTuple):
    """A command as its launcher reads it."""

    launcher: str
    """Its name: torchrun, hyperpodrun or the module; empty for Python alone."""
    retained: tuple[str, ...]
    """Arguments of the launcher, without those of SET_BY_PODWRIGHT."""
    dropped: Mapping[str, str]
    """Values of the arguments of SET_BY_PODWRIGHT, by their name with hyphens."""
    script: tuple[str, ...]
    """The script and its arguments."""


class _Argument(NamedTuple):
    name: str
    """With hyphens; empty for the script's words."""
    value: str
    words: tuple[str, ...]


def launch_of(command: Sequence[str]) -> Launch | None:
    """The launcher of a command and its arguments; None for a command that begins with none."""
    if not command:
        return None
    program, rest = PurePosixPath(command[0]).name, list(command[1:])
    if program in _PROGRAMS:
        return _launch(program, rest)
    rest = rest[1:] if rest[:1] == [_UNBUFFERED] else rest
    if PYTHON.fullmatch(program) and rest[:2] == ["-m", _MODULE]:
        return _launch(_MODULE, rest[2:])
    return None


def started_by_launcher(command: Sequence[str]) -> Launch:
    """A command as the arguments of a launcher that podwright writes: without a launcher or Python of its own.

    Python stays where it has options that the launcher lacks, such as -c.
    """
    if launch := launch_of(command):
        return launch
    rest = list(command)
    if rest and PYTHON.fullmatch(PurePosixPath(rest[0]).name):
        after = rest[2:] if rest[1:2] == [_UNBUFFERED] else rest[1:]
        rest = rest if after[:1] and after[0].startswith("-") and after[0] != "-m" else after
    return _launch("", rest)


def _launch(launcher: str, words: list[str]) -> Launch:
    arguments = list(_arguments(words))
    options = [each for each in arguments if each.name]
    return Launch(
        launcher=launcher,
        retained=tuple(word for each in options if each.name not in SET_BY_PODWRIGHT for word in each.words),
        dropped={each.name: each.value for each in options if each.name in SET_BY_PODWRIGHT},
        script=tuple(word for each in arguments if not each.name for word in each.words),
    )


def _arguments(words: list[str]) -> Iterator[_Argument]:
    """The launcher's arguments in order, then the script with all that follows it."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        name = _SHORT.get(option) or _full_name(option)
        if not equals and name in VALUES and rest:
            value = rest.pop(0)
            yield _Argument(name, value, (word, value))
        else:
            yield _Argument(name, value, (word,))
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if rest:
        yield _Argument("", "", tuple(rest))


def _full_name(option: str) -> str:
    """The name of an option with hyphens. argparse takes the beginning of a name where only one name begins so."""
    name = option.lstrip("-").replace("_", "-")
    options = (*FLAGS, *VALUES)
    matching = [each for each in options if each.startswith(name)]
    return matching[0] if name not in options and len(matching) == 1 else name
