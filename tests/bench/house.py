"""How large the rooms of the code are, now and at an earlier commit: statements, modules, fullest folder, circles."""

import argparse
import ast
import io
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import language
from table import Report, markdown
from timing import ROOT

BEFORE = "0bf0817"
"""The last commit before the rooms were rebuilt."""
PACKAGES = (*language.PACKAGES, "bin", "tests")
HOLDS = re.compile(r"(self\.)?_?(resolved|environment)(\.\w+)*(\(\))?")
"""What a reader follows: an environment or a part of it, resolved or not."""
STAGE, RESOLVE = ("stacks/stage.py", "TrainingStage"), ("planning/resolved.py", "resolve")
"""Where an environment begins to be handed on, by file and name."""


def sources_now() -> dict[str, str]:
    """The text of each Python file of the checkout, by its path."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in listed.split() if (ROOT / name).exists()}


def sources_at(commit: str) -> dict[str, str]:
    """The same at a commit. Raises CalledProcessError where the clone does not hold it."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    actual = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                actual[member.name] = file.read().decode()
    return actual


def statements(text: str) -> int:
    """Statements of a module, those inside functions and classes included and docstrings left out."""
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(ast.parse(text)))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def package_of(path: str) -> str:
    """The room of a file; the sandbox was a folder of operations before it had one."""
    return "sandbox" if path.startswith("operations/sandbox/") else PurePosixPath(path).parts[0]


def imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each module imports by a relative import, those inside functions included."""
    modules = {path.removesuffix(".py") for path in sources}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for path, text in sources.items():
        module = path.removesuffix(".py")
        edges[module] = set(_targets(module, ast.parse(text), modules)) - {module}
    return edges


def _targets(module: str, tree: ast.AST, modules: set[str]) -> Iterator[str]:
    package = module.split("/")[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not 0 < node.level <= len(package) + 1:
            continue
        base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
        location = "/".join(part for part in base if part)
        for alias in node.names:
            inner = f"{location}/{alias.name}"
            yield from [inner] if inner in modules else [location] if location in modules else []


def circular(edges: Mapping[str, set[str]]) -> int:
    """How many modules are on a circle of imports, or between two circles."""
    left = {module: set(targets) for module, targets in edges.items()}
    while True:
        imported = set().union(*left.values()) if left else set[str]()
        ends = {module for module, targets in left.items() if not targets & left.keys() or module not in imported}
        if not ends:
            return len(left)
        left = {module: targets - ends for module, targets in left.items() if module not in ends}


def measured(sources: Mapping[str, str]) -> dict[str, tuple[int, int, int]]:
    """Statements, modules and the modules of the fullest folder, by room."""
    layers = {}
    for folder in PACKAGES:
        files = [path for path in sources if package_of(path) == folder]
        folders = Counter(PurePosixPath(path).parent for path in files if not path.endswith("__init__.py"))
        layers[folder] = sum(statements(sources[path]) for path in files), len(files), max(folders.values(), default=0)
    return layers


@dataclass(frozen=True)
class Walk:
    """What it takes to follow an environment to wherever it is handed on."""

    files: int
    """Files that are opened."""
    climbs: int
    """Calls that lead from a file of one room to one of another."""
    returns: int
    """Calls that lead to a file that has been open before."""


def walk(sources: Mapping[str, str], start: tuple[str, str]) -> Walk:
    """Follow each call that hands an environment or a part of it on, depth first, as a reader does.

    Modules are read by their text alone: a callee is a name of the same module, or one that a relative import brings.
    """
    trees = {path: ast.parse(text) for path, text in sources.items()}
    opened, known, steps = [start[0]], {start}, list(_handed_on(trees, start))
    climbs = returns = 0
    while steps:
        source, target = steps.pop()
        climbs += package_of(source) != package_of(target[0])
        returns += source != target[0] and target[0] in opened
        opened += [] if target[0] in opened else [target[0]]
        if target not in known:
            known.add(target)
            steps += _handed_on(trees, target)
    return Walk(len(opened), climbs, returns)


def _handed_on(trees: Mapping[str, ast.Module], origin: tuple[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The calls within a function or class that get an environment: the file of each, and what it calls."""
    path, name = origin
    defined = {node.name: node for node in trees[path].body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if name not in defined:
        return
    bound = {name: (path, name) for name in defined} | dict(_bound(trees, path))
    for call in (node for node in ast.walk(defined[name]) if isinstance(node, ast.Call)):
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        target = bound.get(ast.unparse(call.func))
        if target is not None and any(HOLDS.fullmatch(ast.unparse(value)) for value in values):
            yield path, target


def _bound(trees: Mapping[str, ast.Module], path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """What the relative imports of a module bind, by the name that calls use."""
    package = path.split("/")[:-1]
    for node in ast.walk(trees[path]):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(package) + 1:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            location = "/".join(part for part in base if part)
            for alias in node.names:
                if f"{location}.py" in trees:
                    yield alias.asname or alias.name, (f"{location}.py", alias.name)
                elif f"{location}/{alias.name}.py" in trees:
                    inner = trees[f"{location}/{alias.name}.py"].body
                    functions = [item.name for item in inner if isinstance(item, ast.FunctionDef | ast.ClassDef)]
                    for function in functions:
                        called = f"{alias.asname or alias.name}.{function}"
                        yield called, (f"{location}/{alias.name}.py", function)


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The table of rooms, before and after."""
    then, now = sources_at(BEFORE), sources_now()
    before, after = measured(then), measured(now)
    rows = []
    for layer in PACKAGES:
        pairs = zip(before[layer], after[layer], strict=True)
        rows.append([layer, *(cell for old, new in pairs for cell in (f"{old:,}", f"{new:,}"))])
    product = [layer for layer in PACKAGES if layer != "tests"]
    totals = [sum(folders[layer][column] for layer in product) for column in (0, 1) for folders in (before, after)]
    rows.append(["all but tests", *(f"{total:,}" for total in totals), "", ""])
    header = ["room", "statements", "now", "modules", "now", "fullest folder", "now"]
    # Tests and node scripts name each other by search path, so only the package's own imports are looked at.
    inside = {path: text for path, text in then.items() if package_of(path) in product}
    inside_now = {path: text for path, text in now.items() if package_of(path) in product}
    on_circles = (
        f"Modules on circles of imports: {circular(imports(inside))} at {BEFORE}, {circular(imports(inside_now))} now."
    )
    walks = [
        ("before, from `TrainingStage`", walk(inside, STAGE)),
        ("now, from `TrainingStage`", walk(inside_now, STAGE)),
        ("now, from `resolve`, which comes first", walk(inside_now, RESOLVE)),
    ]
    cells = [[name, str(walked.files), str(walked.climbs), str(walked.returns)] for name, walked in walks]
    followed = markdown(["following an environment", "files", "into another room", "back to an open file"], cells)
    return Report(f"{markdown(header, rows)}\n\n{on_circles}\n\n{followed}", True)
