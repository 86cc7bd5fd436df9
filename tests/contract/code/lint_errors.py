"""Every exception of podwright's own derives from one base, and is in the drawing of the tree."""

import builtins
from collections.abc import Iterator

import podwright.config.errors as errors
from lint import Sample, tree_rule
from sources import Class, Source

FOLDERS = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "bin")
ELSEWHERE = ("handler", "purchase")
"""Folders whose code ships without `config`: Lambda handlers, and the purchase engine, which goes along with one."""


def is_elsewhere(folder: str) -> bool:
    """Whether the code of a folder ships without `config`."""
    return folder.startswith(ELSEWHERE)


def exceptions(files: list[Source]) -> list[tuple[Source, Class]]:
    """Each exception of product code with its file, base classes first."""
    known = {name for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, Exception)}
    product = [source for source in files if source.is_python and source.folder in FOLDERS]
    ours = [
        source for source in product if not any(part.startswith(ELSEWHERE) for part in source.path.split("/")[1:-1])
    ]
    left, actual = [(source, each) for source in ours for each in source.classes], list[tuple[Source, Class]]()
    while more := [item for item in left if known & set(item[1].bases)]:
        actual += more
        known |= {each.name for _, each in more}
        left = [item for item in left if item not in more]
    return actual


def drawn() -> dict[str, str]:
    """The parent of each exception in the drawing."""
    lines = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    actual: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in lines:
        text = line.lstrip(" │├└─")
        depth, name = len(line) - len(text), text.split()[0]
        path = [item for item in path if item[0] < depth]
        actual[name] = path[-1][1] if path else "Exception"
        path.append((depth, name))
    return actual


@tree_rule(
    Sample({"config/x.py": "class NewError(Exception): ..."}, "config/x.py: NewError is not in the drawing"),
    Sample({"config/x.py": "class InvalidFile(ValueError): ..."}, "below PodwrightError"),
    Sample(
        {
            "config/x.py": "class InvalidFile(PodwrightError): ...",
            "operations/y.py": "class InvalidFile(PodwrightError): ...",
            "config/errors.py": "class PodwrightError(Exception): ...",
        },
        "two exceptions",
    ),
)
def the_drawing_is_the_tree_of_exceptions(files: list[Source]) -> Iterator[str]:
    """`config/errors.py` draws every exception below its first base; a second one only lets callers catch it."""
    parents, names = drawn(), set[str]()
    for source, each in exceptions(files):
        if each.name in names:
            yield f"{source.path}: two exceptions are called {each.name}"
        elif each.name not in parents:
            yield f"{source.path}: {each.name} is not in the drawing of config/errors.py"
        elif parents[each.name] != each.bases[0]:
            yield f"{source.path}: {each.name} derives from {each.bases[0]}; it is drawn below {parents[each.name]}"
        names.add(each.name)
    yield from (f"config/errors.py: {name} does not exist" for name in sorted(parents.keys() - names))
