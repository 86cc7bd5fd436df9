"""What the sources of charts have published since podwright pinned them. Only asked, never taken over."""

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...config.catalog.charts import Chart
from ..output.console import write_json, write_line
from ..output.tables import new_table
from .http import RequestFailed, request
from .registry import Registry

SCHEMA: Final = "podwright.charts/1"
_GITHUB: Final = "https://api.github.com/repos"
# Versions alone: what is tried before a release, such as 1.2.0-rc.1, is no reason to renew a pin.
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Published:
    """A chart's pin beside the newest of its source."""

    chart: str
    """Podwright's name of the chart."""
    pinned: str
    """Version, or the commit of its folder that the pin has."""
    newest: str
    """The same of the source; empty where the source did not say."""
    released: str = ""
    """Day of that commit, where the source is one."""
    problem: str = ""
    """Why the source did not say."""

    @property
    def outdated(self) -> bool:
        """Whether the source has something newer."""
        return not self.problem and self.newest != self.pinned


def show(charts: Iterable[Chart], *, as_json: bool) -> int:
    """Print what is newer than the pins; returns 1 when something is, or a source did not answer."""
    results = [published(item) for item in charts]
    if as_json:
        write_json({"schema": SCHEMA, "charts": [asdict(item) | {"outdated": item.outdated} for item in results]})
    else:
        columns = ["chart", "pinned", "newest", "of", "state"]
        rows = ([one.chart, one.pinned[:12], one.newest[:12], one.released, _state(one)] for one in results)
        write_line(new_table("Charts at their sources", columns, rows))
    return 1 if any(item.outdated or item.problem for item in results) else 0


def published(chart: Chart) -> Published:
    """The newest that a chart's source has."""
    try:
        return _published(chart)
    except (RequestFailed, ValueError) as error:  # ValueError: an answer of something else, such as a proxy's page
        return Published(chart.name, chart.revision, "", problem=str(error))


def _published(chart: Chart) -> Published:
    if not chart.released:
        # A repository moves on without its chart: what counts is the last commit that touched the chart's folder.
        (pinned, _), (newest, day) = (_last_commit(chart, start) for start in (chart.revision, "HEAD"))
        return Published(chart.name, pinned, newest, day)
    oci = chart.archive.startswith("oci://")
    versions = list(_tags(chart.archive) if oci else _releases(chart))
    newest = max([*versions, chart.version], key=_order)
    return Published(chart.name, chart.version, newest)


def _last_commit(chart: Chart, start: str) -> tuple[str, str]:
    """The last commit at or before `start` that touched the chart's folder, and its day."""
    query = urllib.parse.urlencode({"path": chart.folder, "sha": start, "per_page": 1})
    (commit,) = _ask(chart, f"commits?{query}")
    return commit["sha"], commit["commit"]["committer"]["date"][:10]


def _releases(chart: Chart) -> Iterator[str]:
    """Versions among a repository's releases that are called as the pinned one is."""
    tag = chart.archive.rsplit("/", 2)[1]
    before = tag.removesuffix(chart.version)
    for release in _ask(chart, "releases?per_page=100"):
        version = release["tag_name"].removeprefix(before)
        if release["tag_name"].startswith(before) and _VERSION.fullmatch(version):
            yield version


def _tags(address: str) -> Iterator[str]:
    host, _, repository = address.removeprefix("oci://").partition("/")
    return filter(_VERSION.fullmatch, Registry(host).tags(repository))


def _ask(chart: Chart, path: str) -> Sequence[Any]:
    repository = urllib.parse.urlsplit(chart.repository).path
    return json.loads(request("GET", f"{_GITHUB}{repository}/{path}").data)


def _order(version: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(version)
    return tuple(map(int, match.groups())) if match else ()


def _state(item: Published) -> str:
    if item.problem:
        return f"not seen: {item.problem}"
    return "newer at its source; a release of podwright pins what was read and tried" if item.outdated else "newest"
