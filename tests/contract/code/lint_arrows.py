"""Imports point one way, and what a synthesis reads is in the environment file alone."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from lint import At, Sample, file_rule, tree_rule
from podwright.planning.kubernetes import api_tls, eks_token
from podwright.planning.node import quarantine
from podwright.planning.purchase import purchase
from sources import ROOT, Source

FOLDERS = {
    "config": set(),
    "planning": {"config"},
    "constructs": {"config", "planning"},
    "cdk8s_charts": {"config", "planning"},
    "stacks": {"config", "planning", "constructs", "cdk8s_charts"},
    "operations": {"config", "planning", "cdk8s_charts"},
    # The programs that podwright installs (Helm, Prometheus) and how they fail; never what a command does.
    "sandbox": {"config", "planning", "operations.programs", "operations.output.console"},
    "lifecycle_scripts": set(),
    "bin": {"config", "planning", "constructs", "cdk8s_charts", "stacks", "operations"},
}
FILES = {
    "planning": {"lifecycle_scripts"},
    "constructs": {"lifecycle_scripts"},
    "stacks": {"cdk.json"},
    "operations": {"cdk.json", "docs", "environments"},
}
"""What a room reads by path besides its own files."""
WHOLE_PACKAGE = {
    "constructs/common/custom_resource.py",
    "operations/upgrade/other_version.py",
    "operations/cdk/inputs.py",
    "operations/promotion/content.py",
}
"""They pack or compare the package itself: assets of handlers, two versions, and what a promotion carries."""
SYNTHESIS = ("config", "planning", "constructs", "cdk8s_charts", "stacks")
"""The rooms whose result depends on the environment file and nothing else."""

OF_THE_PROCESS = {"config/node_runtime.py"}
"""It chooses the Node of this process, which no result depends on."""

CLOCK_CHANCE_OR_NETWORK = {
    "time",
    "random",
    "secrets",
    "uuid",
    "socket",
    "ssl",
    "http",
    "urllib",
    "requests",
    "urllib3",
}

SHIPPED = (*purchase.SHIPPED, api_tls.SHIPPED, eks_token.SHIPPED, quarantine.SHIPPED)
WITH_HANDLERS = {file.removesuffix(".py").replace("/", ".") for file in SHIPPED}
"""Modules of planning that travel with handlers. The command line calls them too; a synthesis runs none of them."""

WHOLE = "config.settings.environment.Environment"
WITH_THE_WHOLE = "constructs/hyperpod/environment_cluster.py"
"""The construct in which environment files and clusters made in Python meet (ADR 50)."""

READ = re.compile(r"(.+)\.(?:read_text|read_bytes|open|exists|glob|rglob|iterdir)(?:\(.*\))?")
READ_NAMES = {"environ", "environb", "getenv", "urandom", "now", "today", "utcnow"}
READS = re.compile(r"os\.(environb?|getenv|urandom)|(.+\.)?(datetime|date)\.(now|today|utcnow)")


def is_handler(path: str) -> bool:
    """Whether the file runs in Lambda or on a node: it is shipped as an asset and imports only what ships with it."""
    parts = PurePosixPath(path).parts
    named = any(part.removesuffix(".py").startswith("handler") for part in parts)
    return parts[0] == "lifecycle_scripts" or (named and parts[0] != "tests")


def module_of(path: str) -> str:
    """The dotted name of a module within the package, such as `config.loading.load`."""
    return path.removesuffix(".py").replace("/", ".")


def absolute(path: str, name: str, level: int) -> str:
    """The name as seen from outside, with `podwright.` before a room's name."""
    if not level:
        return name
    package = ("podwright", *PurePosixPath(path).parts[:-1])
    assert level <= len(package), f"{path}: {'.' * level}{name} leads out of the package"
    return ".".join((*package[: len(package) - level + 1], name))


def allowed(target: str, folders: set[str]) -> bool:
    """Whether a module is in one of `folders`, or in the named part of a room."""
    return any(target == folder or target.startswith(f"{folder}.") for folder in folders)


def one(path: str, text: str, finding: str | None) -> Sample:
    """A sample of one file."""
    return Sample({path: text}, finding)


@file_rule(
    one("config/x.py", "from ..stacks import stage", "config may import no other room"),
    one("config/deep/x.py", "from ...operations.cli import main", "config may import no other room"),
    one("operations/x.py", "from ..sandbox import server", "operations may import"),
    one("sandbox/x.py", "from ..operations.cli import main", "sandbox may import"),
    one("sandbox/x.py", "from ..operations.programs.helm import helm", None),
    one("operations/x.py", "from .. import constructs", "operations may import cdk8s_charts, config, planning"),
    one("operations/x.py", "def f():\n    from ..stacks.stage import TrainingStage", "operations may import"),
    one("stacks/x.py", "from podwright.config.settings.base import Settings", "imports are relative"),
    one("stacks/x.py", "from config.base import Settings", "under two names"),
    one("tests/unit/x.py", "import stacks", "under two names"),
    one("constructs/x.py", "from ..config.settings.environment import Environment", "smallest settings model"),
    one("constructs/plan/handler/index.py", "from ....config import base", "nothing of ours"),
    one("constructs/plan/handler/index.py", "from ....planning.purchase.steps import Engine", None),
    one("constructs/plan/handler/index.py", "from .request import Request", None),
    one("constructs/plan/handler/index.py", "from ...common.handler_runtime.response import Answer", None),
    one("constructs/plan/handler/index.py", "from podwright.config import base", "nothing of ours"),
    one("constructs/x.py", "from constructs import Construct\nfrom ..config.storage import Lustre", None),
)
def packages_import_one_way(source: Source) -> Iterator[At]:
    """A room imports only the rooms that it may, by relative imports; a handler imports only what ships with it."""
    if not source.is_python or source.folder not in {*FOLDERS, "tests"}:
        return
    folder, handler = source.folder, is_handler(source.path)
    for line, name, level, _ in source.imports:
        first, _, rest = absolute(source.path, name, level).partition(".")
        written = f"{'.' * level}{name}"
        if first in FOLDERS and first != "constructs" and not handler:
            yield At(
                line, f"{written} is one class under two names; write podwright.{first} in tests, else `..{first}`"
            )
        if first == "podwright":
            target = rest.partition(".")[0]
            if handler:
                if level and rest.startswith(tuple(f"{module}." for module in WITH_HANDLERS)):
                    continue
                # A node gets each package of the scripts whole, a function the folder of its handler.
                depth = 2 if folder == "lifecycle_scripts" else -1
                beside = f"{'.'.join(PurePosixPath(source.path).parts[:depth])}."
                if not level or not rest.startswith((beside, "constructs.common.handler_runtime.")):
                    yield At(line, f"{written}: what runs elsewhere imports nothing of ours")
            elif folder in FOLDERS and folder != "bin" and not level:
                yield At(line, f"{written} is absolute; inside the package imports are relative")
            elif folder in FOLDERS and target != folder and not allowed(rest, FOLDERS[folder]):
                others = ", ".join(sorted(FOLDERS[folder])) or "no other room"
                yield At(line, f"{written}: {folder} may import {others}")
            elif rest == WHOLE and folder in ("constructs", "cdk8s_charts") and source.path != WITH_THE_WHOLE:
                yield At(line, f"{written}: only stacks sees the whole environment; take the smallest settings model")


@cache
def siblings(folder: Path) -> set[str]:
    """The names of files and folders next to a module, which scripts and tests import by bare name."""
    return {path.stem for path in folder.iterdir()} if folder.is_dir() else set()


def foreign(source: Source) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each import that is neither ours nor the standard library's."""
    own = {"podwright", *sys.stdlib_module_names, *siblings(source.file.parent)}
    for line, name, level, _ in source.imports:
        if not level and (top := name.partition(".")[0]) not in own:
            yield line, top


LIBRARIES = {"config": {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "ruamel", "yaml"}}
"""All libraries of a room; other rooms may import any but those below."""
NOT_IN = {
    "constructs": {"boto3", "botocore"},
    "cdk8s_charts": {"boto3", "botocore", "aws_cdk"},
    "stacks": {"boto3", "botocore"},
    "operations": {"aws_cdk"},
}
IN_ONE_FOLDER = {"boto3": "operations/aws/", "rich": "operations/output/"}
"""Libraries that one folder of operations wraps: its clients ask AWS, and its layer knows the terminal."""


@file_rule(
    one("config/x.py", "import pydantic\nimport boto3", "boto3"),
    one("stacks/x.py", "import aws_cdk\nimport botocore", "botocore"),
    one("constructs/plan/handler/index.py", "import boto3\nimport requests", "requests"),
    one("lifecycle_scripts/steps/x.py", "import boto3", "boto3"),
    one("operations/drift/x.py", "import boto3", "operations/aws/"),
    one("operations/drift/x.py", "def f():\n    from rich.text import Text", "operations/output/"),
    one("operations/aws/x.py", "import boto3", None),
)
def packages_use_their_own_libraries(source: Source) -> Iterator[At]:
    """Each room imports the libraries of its task; boto3 and rich each have one folder of operations."""
    if not source.is_python or source.folder not in FOLDERS:
        return
    for line, top in foreign(source):
        home = IN_ONE_FOLDER.get(top, "")
        if is_handler(source.path):
            if source.folder == "lifecycle_scripts" or top not in {"boto3", "botocore"}:
                yield At(line, f"{top}: what runs elsewhere has the standard library, and boto3 in Lambda")
        elif top not in LIBRARIES.get(source.folder, {top}) or top in NOT_IN.get(source.folder, ()):
            yield At(line, f"{top}: {source.folder} does not import it")
        elif source.folder == "operations" and not source.path.startswith(home):
            yield At(line, f"{top}: of operations, only {home} imports it")


@file_rule(
    one("operations/x.py", "def f(session):\n    return session.client('s3')", "operations/aws"),
    one("operations/aws/x.py", "def f(session):\n    return session.client('s3')", None),
    one("operations/x.py", "def f(reader):\n    reader.call('list_cluster_nodes')", "nodes are listed in"),
)
def only_one_layer_asks_aws(source: Source) -> Iterator[At]:
    """Commands ask AWS through `operations/aws`, and one module there lists nodes, with their retries and pages."""
    if not source.is_python or source.folder != "operations":
        return
    if not source.path.startswith("operations/aws/"):
        for node in source.nodes(ast.Attribute):
            if node.attr in ("client", "get_paginator", "get_waiter"):
                yield At(node.lineno, f"{node.attr}: ask through operations/aws")
    if "list_cluster_nodes" in source.text and source.path not in LISTS_NODES:
        line = source.text[: source.text.index("list_cluster_nodes")].count("\n") + 1
        yield At(line, f"nodes are listed in {LISTS_NODES[0]}")


LISTS_NODES = ("operations/aws/clusters.py", "operations/doctor/collect.py")
"""The reader of clusters; and the bundle of `podwright collect`, which keeps AWS's answers as they are."""


def read_paths(source: Source) -> Iterator[tuple[int, Path]]:
    """The places that a module builds from its own: `Path(__file__).parents[1] / "name"` and the like."""

    def walk(node: ast.AST) -> Iterator[tuple[int, str]]:
        code = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if re.match(r"\(?Path\(__file__\)", code):
            yield node.lineno, code  # type: ignore[attr-defined]
            return
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    if "Path(__file__)" not in source.text:
        return
    for line, code in walk(source.tree):
        # What is done with the place, such as reading it, is not part of it.
        while (outer := READ.fullmatch(code)) is not None:
            code = outer[1]
        yield line, eval(code, {"Path": Path, "__file__": str(source.file)})


@file_rule(
    one("config/x.py", "A = (Path(__file__).parents[1] / 'operations' / 'y.json').read_text()", "reads operations"),
    one("config/x.py", "A = Path(__file__).resolve().parents[1]", "reads the whole package"),
    one("config/x.py", "B = Path(__file__).with_name('z')", None),
    one("stacks/x.py", "C = Path(__file__).parents[1] / 'cdk.json'", None),
)
def packages_read_files_one_way(source: Source) -> Iterator[At]:
    """A room reads its own files by path, and those of FILES."""
    if not source.is_python or source.folder not in FOLDERS:
        return
    for line, location in read_paths(source):
        target = (*location.resolve().relative_to(ROOT).parts, "")[0]
        known = FILES.get(source.folder, set()) | {source.folder}
        if target not in known and not (target == "" and source.path in WHOLE_PACKAGE):
            yield At(line, f"reads {target or 'the whole package'}")


def graph(files: list[Source], folder: str) -> dict[str, set[str]]:
    """Which modules each module of a room imports, those inside functions included; names as dotted paths."""
    own_modules = {module_of(source.path): source for source in files if source.is_python and source.folder == folder}
    actual: dict[str, set[str]] = {}
    for module, source in own_modules.items():
        targets = set()
        for _, name, level, _ in source.imports:
            rest = absolute(source.path, name, level).removeprefix("podwright.") if level else ""
            candidates = (rest, rest.rpartition(".")[0])
            named = (*candidates, *(f"{each}.__init__" for each in candidates))
            targets |= {each for each in named if each in own_modules}
        # A package's own __init__ runs before its modules: whoever names one of those does not import it.
        own = {
            each for each in targets if each.endswith(".__init__") and module.startswith(each.removesuffix("__init__"))
        }
        actual[module] = targets - own - {module}
    return actual


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """What is left when nothing more can be taken away that imports nothing, or that nothing imports."""
    left = {module: set(targets) for module, targets in edges.items()}
    while True:
        imported = {target for targets in left.values() for target in targets}
        ends = {module for module, targets in left.items() if not targets & left.keys() or module not in imported}
        if not ends:
            return [sorted(left)] if left else []
        left = {module: targets - ends for module, targets in left.items() if module not in ends}


def between_children(folder: str, edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports between the immediate children of a folder, modules and folders alike."""
    inside, depth = f"{folder}.", folder.count(".") + 2
    child = {module: ".".join(module.split(".")[:depth]) for module in edges if module.startswith(inside)}
    actual: dict[str, set[str]] = {name: set() for name in child.values()}
    for module, name in child.items():
        # A package's own __init__ may gather what its modules define, which run it before they do anything.
        if not module.endswith(".__init__"):
            actual[name] |= {child[target] for target in edges[module] if target in child} - {name}
    return actual


@tree_rule(
    Sample({"config/a.py": "from .b import c", "config/b.py": "from .a import d"}, "config.a, config.b"),
    Sample(
        {
            "config/x/a.py": "from ..y.b import b",
            "config/y/b.py": "",
            "config/y/c.py": "from ..x.d import d",
            "config/x/d.py": "",
        },
        "config: config.x, config.y",
    ),
    Sample({"config/a.py": "from .b import c", "config/b.py": "from .c import d", "config/c.py": ""}, None),
)
def no_imports_go_in_circles(files: list[Source]) -> Iterator[str]:
    """Neither modules nor folders import one another in a circle, at any level of a room."""
    for package in FOLDERS:
        edges = graph(files, package)
        for modules in cycles(edges):
            yield f"{package}: {', '.join(modules)}"
        parts = [module.split(".") for module in edges]
        folders = {".".join(names[:depth]) for names in parts for depth in range(1, len(names))}
        if cycles(edges):
            continue
        for folder in sorted(folders):
            for modules in cycles(between_children(folder, edges)):
                yield f"{folder}: {', '.join(modules)}"


@file_rule(
    one("planning/x.py", "import time", "time"),
    one("planning/x.py", "from random import Random", None),
    one("planning/x.py", "import os\nA = os.environ['A']", "os.environ"),
    one("planning/x.py", "from datetime import date\nA = date.today()", "date.today"),
    one("constructs/plan/handler/index.py", "import time", None),
)
def synthesis_reads_the_file_alone(source: Source) -> Iterator[At]:
    """A synthesis reads no clock, chance, network or variable of the process."""
    if not source.is_python or source.folder not in SYNTHESIS or source.path in OF_THE_PROCESS:
        return
    if is_handler(source.path) or module_of(source.path) in WITH_HANDLERS:
        return
    for line, name, _, _ in source.imports:
        # A `random.Random` of its own is the same each time: it is made with a seed.
        if (name != "random.Random" and name.partition(".")[0] in CLOCK_CHANCE_OR_NETWORK) or READS.fullmatch(name):
            yield At(line, name)
    for node in source.nodes(ast.Attribute):
        if node.attr in READ_NAMES and READS.fullmatch(ast.unparse(node)):
            yield At(node.lineno, ast.unparse(node))


@file_rule(
    one(purchase.SHIPPED[0], "import pydantic", "pydantic"),
    one(purchase.SHIPPED[0], "from ...config.errors import InvalidValue", "config.errors"),
    one(purchase.SHIPPED[0], "import json", None),
)
def shipped_modules_need_python_alone(source: Source) -> Iterator[At]:
    """The modules of planning that ship with handlers import the standard library and one another."""
    if source.path not in SHIPPED:
        return
    for line, top in foreign(source):
        yield At(line, f"{top}: a handler does not have it")
    for line, name, level, _ in source.imports:
        target = ".".join(absolute(source.path, name, level).split(".")[1:4])
        if level and target not in WITH_HANDLERS:
            yield At(line, f"{target} does not ship with handlers")
