"""Imports inside functions: only heavy libraries and listed modules. Ruff's PLC0415 forbids all others elsewhere."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from lint import At, Sample, file_rule, tree_rule
from sources import Source

LATE = {
    "operations": {"boto3", "botocore", "cdk8s", "filelock", "plotly", "rich", "urllib"},
    "sandbox": {"kubernetes", "moto"},
}
"""Libraries that may be imported within functions: they take longer to load than most commands, or are an extra."""

OWN_LATE = {
    ("operations/cli.py", "config.errors"): "the dispatch: `--help` and `--version` print no errors",
    ("operations/cli.py", "operations.output.console"): "the dispatch, as above",
    ("operations/command_help.py", "config.errors"): "only a wrong command line prints them",
    ("operations/command_help.py", "operations.output.console"): "as above",
    ("operations/agents/command.py", "operations.agents.server"): "needs the SDK, which is an extra",
    ("operations/environments/sizes.py", "cdk8s_charts.compute_domain"): "is made of cdk8s, which starts Node",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.benchmark_labels.chart"): "is made of cdk8s",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.device_plugins"): "is made of cdk8s",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.node_readers"): "is made of cdk8s",
}
"""Modules of ours that are imported within functions, with the file that does, and why."""


def late_modules(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each module of ours that a function imports."""
    parts = PurePosixPath(source.path).parts
    for line, name, level, late in source.imports:
        if late and level:
            yield line, ".".join((*parts[: len(parts) - level], name)).rpartition(".")[0]


@file_rule(
    Sample({"operations/x.py": "def f():\n    import pydantic"}, "pydantic"),
    Sample({"operations/x.py": "def f():\n    if True:\n        from rich.text import Text"}, None),
    Sample({"operations/live/x.py": "async def f():\n    from .d import e"}, "operations.live.d"),
    Sample({"operations/x.py": "import pydantic\nif True:\n    from .d import e"}, None),
)
def late_imports_have_a_reason(source: Source) -> Iterator[At]:
    """Commands import inside functions only libraries that take long to load, and modules of OWN_LATE."""
    if not source.is_python or source.folder not in LATE:
        return
    for line, name, level, late in source.imports:
        top = name.partition(".")[0]
        if late and not level and top not in LATE[source.folder] and source.path != "operations/cli.py":
            yield At(line, f"{top}: import it at the top")
    for line, module in late_modules(source):
        if (source.path, module) not in OWN_LATE:
            yield At(line, f"{module}: import it at the top, or say in OWN_LATE why not")


@tree_rule(Sample({"operations/cli.py": "import os"}, "operations/cli.py: no function imports config.errors"))
def reasons_for_late_imports_are_current(files: list[Source]) -> Iterator[str]:
    """Each line of OWN_LATE is about an import that exists."""
    actual = {(source.path, module) for source in files for _, module in late_modules(source)}
    for path, module in sorted(OWN_LATE.keys() - actual):
        yield f"{path}: no function imports {module}; delete its line in OWN_LATE"
