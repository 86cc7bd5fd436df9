"""Handlers run with the SDK that Lambda's runtime has, which is months older than the one that podwright pins.

Their own tests run once more, in a process of its own, with an SDK of before: its models check every operation, every
parameter and every answer. What each handler calls is read off its sources and off that run.
"""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.loaders import Loader

from needs import needs

ROOT = Path(__file__).parents[2]
CONSTRUCTS = ROOT / "constructs"
# What .ci/run installs, with the dates of the two releases on PyPI: at least four months lie between them.
SDK, VERSION, RELEASED = ROOT / ".podwright" / "lambda_sdk", "1.43.40", date(2026, 7, 2)
PIN, PIN_RELEASED = "1.44.5", date(2026, 11, 17)
SHORTEST_DAYS = 122
HANDLER_TESTS = "tests/handlers"
MODELS = CONSTRUCTS / "hyperpod" / "cluster_extension" / "handler" / "models" / "sagemaker" / "2017-07-24"


def handlers() -> list[Path]:
    """The folder of every handler."""
    return sorted(path.parent for path in CONSTRUCTS.rglob("handler/index.py"))


def name_of(folder: Path) -> str:
    return folder.relative_to(CONSTRUCTS).as_posix()


@cache
def operations(service: str) -> dict[str, str]:
    """The operations of a service by the name of their method, as the pinned SDK has them."""
    client: Any = boto3.Session("key", "secret", region_name="us-west-2").client(service)
    return dict(client.meta.method_to_api_mapping)


def called(folder: Path) -> Iterator[tuple[str, str]]:
    """Service and operation of each call that stands in a handler's sources as a method or as a paginator's name."""
    trees = [ast.parse(file.read_text()) for file in sorted(folder.glob("*.py"))]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [
        (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""), node)
        for node in calls
    ]
    texts = [
        (name, str(node.args[0].value)) for name, node in named if node.args and isinstance(node.args[0], ast.Constant)
    ]
    services = {text for name, text in texts if name in ("client", "aws")}
    methods = {name for name, _ in named} | {text for name, text in texts if name == "get_paginator"}
    for service in sorted(services):
        for method in sorted(methods & operations(service).keys()):
            yield service, operations(service)[method]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tests of handlers with the older SDK: its version, and the calls of each handler."""
    file = tmp_path_factory.mktemp("calls") / "calls.json"
    paths = os.pathsep.join(map(str, (SDK, ROOT / HANDLER_TESTS)))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-qq", "-p", "recorded_calls", "-p", "no:cacheprovider", HANDLER_TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "RECORDED_CALLS": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    return json.loads(file.read_text())


def test_the_older_sdk_is_four_months_older_than_the_pin() -> None:
    assert f"boto3>={PIN}," in (ROOT / "pyproject.toml").read_text()
    assert (PIN_RELEASED - RELEASED).days >= SHORTEST_DAYS
    assert f"boto3=={VERSION} botocore=={VERSION}" in (ROOT / ".ci" / "run").read_text()


@needs(SDK.exists(), f"boto3 and botocore {VERSION} in {SDK.relative_to(ROOT)}, which .ci/run installs")
def test_every_handler_runs_with_an_older_sdk(run: dict[str, Any], record_property: Any) -> None:
    assert run["version"] == VERSION
    made = {(folder, service, operation) for folder, service, operation in run["calls"]}
    missing = [
        f"{name_of(folder)}: {service} {operation}"
        for folder in handlers()
        for service, operation in called(folder)
        if (name_of(folder), service, operation) not in made
    ]
    assert missing == [], "calls that no test of handlers makes"
    for folder, operations in sorted(Counter(folder for folder, _, _ in made).items()):
        print(f"{folder}: {operations} operations")
    record_property("operations", sorted({f"{service}:{operation}" for _, service, operation in made}))


@needs(SDK.exists(), f"boto3 and botocore {VERSION} in {SDK.relative_to(ROOT)}, which .ci/run installs")
def test_the_older_sdk_lacks_what_the_handler_brings() -> None:
    """Otherwise nothing would be shown by the run with it."""
    loader = Loader(include_default_search_paths=False)
    loader.search_paths.append(str(SDK / "botocore" / "data"))
    model = loader.load_service_model("sagemaker", "service-2")
    brought = json.loads((MODELS / "service-2.sdk-extras.json").read_text())["merge"]["operations"]
    assert brought
    assert not brought.keys() & model["operations"].keys()


def test_handlers_are_found_and_some_call_aws() -> None:
    handled = {name_of(folder): set(called(folder)) for folder in handlers()}
    assert len(handled) >= 10
    assert ("sagemaker", "ListClusterExtensions") in handled["hyperpod/cluster_extension/handler"]
    assert ("sagemaker", "ListClusterNodes") in handled["hyperpod/nodes_ready/handler"]


def without_documentation(model: Any) -> Any:
    """A part of a service model as the handler brings it."""
    if isinstance(model, list):
        return [without_documentation(item) for item in model]
    if not isinstance(model, dict):
        return model
    retained = {key: value for key, value in model.items() if key != "documentation" or not isinstance(value, str)}
    return {key: without_documentation(value) for key, value in retained.items()}


@pytest.mark.parametrize("name", ["service-2", "paginators-1"])
def test_the_models_that_a_handler_brings_are_those_of_the_pinned_sdk(name: str) -> None:
    model: Any = Loader().load_service_model("sagemaker", name)
    brought = json.loads((MODELS / f"{name}.sdk-extras.json").read_text())
    assert f"botocore {PIN}" in brought["source"]
    assert brought["merge"]
    for part, items in brought["merge"].items():
        assert items == {key: without_documentation(model[part][key]) for key in items}
