"""Names and sentences use the terms of docs/glossary.md."""

from collections.abc import Iterator

import language
from lint import At, Sample, file_rule
from sources import Source

WITHOUT = (
    "docs/decisions/",
    "tests/snapshot/",
    "CHANGELOG.md",
    "docs/glossary.md",
    "tests/contract/code/test_language.py",
    "tests/contract/code/lint_names.py",
    "tests/contract/code/language.py",
    "planning/monitoring/",
    "tests/unit/observability/alert_",
    "docs/measurements.md",
)


@file_rule(
    Sample({"config/a.py": "class World: ..."}, "config/a.py:1: the name World; say"),
    Sample({"config/a.py": "\n\ndef f(found): ..."}, "config/a.py:3: the name found"),
    Sample({"config/a.py": "def f():\n    found = 1"}, "config/a.py:2: the name found"),
    Sample({"config/a.py": "found = 1\ndef not_found():\n    self.in_place = 1"}, None),
    Sample({"tests/a.py": "def test_the_world(): ..."}, None),
)
def names_use_the_glossarys_terms(source: Source) -> Iterator[At]:
    """No name has a word that the glossary replaces."""
    if source.is_python and source.folder in (*language.PACKAGES, "tests") and not source.path.startswith(WITHOUT):
        yield from (At(use.line, str(use)) for use in language.misnamed(source))


@file_rule(
    Sample({"config/a.py": '\n"""It goes on."""'}, "config/a.py:2: “goes on”"),
    Sample({"config/a.py": "A = 1  # it goes on"}, "config/a.py:1: “goes on”"),
    Sample({"docs/a.md": "It `goes on` and\ngoes on."}, "docs/a.md:2: “goes on”"),
    Sample({"docs/a.md": "```\nIt goes on.\n```"}, None),
)
def sentences_use_the_glossarys_terms(source: Source) -> Iterator[At]:
    """No comment, string or page has a phrase that the glossary replaces."""
    if not source.path.startswith(WITHOUT):
        yield from (At(use.line, str(use)) for use in language.misworded(source))
