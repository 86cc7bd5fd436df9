"""Mirrored images: where an account's own registry holds copies, and what a closed network still lacks."""

from collections.abc import Mapping
from typing import Any

from ...config.catalog.charts import Chart
from ...config.catalog.images import Image, ecr_registry
from ...config.findings import Finding, Level
from ...config.loading.artifacts import Artifacts
from ...config.settings.environment import Environment
from .own_images import own_images
from .wanted_charts import wanted_charts


def mirror_of(environment: Environment, artifacts: Artifacts) -> dict[str, Image]:
    """Where the account's registry holds copies, each with its digest.

    By the original's name with its tag, and by its name alone, which is enough where one name serves one image.
    """
    registry = ecr_registry(environment.account, environment.region)
    mirrored: dict[str, Image] = {}
    for reference, digest in artifacts.mirrors.get(registry, {}).items():
        image = Image.parse(reference)
        copy = Image(registry, image.mirrored_in(registry).repository, image.tag, digest)
        mirrored |= {image.name: copy, str(image): copy}
    return mirrored


def foreign_images(environment: Environment, artifacts: Artifacts) -> tuple[Image, ...]:
    """The images that the environment runs from registries other than ECR, as the lock lists them.

    Add-ons and parts of a chart whose images AWS serves from ECR in every region are reached without a mirror.
    """
    enabled: list[Image] = []
    for desired in wanted_charts(environment):
        locked = artifacts.charts.get(desired.chart.name)
        images = [Image.parse(reference) for reference in (locked.images if locked else ())]
        enabled += [image for image in images if _enabled(image, desired.chart, desired.values)]
    return tuple(image for image in (*enabled, *own_images(environment)) if image.ecr_region is None)


def _enabled(image: Image, chart: Chart, values: Mapping[str, Any]) -> bool:
    where = chart.image_values.get(str(image)) or chart.image_values.get(image.name)
    result: Any = values
    for part in where.switch.split(".") if where and where.switch else ():
        result = result.get(part, {})
    return result is not False


def mirror_findings(environment: Environment, artifacts: Artifacts) -> list[Finding]:
    """What a closed network cannot pull; nothing for a network with a way out, nor for Slurm, which runs no pods."""
    if environment.network.endpoints != "closed" or environment.cluster.orchestrator != "eks":
        return []
    mirrored = mirror_of(environment, artifacts)
    return [
        Finding(
            "CHT006",
            Level.ERROR,
            "network.endpoints",
            f"network.endpoints is closed, but {image} is not mirrored in "
            f"{ecr_registry(environment.account, environment.region)}",
            f"run `podwright images mirror {environment.name}`",
        )
        for image in foreign_images(environment, artifacts)
        if str(image) not in mirrored
    ]
