"""Which modules and test files of the checkout import a module, or name a file."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from changes import git
from sources import Source

MOST_STEPS = 3
"""Importers of importers of test helpers are followed this far."""


def is_test_file(path: str) -> bool:
    """Whether pytest collects the file."""
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


class Imports:
    """The imports of a checkout."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The Python files by path, new ones included."""
        listed = git(self._root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        paths = [path for path in listed.split("\0") if path.endswith(".py") and (self._root / path).is_file()]
        return {path: Source(path, (self._root / path).read_text(encoding="utf-8")) for path in sorted(paths)}

    @cached_property
    def test_files(self) -> list[str]:
        """All test files."""
        return [path for path in self.sources if is_test_file(path)]

    def below(self, folder: str) -> list[str]:
        """The test files in a folder and its subfolders."""
        return [path for path in self.test_files if path.startswith(f"{folder}/")]

    def importers(self, path: str) -> list[str]:
        """The files that import a module, also inside functions."""
        module = PurePosixPath(path).with_suffix("")
        if module.name == "__init__":
            module = module.parent
        # Test helpers are imported by their name alone.
        name = module.name if path.startswith("tests/") else ".".join(module.parts)
        # Only these files are parsed: the name is in an import, up to the closing parenthesis.
        written = re.compile(rf"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*)?\b{re.escape(module.name)}\b", re.MULTILINE)
        return [
            source.path
            for source in self.sources.values()
            if source.path != path
            and module.name in source.text
            and written.search(source.text)
            and name in _targets(source)
        ]

    def naming(self, path: str) -> dict[str, list[int]]:
        """The lines of Python files that name a file of data, by path."""
        name = PurePosixPath(path).name
        # Names such as `run` are words as well.
        name = name if "." in name else path
        return {
            source.path: [number for number, line in enumerate(source.text.splitlines(), 1) if name in line]
            for source in self.sources.values()
            if name in source.text
        }

    def tests_of(self, path: str) -> dict[str, int]:
        """The test files that a module or helper matters to, with their distance.

        0: the file imports the module. Each helper of tests in between adds 1, and so does one module of the product.
        """
        distances: dict[str, int] = {}
        level = {path}
        reached = {path}
        for distance in range(MOST_STEPS + 1):
            following = set()
            for each in sorted(level):
                for importer in self._dependents(each, direct=each == path):
                    if is_test_file(importer):
                        distances.setdefault(importer, distance)
                    else:
                        following.add(importer)
            level = following - reached
            reached |= level
        return distances

    def _dependents(self, path: str, *, direct: bool) -> Iterable[str]:
        if PurePosixPath(path).name == "conftest.py":
            return self.below(str(PurePosixPath(path).parent))
        importers = self.importers(path)
        return importers if direct else [each for each in importers if each.startswith("tests/")]


def _targets(source: Source) -> set[str]:
    """Dotted names that a file imports, from the top of the checkout, each with the module that may define it."""
    names = {name for target in _absolute(source) for name in (target, target.rpartition(".")[0])}
    source.release()
    return names


def _absolute(source: Source) -> Iterator[str]:
    folder = PurePosixPath(source.path).parts[:-1]
    for _, name, level, _ in source.imports:
        if level:
            yield ".".join((*folder[: len(folder) - level + 1], name))
        else:
            yield name.removeprefix("podwright.")
