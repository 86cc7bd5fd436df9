"""Mirrored images: where an account's own registry holds copies, and what a closed network still lacks."""

from .artifacts import Artifacts
from .chart_values import dependencies_values
from .charts import Chart
from .environment import Environment
from .findings import Finding, Level
from .images import Image, ecr_registry
from .own_images import own_images
from .rules.run import environment_types


def mirror_of(environment: Environment, artifacts: Artifacts) -> dict[str, Image]:
    """Where the account's registry holds copies, by the original's name and each with its digest."""
    registry = ecr_registry(environment.account, environment.region)
    mirrored: dict[str, Image] = {}
    for reference, digest in artifacts.mirrors.get(registry, {}).items():
        image = Image.parse(reference)
        mirrored[image.name] = Image(registry, image.mirrored_in(registry).repository, image.tag, digest)
    return mirrored


def foreign_images(environment: Environment, artifacts: Artifacts, chart: Chart) -> tuple[Image, ...]:
    """The images that the environment runs from registries other than ECR, as the lock lists them.

    Add-ons and parts of the chart whose images AWS serves from ECR in every region are reached without a mirror.
    """
    types = environment_types(environment.instance_types)
    groups = tuple(environment.groups.values())
    values = dependencies_values(chart, groups, types, region=environment.region)
    locked = artifacts.charts.get(chart.name)
    images = [Image.parse(reference) for reference in (locked.images if locked else ())]
    enabled = [image for image in images if _enabled(image, chart, values)]
    return tuple(image for image in (*enabled, *own_images(environment)) if image.ecr_region is None)


def _enabled(image: Image, chart: Chart, values: dict[str, dict[str, dict[str, bool]]]) -> bool:
    part = values.get(chart.image_values.get(image.name, "").partition(".")[0], {})
    return part.get("devicePlugin", {}).get("enabled", True)


def mirror_findings(environment: Environment, artifacts: Artifacts, chart: Chart) -> list[Finding]:
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
        for image in foreign_images(environment, artifacts, chart)
        if image.name not in mirrored
    ]
