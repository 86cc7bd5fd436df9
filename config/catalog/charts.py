"""Helm charts that podwright installs: names, versions and where they come from.

No digest stands here: podwright ships none that it did not compute. `podwright chart fetch` downloads a chart and
writes its digest to the project's `artifacts.lock`. Which charts an environment installs: `wanted_charts`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from .facts import DATA, Citation, cited

HYPERPOD_DEPENDENCIES: Final = "hyperpod-dependencies"
"""What HyperPod needs on an EKS cluster before a HyperPod cluster is made there. Also the release's name."""

KUEUE: Final = "kueue"
"""Kueue of one's own: engine kueue."""

KAI: Final = "kai-scheduler"
"""KAI, NVIDIA's scheduler. Also the release's name, and that of its namespace."""

YUNIKORN: Final = "yunikorn"
"""Apache YuniKorn. Also the release's name, and that of its namespace."""

NEURON_DEVICE_PLUGIN_IMAGE: Final = "public.ecr.aws/neuron/neuron-device-plugin:2.19.16.0"
"""The version that HyperPodHelmChart 0.1.0 installs."""

HEALTH_AGENT_REGIONS: Final = (
    "ap-northeast-1",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)
"""Regions from which AWS serves the health monitoring agent's image. Source: HyperPodHelmChart 0.1.0."""

HEALTH_AGENT_FALLBACK: Final = "us-west-2"
"""Where other regions fetch it. Source: values.yaml of the health-monitoring-agent subchart (the readme: us-east-1)."""


@dataclass(frozen=True, slots=True)
class ImageValues:
    """Where a chart's values name one of its images: dotted paths, each empty where the chart has no such value."""

    name: str = ""
    """Of the registry and repository together."""
    prefix: str = ""
    """Of everything before the last part of that, where the chart appends the last part itself."""
    registry: str = ""
    """Of the registry alone."""
    repository: str = ""
    """Of the repository alone."""
    tag: str = ""
    """Of the tag; a digest may follow it."""
    switch: str = ""
    """Of the boolean that turns the part on which runs the image."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart at one revision of the repository that holds it, or at one of its releases."""

    name: str
    """Ours, and the name of the release."""
    version: str
    """As its Chart.yaml says."""
    repository: str
    """Address of the repository, for people."""
    revision: str
    """Commit; for a released chart its version."""
    archive: str
    """Address of the repository's archive (tar.gz) at that commit, or of the released chart (tgz, or `oci://…`)."""
    folder: str
    """The chart's folder inside the archive; empty for a released chart."""
    namespace: str
    """Where its release lives."""
    image_values: Mapping[str, ImageValues]
    """Where the values name an image, by the image's name, with its tag where one name serves several images."""
    sources: tuple[Citation, ...]
    listing_values: Mapping[str, Any]
    """Values with which its images are listed when it is fetched: with every part on."""
    nested: Sequence[str]
    """Subcharts in its repository whose own subcharts are fetched as well; the others bring all that podwright uses."""
    operands: tuple[str, ...]
    """Names of images that no manifest of it runs, because its operator does; their tag is the chart's version."""

    @property
    def released(self) -> bool:
        """Whether it is a release, which brings its subcharts along, rather than the content of a commit."""
        return self.revision == self.version

    @property
    def pin(self) -> str:
        """Version and commit in words."""
        return pin(self.version, self.revision)


@dataclass(frozen=True, slots=True)
class WantedChart:
    """A chart as an environment installs it."""

    chart: Chart
    """Which one."""
    values: Mapping[str, Any]
    """Its values."""


@cache
def chart(name: str) -> Chart:
    """The chart of that name."""
    row = dict(_rows()[name])
    paths = row.pop("image_values")
    defaults: dict[str, Any] = {"revision": row["version"], "folder": "", "listing_values": {}, "nested": ()}
    return Chart(
        name=name,
        sources=cited(row.pop("source")),
        image_values={image: _image_values(where) for image, where in paths.items()},
        operands=tuple(row.pop("operands", ())),
        **defaults | row,
    )


def chart_versions() -> dict[str, str]:
    """The version of each chart, by name."""
    return {name: row["version"] for name, row in _rows().items()}


def pin(version: str, revision: str) -> str:
    """A version and, unless it is a release, the commit that it comes from, in words."""
    return version if revision == version else f"{version} at {revision[:12]}"


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return json.loads((DATA / "charts.json").read_text(encoding="utf-8"))


def _image_values(where: str | dict[str, str]) -> ImageValues:
    """A mapping of paths, or the path of the usual mapping with `repository` and `tag`."""
    return (
        ImageValues(name=f"{where}.repository", tag=f"{where}.tag") if isinstance(where, str) else ImageValues(**where)
    )
