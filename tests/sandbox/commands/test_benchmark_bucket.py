"""The AWS CLI of HyperPod's images against S3: the count of replacements, results, and `podwright bench show`."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmark_services import URI, BenchmarkServices, record
from needs import require
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.lifecycle_scripts.podwright_node.benchmarking.replacements import claim
from podwright.lifecycle_scripts.podwright_node.benchmarking.step import measure
from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from podwright.lifecycle_scripts.podwright_node.runner.object_store import NEW, Changed, Store
from podwright.operations.aws import sandbox_server as server
from podwright.operations.benchmarks import command as bench

Aws = Callable[[str], Any]


@pytest.fixture
def services(sandbox: server.Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BenchmarkServices]:
    """A world for nodes that call the real CLI, which talks to the sandbox."""
    for name, value in sandbox.environment("us-west-2").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    require(shutil.which("aws"), "the AWS CLI, which `bin/setup test` installs")
    with closing(BenchmarkServices(tmp_path)) as made:
        yield made


@pytest.fixture
def store(services: BenchmarkServices, aws: Aws, tmp_path: Path) -> Store:
    """Objects of a new prefix."""
    bucket = f"sagemaker-{tmp_path.name.replace('_', '-')}"
    aws("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    return Store(real(services), URI.replace("sagemaker-test", bucket))


def real(services: BenchmarkServices, **provided: Any) -> Node:
    """A node of the world that runs commands instead of asking the world."""
    made = services.node(**provided)
    fields = {name: getattr(made, name) for name in Node.__dataclass_fields__}
    return Node(**fields)


def test_writes_over_what_was_read_and_nothing_else(store: Store) -> None:
    assert store.read("a.json") is None
    store.write("a.json", {"first": 1}, over=NEW)
    with pytest.raises(Changed):
        store.write("a.json", {"second": 1}, over=NEW)
    entry = store.read("a.json")
    assert entry
    assert entry.value == {"first": 1}
    store.write("a.json", {"third": 1}, over=entry.tag)
    with pytest.raises(Changed):
        store.write("a.json", {"fourth": 1}, over=entry.tag)
    store.write("a.json", {"fifth": 1})
    again = store.read("a.json")
    assert again
    assert again.value == {"fifth": 1}


def test_a_name_that_begins_another_is_not_found(store: Store) -> None:
    store.write("a.json.old", {}, over=NEW)
    assert store.read("a.json") is None


def test_a_missing_bucket_is_a_failure(store: Store) -> None:
    with pytest.raises(Failure, match="NoSuchBucket"):
        Store(store.node, "s3://sagemaker-nowhere/prod").read("a.json")


def test_no_more_places_are_given_than_there_are(store: Store) -> None:
    """What happens when two nodes write at once is tested in memory, where the order can be chosen."""

    def ask(number: int) -> bool:
        return claim(store, group="h200", thresholds="1", instance_id=f"i-{number}", most=2, window_days=7).granted

    assert [ask(number) for number in (0, 1, 2, 0)] == [True, True, False, True]
    entry = store.read("replacements/h200/1.json")
    assert entry
    assert [item["instance_id"] for item in entry.value["claims"]] == ["i-0", "i-1"]


def test_a_node_publishes_and_the_command_shows_it(
    store: Store,
    services: BenchmarkServices,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    services.drive(monkeypatch, lambda *_: record("warn"))
    for instance in ("i-0123456789abcdef0", "i-0123456789abcdef1"):
        measure(real(services, instance=instance, results_uri=store.uri))
    environment = Project.at(Path(__file__).parents[3]).load("prod").environment
    bucket = store.uri.split("/")[2]
    storage = environment.storage.model_copy(
        update={"buckets": environment.storage.buckets.model_copy(update={"lifecycle": bucket})}
    )
    environment = environment.model_copy(update={"storage": storage})
    runs = bench.published(environment, SimpleNamespace(client=aws))
    assert [run.instance_id for run in runs] == ["i-0123456789abcdef0", "i-0123456789abcdef1"]
    assert {run.decision.reason for run in runs if run.decision} == {"the verdict is warn"}
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
    assert [json.loads(line)["warned"] for line in lines] == [[1], [1]]


def test_without_results_the_command_says_how_they_come(aws: Aws) -> None:
    environment = Project.at(Path(__file__).parents[3]).load("prod").environment
    with pytest.raises(
        CommandError, match=r"no node has published results below s3://sagemaker-prod-.*/prod/benchmarks/"
    ):
        bench.published(environment, SimpleNamespace(client=aws))
