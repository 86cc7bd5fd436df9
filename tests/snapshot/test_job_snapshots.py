"""The manifests of every environment's jobs: as they were, and as Kubernetes takes them.

That the operators' kinds take theirs, tests/kubernetes/test_rendered_objects.py shows.
"""

from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest

from job_shapes import OBJECTS, SHAPES
from podwright.config.loading.project import Project
from podwright.operations.kubernetes.job_manifests import job_manifests, recipes, yaml_text

ROOT = Path(__file__).parents[2]
SNAPSHOTS = Path(__file__).parent / "jobs"
PROJECT = Project.at(ROOT)
HEAD = """\
# Kubernetes objects of the job examples

This page lists the Kubernetes objects of [the job examples](job-shapes.md) in full, as `podwright render jobs` prints
them.
"""
WITH_JOBS = [name for name in PROJECT.names if PROJECT.load(name).environment.jobs]


@pytest.mark.parametrize("name", WITH_JOBS)
def test_manifests_are_as_they_were(name: str, reviewed: Callable[[Path, str], None]) -> None:
    manifests = [item for job in job_manifests(PROJECT.load(name)).values() for item in job]
    text = "".join([yaml_text(manifests), *recipes(PROJECT.load(name)).values()])
    reviewed(SNAPSHOTS / f"{name}.yaml", text)
    for manifest in manifests:
        if manifest["apiVersion"] == "batch/v1":
            kubernetes_validate.validate(manifest, "1.34", strict=True)


def test_every_kind_of_job_is_in_some_environment_or_on_the_page_of_shapes() -> None:
    from podwright.cdk8s_charts.jobs.render import KINDS

    used = {job.kind for name in WITH_JOBS for job in PROJECT.load(name).environment.jobs.values()}
    assert used | {shape.plan.job.kind for shape in SHAPES} == {*KINDS, "recipe", "sbatch"}


def test_the_page_of_objects_shows_what_shapes_of_jobs_become(reviewed: Callable[[Path, str], None]) -> None:
    parts = [HEAD]
    for shape in SHAPES:
        language, text = ("yml", yaml_text(shape.objects)) if shape.objects else ("text", shape.script)
        parts.append(f"\n## {shape.title}\n\n```{language}\n{text.rstrip()}\n```\n")
    reviewed(OBJECTS, "".join(parts))


def test_no_snapshot_is_left_over() -> None:
    assert sorted(file.stem for file in SNAPSHOTS.iterdir()) == sorted(WITH_JOBS)
