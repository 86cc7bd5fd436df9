"""Imports point one way, and what a synthesis reads is in the environment file alone."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.planning.purchase.purchase import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "config": set(),
    "constructs": {"config"},
    "cdk8s_charts": {"config"},
    "stacks": {"config", "constructs", "cdk8s_charts"},
    "operations": {"config", "cdk8s_charts"},
    "lifecycle_scripts": set(),
    "bin": {"config", "constructs", "cdk8s_charts", "stacks", "operations"},
}
SYNTHESIS = ("config", "constructs", "cdk8s_charts", "stacks")
"""The rooms whose result depends on the environment file and nothing else."""

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

WITH_THE_BUYER = {file.removesuffix(".py").replace("/", ".") for file in SHIPPED}
"""Modules that travel with the handler that buys. The command line buys by them too; a synthesis runs none of them."""

READS = re.compile(r"os\.(environb?|getenv|urandom)|(.+\.)?(datetime|date)\.(now|today|utcnow)")


def is_handler(file: Path) -> bool:
    """Whether the file runs in Lambda or on a node: it is shipped as an asset and imports only what ships with it."""
    inside = file.relative_to(ROOT).parts
    named = any(part.removesuffix(".py").startswith("handler") for part in inside)
    return inside[0] == "lifecycle_scripts" or (named and inside[0] != "tests")


def sources(*rooms: str) -> list[Path]:
    return [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]


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


def violations(file: Path) -> Iterator[str]:
    room = file.relative_to(ROOT).parts[0]
    for line, name, level in imports(file):
        first, _, rest = absolute(file, name, level).partition(".")
        where = f"{file.relative_to(ROOT)}:{line}: {'.' * level}{name}"
        if first in ROOMS and first != "constructs" and not is_handler(file):
            yield f"{where} is one class under two names; write podwright.{first} in tests, a relative import elsewhere"
        if first == "podwright":
            target = rest.partition(".")[0]
            if is_handler(file):
                if level and rest.startswith(tuple(f"{module}." for module in WITH_THE_BUYER)):
                    continue
                beside = f"{'.'.join(file.relative_to(ROOT).parts[:-1])}."
                if not level or not rest.startswith((beside, "constructs.handler_runtime.")):
                    yield f"{where}: what runs elsewhere imports nothing of ours"
            elif room in ROOMS and room != "bin" and not level:
                yield f"{where} is absolute; inside the package imports are relative"
            elif room in ROOMS and target != room and target not in ROOMS[room]:
                yield f"{where}: {room} may import {', '.join(sorted(ROOMS[room])) or 'no other room'}"
            elif room in ("constructs", "cdk8s_charts") and rest == "config.environment.Environment":
                yield f"{where}: only stacks sees the whole environment; take the smallest settings model"


def foreign(file: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each import that is neither ours nor the standard library's."""
    siblings = {path.stem for path in file.parent.iterdir()}
    for line, name, level in imports(file):
        top = name.partition(".")[0]
        if not level and top != "podwright" and top not in sys.stdlib_module_names and top not in siblings:
            yield line, top


def test_rooms_import_one_way() -> None:
    assert [found for file in sources(*ROOMS, "tests") for found in violations(file)] == []


@pytest.mark.parametrize(
    ("place", "source", "message"),
    [
        ("config/x.py", "from ..stacks import stage", "config may import no other room"),
        ("config/deep/x.py", "from ...operations.cli import main", "config may import no other room"),
        ("operations/x.py", "from .. import constructs", "operations may import cdk8s_charts, config"),
        ("operations/x.py", "def f():\n    from ..stacks.stage import TrainingStage", "operations may import"),
        ("stacks/x.py", "from podwright.config.settings.base import Settings", "imports are relative"),
        ("stacks/x.py", "from config.base import Settings", "under two names"),
        ("tests/unit/x.py", "import stacks", "under two names"),
        ("constructs/x.py", "from ..config.environment import Environment", "smallest settings model"),
        ("constructs/plan/handler/index.py", "from ....config import base", "nothing of ours"),
        ("constructs/plan/handler/index.py", "from ....config.plan_steps import run", None),
        ("constructs/plan/handler/index.py", "from .request import Request", None),
        ("constructs/plan/handler/index.py", "from ...handler_runtime.response import Answer", None),
        ("constructs/plan/handler/index.py", "from podwright.config import base", "nothing of ours"),
        ("constructs/x.py", "from constructs import Construct\nfrom ..config.storage import Lustre", None),
    ],
)
def test_a_wrong_arrow_is_seen(
    place: str, source: str, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(source)
    found = list(violations(file))
    assert len(found) == bool(message)
    assert (message or "") in "".join(found)


def test_each_room_uses_its_own_libraries() -> None:
    allowed = {"config": {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "ruamel", "yaml"}}
    not_elsewhere = {"constructs": {"boto3", "botocore"}, "cdk8s_charts": {"boto3", "botocore", "aws_cdk"}}
    not_elsewhere["stacks"] = {"boto3", "botocore"}
    not_elsewhere["operations"] = {"aws_cdk"}
    found = []
    for file in sources(*ROOMS):
        room = file.relative_to(ROOT).parts[0]
        for line, top in foreign(file):
            if is_handler(file):
                wrong = room == "lifecycle_scripts" or top not in {"boto3", "botocore"}
            else:
                wrong = top not in allowed.get(room, {top}) or top in not_elsewhere.get(room, ())
            if wrong:
                found.append(f"{file.relative_to(ROOT)}:{line}: {top}")
    assert found == []


def test_synthesis_reads_no_clock_chance_network_or_process_environment() -> None:
    found = []
    for file in sources(*SYNTHESIS):
        if is_handler(file) or f"{file.parent.name}.{file.stem}" in WITH_THE_BUYER:
            continue
        for line, name, _ in imports(file):
            if name.partition(".")[0] in CLOCK_CHANCE_OR_NETWORK or READS.fullmatch(name):
                found.append(f"{file}:{line}: {name}")
        for node in ast.walk(ast.parse(file.read_text(), file)):
            if isinstance(node, ast.Attribute) and READS.fullmatch(ast.unparse(node)):
                found.append(f"{file}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def test_what_ships_with_the_buyer_needs_python_alone() -> None:
    for file in (ROOT / name for name in SHIPPED):
        assert list(foreign(file)) == []
        ours = {absolute(file, name, level) for _, name, level in imports(file) if level}
        assert {".".join(name.split(".")[1:3]) for name in ours} <= WITH_THE_BUYER, file


def test_the_command_line_starts_without_aws_libraries() -> None:
    heavy = "{'jsii', 'aws_cdk', 'cdk8s', 'boto3', 'botocore', 'moto', 'cfnlint', 'rich'}"
    program = f"import sys, podwright.operations.cli; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
