"""A whole boot with benchmarks: the published scripts, the real driver, and a stand-in for the AWS CLI."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema

from benchmark_services import record
from fake_node import FakeNode, make_node, publish
from podwright.planning.node.benchmark_results import benchmark_schema

INSTANCE = "i-0123456789abcdef0"
AWS = """
store="${PODWRIGHT_ROOT}/s3"
mkdir -p "${store}"
declare -A given
while (($#)); do
  case "$1" in --*) given[$1]="${2:-}" ;; esac
  last="$1"
  shift
done
file="${store}/${given[--key]:-${given[--prefix]:-none}}"
case "$(tr '\\0' ' ' </proc/$$/cmdline)" in
  *list-objects-v2*) [[ ! -f "${file}" ]] || echo "{\\"Contents\\": [{\\"Key\\": \\"${given[--prefix]}\\"}]}" ;;
  *get-object*) cp "${file}" "${last}"; echo '{"ETag": "one"}' ;;
  *put-object*) mkdir -p "${file%/*}"; cp "${given[--body]}" "${file}" ;;
  *describe-cluster-node*) echo '{"NodeDetails": {"InstanceStatus": {"Status": "Pending"}}}' ;;
esac
"""


def measured_node(folder: Path, policy: str, result: dict[str, Any] | None = None) -> FakeNode:
    """A node whose group has benchmarks. With `result` that is what its kernels say."""
    node = make_node(folder, "ml.m5.4xlarge", benchmarks=policy)
    facts = json.loads((node.bundle / "node.json").read_text())
    facts["benchmarks"] = {
        "mode": "quick",
        "results_uri": "s3://sagemaker-test/test/benchmarks",
        "max_replacements": 2,
        "window_days": 7,
        "continuous": True,
    }
    publish(node.bundle, facts)
    if result is not None:
        shutil.rmtree(node.bundle / "podwright_benchmarks")
        counting = "open(str(root / 'runs'), 'a').write('x')"
        text = f"def run(facts, kind, mode, bundle, root, say):\n    {counting}\n    return {result!r}\n"
        (node.bundle / "podwright_benchmarks.py").write_text(text)
        (node.bundle / "manifest.json").write_text(manifest(node.bundle))
    node.program("aws", AWS)
    return node


def manifest(bundle: Path) -> str:
    """The manifest of what lies in the bundle now."""
    files = {
        str(file.relative_to(bundle)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in bundle.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }
    return json.dumps({"version": 1, "digest": "0" * 64, "files": files})


def kept(node: FakeNode) -> dict[str, Any]:
    actual = json.loads((node.root / "var/lib/podwright/benchmarks.json").read_text())
    jsonschema.Draft202012Validator(benchmark_schema()).validate(actual)
    assert json.loads((node.root / f"s3/test/benchmarks/results/workers/{INSTANCE}.json").read_text()) == actual
    return actual


def test_a_node_is_measured_after_all_other_steps_and_publishes(folder: Path) -> None:
    node = measured_node(folder, "report")
    assert node.shell("on_create").returncode == 0, node.log
    actual = kept(node)
    assert (actual["group"], actual["instance_id"], actual["decision"]["action"]) == ("workers", INSTANCE, "keep")
    assert [event["step"] for event in node.events if event["event"] == "changed"][-1] == "benchmarks"
    (line,) = [line for line in node.log.splitlines() if line.startswith('{"_aws"') and "podwright/benchmarks" in line]
    assert json.loads(line)["InstanceGroup"] == "workers"
    assert node.shell("on_create").returncode == 0
    assert node.summary["steps"]["benchmarks"]["outcome"] == "unchanged"
    readable = (node.root / "var/lib/podwright/benchmarks.json").stat().st_mode & 0o777
    assert readable == 0o644, "the pod that makes labels runs as nobody"
    assert (node.root / "var/lib/podwright").stat().st_mode & 0o055 == 0o055


def test_a_gate_fails_the_boot_with_the_measurement_in_the_last_lines(folder: Path) -> None:
    node = measured_node(folder, "gate", record("fail"))
    for _ in range(2):
        assert node.shell("on_create").returncode == 1
        output = node.log.splitlines()[-2]
        assert "error step=benchmarks" in output
        assert "the benchmarks failed: gemm_bf16[0] (700.0 is fail)" in output
        assert "HyperPod replaces this node (replacement 1 of at most 2 within 7 days)" in output
    assert (node.root / "runs").read_text() == "x", "a node is measured once"
    assert kept(node)["decision"]["action"] == "exit"
    claims = json.loads((node.root / "s3/test/benchmarks/replacements/workers/2026-11.json").read_text())["claims"]
    assert [claim["instance_id"] for claim in claims] == [INSTANCE]


def test_a_node_that_reports_comes_up_whatever_was_measured(folder: Path) -> None:
    node = measured_node(folder, "report", record("fail"))
    assert node.shell("on_create").returncode == 0, node.log
    assert kept(node)["verdict"] == "fail"
