"""Container images of the manifests that podwright writes itself, without a Helm chart."""

from typing import Final

from ...config.catalog.charts import NEURON_DEVICE_PLUGIN_IMAGE
from ...config.catalog.images import Image
from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ..kubernetes.isolation import team_access
from .chart_values import nodes_with

BENCHMARK_LABELS_IMAGE: Final = "public.ecr.aws/docker/library/python:3.14.6-slim-bookworm"
"""A Python for the script that labels nodes by set-up and benchmarks, and for the job that makes folders of teams.

Both need the standard library only. The pods of drills need its shell.

Source: Docker Official Images, python, as Amazon ECR Public mirrors them, 2026-11.
"""


def own_images(environment: Environment) -> tuple[Image, ...]:
    """The images of podwright's own manifests that an environment runs."""
    if environment.cluster.orchestrator != "eks":
        return ()
    types = environment_types(environment.instance_types)
    neuron = nodes_with(
        environment.groups.values(), types, lambda row: row.accelerator_vendor == "neuron", "aws.amazon.com/neuron"
    )
    labelled = any(group.lifecycle is None for group in environment.instance_groups.values())
    folders = any(access.storage for access in team_access(environment.governance).values())
    drills = environment.observability is not None and environment.observability.drills
    references = [NEURON_DEVICE_PLUGIN_IMAGE] * bool(neuron.types)
    pulled = [image for group in environment.instance_groups.values() for image in group.pull_images]
    references += [BENCHMARK_LABELS_IMAGE] * (labelled or folders or drills or bool(pulled))
    return tuple(Image.parse(reference) for reference in references)
