"""Imports point one way, and what a synthesis reads is in the environment file alone."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from podwright.planning.kubernetes import api_tls, eks_token
from podwright.planning.node import quarantine
from podwright.planning.purchase import purchase

ROOT = Path(__file__).resolve().parents[3]
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
WITH_THE_WHOLE = ROOT / "constructs/hyperpod/environment_cluster.py"
"""The construct in which environment files and clusters made in Python meet (ADR 50)."""

READ = re.compile(r"(.+)\.(?:read_text|read_bytes|open|exists|glob|rglob|iterdir)(?:\(.*\))?")
READS = re.compile(r"os\.(environb?|getenv|urandom)|(.+\.)?(datetime|date)\.(now|today|utcnow)")


def is_handler(file: Path) -> bool:
    """Whether the file runs in Lambda or on a node: it is shipped as an asset and imports only what ships with it."""
    inside = file.relative_to(ROOT).parts
    named = any(part.removesuffix(".py").startswith("handler") for part in inside)
    return inside[0] == "lifecycle_scripts" or (named and inside[0] != "tests")


def sources(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def imports(file: Path) -> Iterator[tuple[int, str, int]]:
    """Line, dotted name and level (0 absolute) of each imported module; `from . import a` counts as `a`."""
    for node in ast.walk(ast.parse(file.read_text(), file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            yield from ((node.lineno, f"{prefix}{alias.name}", node.level) for alias in node.names)


def absolute(file: Path, name: str, level: int) -> str:
    """The name as seen from outside, with `podwright.` before a room's name."""
    if not level:
        return name
    package = ("podwright", *file.relative_to(ROOT).parts[:-1])
    assert level <= len(package), f"{file}: {'.' * level}{name} leads out of the package"
    return ".".join((*package[: len(package) - level + 1], name))


def allowed(target: str, folders: set[str]) -> bool:
    """Whether a module is in one of `folders`, or in the part of a room that stands there."""
    return any(target == folder or target.startswith(f"{folder}.") for folder in folders)


def violations(file: Path) -> Iterator[str]:
    folder = file.relative_to(ROOT).parts[0]
    for line, name, level in imports(file):
        first, _, rest = absolute(file, name, level).partition(".")
        where = f"{file.relative_to(ROOT)}:{line}: {'.' * level}{name}"
        if first in FOLDERS and first != "constructs" and not is_handler(file):
            yield f"{where} is one class under two names; write podwright.{first} in tests, a relative import elsewhere"
        if first == "podwright":
            target = rest.partition(".")[0]
            if is_handler(file):
                if level and rest.startswith(tuple(f"{module}." for module in WITH_HANDLERS)):
                    continue
                # A node gets each package of the scripts whole, a function the folder of its handler.
                depth = 2 if folder == "lifecycle_scripts" else -1
                beside = f"{'.'.join(file.relative_to(ROOT).parts[:depth])}."
                if not level or not rest.startswith((beside, "constructs.common.handler_runtime.")):
                    yield f"{where}: what runs elsewhere imports nothing of ours"
            elif folder in FOLDERS and folder != "bin" and not level:
                yield f"{where} is absolute; inside the package imports are relative"
            elif folder in FOLDERS and target != folder and not allowed(rest, FOLDERS[folder]):
                yield f"{where}: {folder} may import {', '.join(sorted(FOLDERS[folder])) or 'no other room'}"
            elif rest == WHOLE and folder in ("constructs", "cdk8s_charts") and file != WITH_THE_WHOLE:
                yield f"{where}: only stacks sees the whole environment; take the smallest settings model"


def foreign(file: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each import that is neither ours nor the standard library's."""
    siblings = {path.stem for path in file.parent.iterdir()}
    for line, name, level in imports(file):
        top = name.partition(".")[0]
        if not level and top != "podwright" and top not in sys.stdlib_module_names and top not in siblings:
            yield line, top


def test_rooms_import_one_way() -> None:
    assert [violation for file in sources(*FOLDERS, "tests") for violation in violations(file)] == []


@pytest.mark.parametrize(
    ("location", "source", "message"),
    [
        ("config/x.py", "from ..stacks import stage", "config may import no other room"),
        ("config/deep/x.py", "from ...operations.cli import main", "config may import no other room"),
        ("operations/x.py", "from ..sandbox import server", "operations may import"),
        ("sandbox/x.py", "from ..operations.cli import main", "sandbox may import"),
        ("sandbox/x.py", "from ..operations.programs.helm import helm", None),
        ("operations/x.py", "from .. import constructs", "operations may import cdk8s_charts, config, planning"),
        ("operations/x.py", "def f():\n    from ..stacks.stage import TrainingStage", "operations may import"),
        ("stacks/x.py", "from podwright.config.settings.base import Settings", "imports are relative"),
        ("stacks/x.py", "from config.base import Settings", "under two names"),
        ("tests/unit/x.py", "import stacks", "under two names"),
        ("constructs/x.py", "from ..config.settings.environment import Environment", "smallest settings model"),
        ("constructs/plan/handler/index.py", "from ....config import base", "nothing of ours"),
        ("constructs/plan/handler/index.py", "from ....planning.purchase.steps import Engine", None),
        ("constructs/plan/handler/index.py", "from .request import Request", None),
        ("constructs/plan/handler/index.py", "from ...common.handler_runtime.response import Answer", None),
        ("constructs/plan/handler/index.py", "from podwright.config import base", "nothing of ours"),
        ("constructs/x.py", "from constructs import Construct\nfrom ..config.storage import Lustre", None),
    ],
)
def test_a_wrong_arrow_is_seen(
    location: str, source: str, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / location
    file.parent.mkdir(parents=True)
    file.write_text(source)
    actual = list(violations(file))
    assert len(actual) == bool(message)
    assert (message or "") in "".join(actual)


def read_paths(file: Path) -> Iterator[Path]:
    """The places that a module builds from its own: `Path(__file__).parents[1] / "name"` and the like."""

    def walk(node: ast.AST) -> Iterator[str]:
        source = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if re.match(r"\(?Path\(__file__\)", source):
            yield source
            return
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    for source in walk(ast.parse(file.read_text())):
        # What is done with the place, such as reading it, is not part of it.
        while (outer := READ.fullmatch(source)) is not None:
            source = outer[1]
        yield eval(source, {"Path": Path, "__file__": str(file)})


def test_files_are_read_one_way_as_well() -> None:
    wrong = []
    for file in sources(*FOLDERS):
        inside = file.relative_to(ROOT)
        for location in read_paths(file):
            target = (*location.resolve().relative_to(ROOT).parts, "")[0]
            known = FILES.get(inside.parts[0], set()) | {inside.parts[0]}
            if target not in known and not (target == "" and inside.as_posix() in WHOLE_PACKAGE):
                wrong.append(f"{inside}: reads {target or 'the whole package'}")
    assert wrong == []


def test_a_file_that_is_read_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "config/x.py"
    file.parent.mkdir()
    file.write_text(
        "A = (Path(__file__).resolve().parents[1] / 'operations' / 'y.json').read_text()\n"
        "B = Path(__file__).with_name('z')\n"
    )
    assert list(read_paths(file)) == [tmp_path / "operations/y.json", tmp_path / "config/z"]


def graph(folder: str) -> dict[str, set[str]]:
    """Which modules each module of a room imports, those inside functions included; names as dotted paths."""
    files = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in sources(folder)}
    actual: dict[str, set[str]] = {}
    for module, file in files.items():
        targets = set()
        for _, name, level in imports(file):
            rest = absolute(file, name, level).removeprefix("podwright.") if level else ""
            candidates = (rest, rest.rpartition(".")[0])
            targets |= {each for each in (*candidates, *(f"{each}.__init__" for each in candidates)) if each in files}
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


@pytest.mark.parametrize("layer", FOLDERS)
def test_no_imports_go_in_circles_at_any_level(layer: str) -> None:
    edges = graph(layer)
    assert cycles(edges) == []
    parts = [module.split(".") for module in edges]
    folders = {".".join(names[:depth]) for names in parts for depth in range(1, len(names))}
    assert {folder: actual for folder in folders if (actual := cycles(between_children(folder, edges)))} == {}


def test_a_circle_is_seen() -> None:
    assert cycles({"r.a": {"r.b"}, "r.b": {"r.c"}, "r.c": {"r.b"}}) == [["r.b", "r.c"]]
    through = {"r.x.a": {"r.y.b"}, "r.y.b": set(), "r.y.c": {"r.x.d"}, "r.x.d": set()}
    assert cycles(through) == []
    assert cycles(between_children("r", through)) == [["r.x", "r.y"]]


def test_each_room_uses_its_own_libraries() -> None:
    own = {"config": {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "ruamel", "yaml"}}
    not_elsewhere = {"constructs": {"boto3", "botocore"}, "cdk8s_charts": {"boto3", "botocore", "aws_cdk"}}
    not_elsewhere["stacks"] = {"boto3", "botocore"}
    not_elsewhere["operations"] = {"aws_cdk"}
    actual = []
    for file in sources(*FOLDERS):
        folder = file.relative_to(ROOT).parts[0]
        for line, top in foreign(file):
            if is_handler(file):
                wrong = folder == "lifecycle_scripts" or top not in {"boto3", "botocore"}
            else:
                wrong = top not in own.get(folder, {top}) or top in not_elsewhere.get(folder, ())
            if wrong:
                actual.append(f"{file.relative_to(ROOT)}:{line}: {top}")
    assert actual == []


def test_synthesis_reads_no_clock_chance_network_or_process_environment() -> None:
    actual = []
    for file in sources(*SYNTHESIS):
        if file.relative_to(ROOT).as_posix() in OF_THE_PROCESS:
            continue
        if is_handler(file) or ".".join(file.relative_to(ROOT).with_suffix("").parts) in WITH_HANDLERS:
            continue
        for line, name, _ in imports(file):
            # A `random.Random` of its own is the same each time: it is made with a seed.
            if (name != "random.Random" and name.partition(".")[0] in CLOCK_CHANCE_OR_NETWORK) or READS.fullmatch(name):
                actual.append(f"{file}:{line}: {name}")
        for node in ast.walk(ast.parse(file.read_text(), file)):
            if isinstance(node, ast.Attribute) and READS.fullmatch(ast.unparse(node)):
                actual.append(f"{file}:{node.lineno}: {ast.unparse(node)}")
    assert actual == []


def test_what_ships_with_handlers_needs_python_alone() -> None:
    for file in (ROOT / name for name in SHIPPED):
        assert list(foreign(file)) == []
        ours = {absolute(file, name, level) for _, name, level in imports(file) if level}
        assert {".".join(name.split(".")[1:4]) for name in ours} <= WITH_HANDLERS, file


def test_the_command_line_starts_without_aws_libraries() -> None:
    heavy = "{'jsii', 'aws_cdk', 'cdk8s', 'boto3', 'botocore', 'moto', 'cfnlint', 'rich'}"
    program = f"import sys, podwright.operations.cli; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
