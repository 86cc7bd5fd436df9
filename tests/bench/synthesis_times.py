"""How long a synthesis takes, against what the CDK itself takes, and how that grows with the number of groups."""

import argparse
import json
import os
import pstats
import subprocess
import sys
from pathlib import Path

from podwright.operations.programs.node import use_bundled_node
from table import Report, markdown, verdict
from timing import ROOT, Timing, measure_in_turn

HERE = Path(__file__).parent
CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"]
GROUP = "  {name}: {{instance_type: ml.g5.8xlarge, count: 1, zone: usw2-az2}}\n"


def _app(script: Path, outdir: Path, **context: str) -> tuple[list[str], dict[str, str]]:
    """The command that synthesizes, and its variables."""
    variables = {"CDK_OUTDIR": str(outdir), "CDK_CONTEXT_JSON": json.dumps(CONTEXT | context)}
    return [sys.executable, str(script)], variables


def _with_groups(folder: Path, count: int) -> Path:
    """prod with `count` groups more of one instance each, in a VPC that has room for them."""
    text = (ROOT / "environments" / "prod.yaml").read_text()
    file = folder / f"groups-{count}.yaml"
    section, more = "instance_groups:\n", "".join(GROUP.format(name=f"g{number}") for number in range(count))
    file.write_text(text.replace(section, section + more))
    return file


def compare(folder: Path, runs: int) -> dict[str, Timing]:
    """Whole-process timings of prod, the mechanical baseline and an empty app, and of prod with 3 and 50 groups."""
    use_bundled_node()
    app = ROOT / "bin" / "app.py"
    finished = {"assembly": str(folder / "prod" / "assembly-prod"), "account": "111122223333", "region": "us-west-2"}
    apps = {
        "prod": _app(app, folder / "prod", environment="prod", chart="stand-in"),
        "baseline": _app(HERE / "baseline_app.py", folder / "baseline", **finished),
        "empty": _app(HERE / "empty_app.py", folder / "empty"),
    }
    for count in (0, 47):
        file = _with_groups(folder, count)
        apps[f"{count + 3} groups"] = _app(app, folder / file.stem, environment=str(file), chart="stand-in")
    return measure_in_turn(apps, runs=runs)


def where_time_goes(folder: Path) -> list[tuple[str, float]]:
    """Seconds of one synthesis of prod by part, from a profile (which itself slows Python code down a little)."""
    profile = folder / "prod.profile"
    command = [sys.executable, "-m", "cProfile", "-o", str(profile), str(ROOT / "bin" / "app.py")]
    context = CONTEXT | {"environment": "prod", "chart": "stand-in"}
    subprocess.run(
        command,
        cwd=ROOT,
        check=True,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"CDK_OUTDIR": str(folder / "p"), "CDK_CONTEXT_JSON": json.dumps(context)},
    )
    stats = pstats.Stats(str(profile)).stats  # pyrefly: ignore[missing-attribute]

    def cumulative(file: str, function: str) -> float:
        return sum(row[3] for (path, _, name), row in stats.items() if path.endswith(file) and name == function)

    parts = [
        ("importing the CDK and podwright", sum(row[2] for row in stats.values()) - cumulative("bin/app.py", "main")),
        ("reading the environment", cumulative("config/loading/project.py", "load")),
        ("rules", cumulative("planning/rules/project/project.py", "all_findings")),
        ("what follows from it", cumulative("operations/artifacts/resolved.py", "resolved_in")),
        ("constructs and stacks", cumulative("stacks/stage.py", "__init__")),
        ("app.synth: templates, assets, validation", cumulative("aws_cdk/__init__.py", "synth")),
    ]
    return [*parts, ("whole process", max(row[3] for row in stats.values()))]


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The comparisons with their limits, and the table of where the time goes."""
    timings = compare(folder, args.runs)
    prod = timings["prod"].median
    ratios = [
        ("prod / baseline (CfnInclude of the same templates and assets)", prod / timings["baseline"].median, 1.6),
        ("prod / empty CDK app", prod / timings["empty"].median, 3.2),
        ("50 groups / 3 groups", timings["50 groups"].median / timings["3 groups"].median, 1.3),
    ]
    times = [[name, str(timing), f"{timing.peak_mib:.0f} MiB"] for name, timing in timings.items()]
    limits = [[name, f"{value:.2f}", f"≤ {limit}", verdict(value, limit)] for name, value, limit in ratios]
    parts = [[name, f"{seconds:.2f} s"] for name, seconds in where_time_goes(folder)]
    tables = [
        markdown(["synthesis, validated", "median (range)", "largest process"], times),
        markdown(["ratio", "measured", "limit", ""], limits),
        markdown(["part of one synthesis of prod (profiled)", "time"], parts),
    ]
    return Report("\n\n".join(tables), all(value <= limit for _, value, limit in ratios))
