"""Helm charts that podwright installs: names, versions and where they come from.

No digest stands here: podwright ships none that it did not compute. `podwright chart fetch` downloads a chart and
writes its digest to the project's `artifacts.lock`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from .facts import DATA, Citation, cited

HYPERPOD_DEPENDENCIES: Final = "hyperpod-dependencies"
"""What HyperPod needs on an EKS cluster before a HyperPod cluster is made there. Also the release's name."""

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
class Chart:
    """A chart at one revision of the repository that holds it."""

    name: str
    """Ours, and the name of the release."""
    version: str
    """As its Chart.yaml says."""
    repository: str
    """Address of the repository, for people."""
    revision: str
    """Commit."""
    archive: str
    """Address of the repository's archive (tar.gz) at that commit."""
    folder: str
    """The chart's folder inside the archive."""
    namespace: str
    """Where its release lives."""
    image_values: Mapping[str, str]
    """Where the values name an image: image name → dotted path of the mapping with `repository` and `tag`."""
    sources: tuple[Citation, ...]


@cache
def chart(name: str) -> Chart:
    """The chart of that name."""
    row = json.loads((DATA / "charts.json").read_text(encoding="utf-8"))[name]
    return Chart(name=name, sources=cited(row.pop("source")), **row)
