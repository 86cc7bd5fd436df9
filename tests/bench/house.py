"""How large the rooms of the code are, now and at an earlier commit: statements, modules, fullest folder, circles."""

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import language
from table import Report, markdown
from timing import ROOT

BEFORE = "0bf0817"
"""The last commit before the rooms were rebuilt."""
PACKAGES = (*language.PACKAGES, "bin", "tests")


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
        if not isinstance(node, ast.ImportFrom) or not 0 < node.level <= len(package):
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
    return Report(f"{markdown(header, rows)}\n\n{on_circles}", True)
