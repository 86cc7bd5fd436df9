"""A project: the folder of environment files and an optional `podwright.yaml` beside it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from pydantic import ValidationError

from ..catalog.regions import regions
from ..errors import InvalidFile
from ..findings import Finding, Level, Path, dotted
from ..settings.base import Settings
from ..settings.pipeline import Pipeline
from .load import LoadedEnvironment, load_environment, resolved
from .source import Source, read_source


class ProjectSettings(Settings):
    """What `podwright.yaml` says."""

    environments: tuple[str, ...] = ()
    """Names of the environments in the order of promotion; those not named follow by name."""
    pipeline: Pipeline | None = None
    """How commits are promoted from one environment to the next."""


@dataclass(frozen=True, slots=True)
class Project:
    """The environments of one folder."""

    root: FilePath
    """Folder that holds `environments/` and perhaps `podwright.yaml`."""
    settings: ProjectSettings

    @classmethod
    def at(cls, root: FilePath) -> "Project":
        """The project in folder `root`. Raises InvalidFile when `podwright.yaml` cannot be read."""
        file = root / "podwright.yaml"
        if not file.exists():
            return cls(root, ProjectSettings())
        source = read_source(file, _shown(file, root))
        try:
            settings = ProjectSettings.model_validate(source.data or {})
        except ValidationError as error:
            raise InvalidFile(
                [
                    Finding(
                        "ENV004",
                        Level.ERROR,
                        ".".join(map(str, detail["loc"])),
                        f"podwright.yaml: {'.'.join(map(str, detail['loc']))}: {detail['msg'].lower()}",
                        "podwright.yaml knows `environments:`, a list of names, and `pipeline:`",
                        source.position(detail["loc"]),
                    )
                    for detail in error.errors()
                ]
            ) from None
        project = cls(root, settings)
        missing = [name for name in settings.environments if name not in project._files()]
        if missing:
            raise InvalidFile(
                [
                    Finding(
                        "ENV005",
                        Level.ERROR,
                        "environments",
                        f"podwright.yaml names {name!r}, which environments/ does not have",
                        f"known: {', '.join(project.names)}",
                        source.position(("environments",)),
                    )
                    for name in missing
                ]
            )
        if wrong := list(project._pipeline_findings(source)):
            raise InvalidFile(wrong)
        return project

    def _pipeline_findings(self, source: Source) -> Iterator[Finding]:
        """What is wrong with the order in which `pipeline:` deploys."""
        order, earlier, last = self.settings.environments, set[str](), -1
        for number, stage in enumerate(self.settings.pipeline.stages if self.settings.pipeline else ()):
            ranks = [order.index(name) for name in stage.environments if name in order]
            for name in stage.environments:
                path: Path = ("pipeline", "stages", number, "environments")

                # `path` as a default binds that of this turn; as a closure it would be that of the last one.
                def finding(id: str, message: str, hint: str, path: Path = path) -> Finding:
                    return Finding(id, Level.ERROR, dotted(path), message, hint, source.position(path))

                if name not in self._files():
                    hint = f"known: {', '.join(self.names) or 'none'}"
                    yield finding("PIP001", f"stage {number + 1} deploys {name!r}, which environments/ lacks", hint)
                if name in earlier:
                    hint = "keep the stage in which it belongs"
                    yield finding("PIP002", f"{name!r} is deployed by two stages or twice by one", hint)
                if name in order and order.index(name) < last:
                    before = order[last]
                    hint = "give both the same order"
                    message = f"stage {number + 1} deploys {name!r} after {before!r}; `environments:` says the opposite"
                    yield finding("PIP003", message, hint)
                earlier.add(name)
            last = max([last, *ranks])

    def _files(self) -> dict[str, FilePath]:
        return {file.stem: file for file in sorted((self.root / "environments").glob("*.yaml"))}

    @property
    def names(self) -> list[str]:
        """Names of all environments, in the order of promotion."""
        known = self._files()
        first = [name for name in self.settings.environments if name in known]
        return first + [name for name in known if name not in first]

    def file(self, name_or_file: str) -> FilePath:
        """The file of the environment of that name; else what is given, as the path of a file."""
        return self._files().get(name_or_file, FilePath(name_or_file))

    def load(self, name_or_file: str) -> LoadedEnvironment:
        """The environment of that name, or in that file.

        Raises:
            InvalidFile: there is none, or it cannot be read, or a file of the project gives itself another name.
        """
        file = self._files().get(name_or_file)
        if file is None and name_or_file.endswith((".yaml", ".yml")):
            file = FilePath(name_or_file)
        if file is None:
            hint = f"known: {', '.join(self.names) or 'none'}; or give the path of a .yaml file"
            raise InvalidFile.because("ENV006", f"there is no environment {name_or_file!r}", hint)
        loaded = load_environment(file, _shown(file, self.root))
        name = loaded.environment.name
        if file in self._files().values() and name != file.stem:
            message, location = f"name is {name}, and the file is {file.name}", loaded.source.position(("name",))
            hint = f"remove name, or call the file {name}.yaml: commands know files, stacks know names"
            raise InvalidFile.because("ENV007", message, hint, location, "name")
        return self._bounded(loaded) if name in self._promoted() else loaded

    def _promoted(self) -> set[str]:
        """Names of the environments that a pipeline deploys."""
        pipeline = self.settings.pipeline
        if pipeline is None or pipeline.source is None:
            return set()
        staged = {name for stage in pipeline.stages for name in stage.environments}
        return staged or set(self.settings.environments or self.names)

    def _bounded(self, loaded: LoadedEnvironment) -> LoadedEnvironment:
        """The environment with the boundary without which the pipeline's role makes no role."""
        environment, pipeline = loaded.environment, self.settings.pipeline
        known = regions().get(environment.region)
        if pipeline is None or known is None or environment.iam.permissions_boundary:
            return loaded
        boundary = pipeline.own_boundary(known.partition, environment.account)
        iam = environment.iam.model_copy(update={"permissions_boundary": boundary})
        return replace(loaded, environment=environment.model_copy(update={"iam": iam}))

    def source(self, name: str) -> Source:
        """What the file of an environment says, and those that it extends. Raises InvalidFile."""
        file = self._files()[name]
        return resolved(read_source(file, _shown(file, self.root)), file)

    def load_all(self) -> Iterator[LoadedEnvironment]:
        """All environments, in the order of promotion."""
        for name in self.names:
            yield self.load(name)


def _shown(file: FilePath, root: FilePath) -> str:
    """The file as findings show it: relative to the project when it lies inside."""
    try:
        return str(file.resolve().relative_to(root.resolve()))
    except ValueError:
        return str(file)
