"""A Prometheus of one's own on the loopback interface, filled with a history at once.

Drawing dashboards without a workspace and testing rules both need what only the real one knows: whether a query is
valid and what it answers. It is the program of the distribution (Debian and Ubuntu: `apt-get install prometheus`).
"""

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from ...config.errors import CommandError, PodwrightError
from ..output.moving import under_way
from .process import followed

_NO_PROXY: Final = build_opener(ProxyHandler({}))
_READY_SECONDS: Final = 120.0
_LISTENING: Final = re.compile(r'msg="Listening on".* address=([\w.:\[\]]+)')
Rule = Mapping[str, Any]
"""A recording rule: `record`, `expr` and perhaps `labels`."""


class QueryError(PodwrightError):
    """Prometheus refuses a query; the text is its own."""


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus, or anything that speaks its query API at `url`."""

    url: str

    def instant(self, query: str, at: float) -> list[dict[str, Any]]:
        """The series of a query at a moment, each with `metric` and `value`. Raises QueryError."""
        return self._ask("query", {"query": query, "time": at})

    def range(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The series of a query over a time, each with `metric` and `values`. Raises QueryError."""
        return self._ask("query_range", {"query": query, "start": start, "end": end, "step": step})

    def _ask(self, kind: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            with _NO_PROXY.open(f"{self.url}/api/v1/{kind}", urlencode(values).encode()) as answer:
                return json.load(answer)["data"]["result"]
        except HTTPError as error:
            raise QueryError(json.load(error)["error"]) from None


def installed() -> bool:
    """Whether this machine has Prometheus with its promtool."""
    return bool(shutil.which("prometheus") and shutil.which("promtool"))


@contextmanager
def history(
    metrics: str, rules: Sequence[Rule] = (), *, start: float = 0, end: float = 0, step: float = 60
) -> Iterator[Prometheus]:
    """A Prometheus that holds OpenMetrics text, and what recording rules make of it from `start` to `end`.

    It is gone when the `with` block ends. A rule may use what another one records. Raises CommandError when it is not
    installed.
    """
    if not installed():
        raise CommandError(
            "there is no Prometheus on this machine", "install it, such as with `apt-get install prometheus`"
        )
    with tempfile.TemporaryDirectory(prefix="podwright-prometheus-") as name:
        folder = Path(name)
        (folder / "data").mkdir()
        (folder / "prometheus.yml").write_text("{}\n")
        (folder / "metrics").write_text(metrics)
        _promtool(folder, "handing the history to Prometheus", "openmetrics", "-q", "metrics", "data")
        levels = _levels(rules)
        for index, level in enumerate(levels):
            text = f"evaluating recording rules, {index + 1} of {len(levels)}"
            file, span = f"rules-{index}.yml", ("--start", f"{start:.0f}", "--end", f"{end:.0f}")
            # Every JSON text is a YAML text.
            (folder / file).write_text(json.dumps({"groups": [{"name": "recorded", "rules": level}]}))
            with serving(folder) as server:
                interval = ("--eval-interval", f"{step:.0f}s")
                _promtool(folder, text, "rules", "--url", server.url, *span, *interval, "--output-dir", "data", file)
        with serving(folder) as server:
            yield server


def _levels(rules: Sequence[Rule]) -> list[list[Rule]]:
    """The rules in the order in which they can be evaluated: each level needs only those before it."""
    left, levels = list(rules), list[list[Rule]]()
    while left:
        names = {rule["record"] for rule in left}
        words = {rule["expr"]: set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", rule["expr"])) for rule in left}
        level = [rule for rule in left if not words[rule["expr"]] & names]
        if not level:
            raise CommandError(f"recording rules use one another in a circle: {', '.join(sorted(names))}")
        levels.append(level)
        left = [rule for rule in left if rule not in level]
    return levels


def _promtool(folder: Path, text: str, *words: str) -> None:
    """Write blocks in that folder; `text` says what is under way.

    Files are named relative to it: from a file's name promtool takes by how much its rules are evaluated after full
    intervals, and what it would evaluate within the last second of two hours is lost. So it is the same each time.
    """
    under_way(text)
    result = followed(["promtool", "tsdb", "create-blocks-from", *words], text, cwd=folder)
    if result.returncode:
        raise CommandError(f"promtool failed: {(result.stderr or result.stdout).strip()[-2000:]}")


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Prometheus]:
    """A Prometheus on a folder with its `prometheus.yml`, which ends with the `with` block. Raises CommandError."""
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                "--storage.tsdb.retention.time=100y",
                # It takes a free port itself: one chosen before could be somebody else's Prometheus by now.
                "--web.listen-address=127.0.0.1:0",
                *flags,
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _ready(process, log)
    finally:
        # It has nothing to save: blocks were there before it, and what it is sent goes to its log at once.
        process.kill()
        process.wait()


def _ready(process: subprocess.Popen[bytes], log: Path) -> Prometheus:
    """The server, once it answers at the address that its log names."""
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        listening = _LISTENING.search(log.read_text())
        if listening:
            try:
                with _NO_PROXY.open(f"http://{listening[1]}/-/ready"):
                    return Prometheus(f"http://{listening[1]}")
            except (URLError, ConnectionError):
                pass
        time.sleep(0.02)
    raise CommandError(f"Prometheus did not start: {log.read_text()[-2000:]}")
