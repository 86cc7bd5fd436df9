"""`podwright bench show`: results of nodes as tables, as JSON and as a picture."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from benchmark_services import measurement, record
from podwright.operations.benchmarks.picture import picture
from podwright.operations.benchmarks.rows import faults, rows
from podwright.operations.cli import main
from podwright.planning.node.benchmark_results import BenchmarkResults, benchmark_schema

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def gpus(*values: float, **provided: Any) -> list[dict[str, Any]]:
    """A value for each GPU; below 600 it fails, below 650 it warns."""
    outcomes = ("fail" if value < 600 else "warn" if value < 650 else "pass" for value in values)
    return [
        measurement(outcome, value, devices=[device], **provided)
        for device, (value, outcome) in enumerate(zip(values, outcomes, strict=True))
    ]


def results(*measurements: dict[str, Any], **provided: Any) -> BenchmarkResults:
    verdict = "fail" if any(item["outcome"] == "fail" for item in measurements) else "pass"
    return BenchmarkResults.model_validate(record(verdict, measurements, **provided))


def file(folder: Path, *measurements: dict[str, Any], name: str = "benchmarks.json", **provided: Any) -> str:
    path = folder / name
    path.write_text(results(*measurements, **provided).model_dump_json())
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["bench", "show", *arguments]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_the_published_schema_is_this_one(request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs/benchmark.schema.json"
    if request.config.getoption("--update-snapshots"):
        path.write_text(json.dumps(benchmark_schema(), indent=2) + "\n")
    assert json.loads(path.read_text()) == benchmark_schema()
    jsonschema.Draft202012Validator.check_schema(benchmark_schema())


def test_the_schema_takes_what_nodes_write_and_nothing_else() -> None:
    validator = jsonschema.Draft202012Validator(benchmark_schema())
    validator.validate(record())
    decided = {"policy": "gate", "action": "exit", "reason": "replacement 1"}
    validator.validate(record("fail", decision=decided))
    for wrong in ({"version": 2}, {"verdict": "good"}, {"more": 1}, {"decision": decided | {"action": "reboot"}}):
        assert not validator.is_valid(record() | wrong), wrong


def test_every_field_of_the_schema_is_described() -> None:
    schema = benchmark_schema()
    for definition in (schema, *schema["$defs"].values()):
        assert definition["additionalProperties"] is False
        assert all(field.get("description") for field in definition["properties"].values())


def test_a_row_brings_devices_of_all_nodes_together() -> None:
    runs = [
        results(*gpus(700, 690, 710, 640), instance_id="i-1"),
        results(*gpus(700, 590), instance_id="i-2"),
        results(*gpus(900), instance_id="i-3", group="other"),
    ]
    row, other = rows(runs)
    assert (row.group, other.group) == ("h200", "other")
    assert [point.value for point in row.points] == [590, 640, 690, 700, 700, 710]
    assert row.points[0].where == "i-2 [1]"
    assert row.outcome == "fail"
    assert row.middle == 695
    assert row.spread_percent == pytest.approx(120 / 695 * 100)
    assert other.spread_percent is None


def test_the_worst_latency_is_the_largest() -> None:
    (row,) = rows([results(*gpus(700, 900, higher_is_better=False, unit="us", fail_below=None))])
    assert [point.value for point in row.points] == [900, 700]
    assert row.line("warn_below") == 650


def test_what_many_nodes_say_alike_is_said_once() -> None:
    missing = measurement("skip", None, devices=[], reason="no programs")
    runs = [results(missing, *gpus(590), instance_id=f"i-{number}") for number in range(3)]
    assert [(fault.outcome, fault.where, fault.reason) for fault in faults(runs)] == [
        ("fail", "gemm_bf16 [0] on 3 nodes", "590 is fail"),
        ("skip", "gemm_bf16 on 3 nodes", "no programs"),
    ]


def test_prints_verdict_decision_values_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = {"policy": "gate", "action": "replace", "reason": "replacement 1 of at most 2"}
    pairs = measurement(name="p2p", devices=[0, 1, 2, 3], value=None, outcome="skip", reason="one GPU")
    printed = shown(capsys, file(tmp_path, *gpus(700, 590, 1234.5), pairs, decision=decided))
    assert "replace: replacement 1 of at most 2" in printed
    (row,) = [line for line in printed.splitlines() if line.startswith("gemm_bf16")]
    lines = ("600", "650", "989", "71%")
    assert row.split() == ["gemm_bf16", "TFLOPS", "fail", "1", "3", "590", "700", "1,234", "92.1", "%", *lines]
    assert "fail gemm_bf16 [1] on i-0123456789abcdef0: 590 is fail" in printed
    assert "skip p2p [0…3] on i-0123456789abcdef0: one GPU" in printed


def test_of_many_nodes_shows_the_worst(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [file(tmp_path, *gpus(700 + n), name=f"{n}.json", instance_id=f"i-{n:03}") for n in range(60)]
    files.append(file(tmp_path, *gpus(500), name="bad.json", instance_id="i-bad"))
    lines = [line.strip() for line in shown(capsys, *files).splitlines()]
    assert lines[2].startswith("i-bad")
    assert "and 21 more" in lines


def test_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (actual,) = json.loads(shown(capsys, file(tmp_path, *gpus(700)), "--json"))
    assert BenchmarkResults.model_validate(actual) == results(*gpus(700))


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a node's results: the whole"),
        (json.dumps(record(version=7)), "is not a node's results: version: Input should be 1"),
        (json.dumps(record(results=[measurement("bad")])), "results.0.outcome"),
        (json.dumps(record(started="yesterday")), "started"),
    ],
)
def test_says_what_is_wrong_with_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, output: str
) -> None:
    path = tmp_path / "benchmarks.json"
    path.write_text(text)
    assert output in shown(capsys, str(path), code=1)


def test_wants_files_or_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name result files, or --environment ENV" in shown(capsys, code=2)
    assert "name result files" in shown(capsys, file(tmp_path, *gpus(700)), "--environment", "prod", code=2)
    assert "no such file" in shown(capsys, str(tmp_path / "missing"), code=2)


def drawn(*runs: BenchmarkResults) -> ElementTree.Element:
    return ElementTree.fromstring(picture(runs))


def texts(svg: ElementTree.Element) -> list[str]:
    return [item.text or "" for item in svg.iter(f"{SVG}text")]


def dots(svg: ElementTree.Element) -> list[ElementTree.Element]:
    return [item for item in svg.iter(f"{SVG}circle") if item.find(f"{SVG}title") is not None]


def placed(item: ElementTree.Element, top: float) -> Iterator[tuple[ElementTree.Element, float]]:
    """Every element with how far down it begins."""
    shift = re.search(r"translate\(0 ([\d.]+)\)", item.get("transform", ""))
    top += float(shift[1]) if shift else 0
    yield item, top
    for child in item:
        yield from placed(child, top)


def test_draws_a_dot_for_each_measurement_where_its_value_is() -> None:
    svg = drawn(results(*gpus(989, 494.5, 0), instance_id="i-1"))
    locations = {item.findtext(f"{SVG}title", "")[:14]: float(item.get("cx", "")) for item in dots(svg)}
    left, middle, right = locations["i-1 [2]: 0 TFL"], locations["i-1 [1]: 494.5"], locations["i-1 [0]: 989 T"]
    assert middle == pytest.approx((left + right) / 2)
    assert {"0 %", "50 %", "100 %", "Benchmarks of prod: 1 fail", "i-1 [2]"} <= set(texts(svg))


def test_lines_stand_at_their_values() -> None:
    svg = drawn(results(*gpus(600, 650)))
    at = sorted(float(item.get("cx", "")) for item in dots(svg))
    ticks = [float(line.get("x1", "")) for line in svg.iter(f"{SVG}line") if line.get("stroke-width") == "2"]
    assert sorted(ticks[:2]) == pytest.approx(at)


def test_everything_lies_inside_the_picture() -> None:
    odd = [
        measurement(value=5000.0),
        measurement(name="zero", value=0.0, bound=None, fail_below=None, warn_below=None),
        measurement(name="below", value=-3.0, bound=None),
        measurement("skip", None, name="none", reason="why " * 100),
        measurement(name="<&>", value=1.0, unit="us", higher_is_better=False, bound=None),
    ]
    svg = drawn(results(*odd), results(*odd, group="another", instance_id=None))
    width, height = float(svg.get("width", "")), float(svg.get("height", ""))
    assert len(dots(svg)) == 8
    for item, top in placed(svg, 0):
        for name, most in (("x", width), ("cx", width), ("x1", width)):
            assert 0 <= float(item.get(name, 0)) <= most
        for name in ("y", "cy", "y2"):
            assert 0 <= top + float(item.get(name, 0)) <= height
    assert "<&>" in texts(svg)


def test_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "results.svg"
    assert f"Picture: {target}" in shown(capsys, file(tmp_path, *gpus(700)), "--out", str(target))
    assert len(dots(ElementTree.fromstring(target.read_text()))) == 1
