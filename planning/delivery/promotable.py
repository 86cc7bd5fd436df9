"""Whether a project says all that a pipeline of its own needs."""

from pathlib import Path

from ...config.errors import InvalidFile
from ...config.findings import Finding, Level
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.loading.source import read_source
from ...config.settings.pipeline import Pipeline, PipelineSource
from .pipeline_steps import stages

_FILE = "podwright.yaml"


def promoted_names(project: Project) -> list[str]:
    """Names of the environments that are promoted, in their order."""
    return [name for stage in stages(project.settings, project.names) for name in stage.environments]


def promotable(project: Project) -> list[LoadedEnvironment]:
    """The environments that the project's pipeline deploys, in their order.

    Raises:
        InvalidFile: `pipeline:` lacks what CodePipeline or GitHub Actions need, or an environment cannot be loaded.
    """
    source_of(project)
    return [project.load(name) for name in promoted_names(project)]


def source_of(project: Project) -> tuple[Pipeline, PipelineSource]:
    """What `pipeline:` says, and where its commits come from. Raises InvalidFile where it lacks a setting."""
    settings = project.settings.pipeline
    if settings is None or settings.source is None:
        message = f"{_FILE} does not say where commits come from"
        hint = "add pipeline: {source: {repository: OWNER/NAME}} for GitHub Actions, and a connection for CodePipeline"
        raise InvalidFile([_finding(project, "PIP004", message, hint, ("pipeline",))])
    lacking = [field for field in ("account", "region") if getattr(settings, field) is None]
    if lacking and not settings.source.on_github:
        message = f"CodePipeline needs {' and '.join(lacking)} of the pipeline"
        hint = "add account: and region: below pipeline:; an account of its own is best"
        raise InvalidFile([_finding(project, "PIP005", message, hint, ("pipeline",))])
    return settings, settings.source


def _finding(project: Project, id: str, message: str, hint: str, path: tuple[str, ...]) -> Finding:
    file: Path = project.root / _FILE
    role = read_source(file, _FILE).position(path) if file.exists() else None
    return Finding(id, Level.ERROR, ".".join(path), message, hint, role)
