"""What a synthesis costs, against the CDK alone with the same settings, and how that grows with instance groups."""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from podwright.operations.programs.node import use_bundled_node
from podwright.stacks.feature_flags import FEATURE_FLAGS
from table import Report, markdown, verdict
from timing import ROOT, Timing, measure_in_turn, run_once

HERE: Final = Path(__file__).parent
APP: Final = ROOT / "bin" / "app.py"
GROUP: Final = "  {name}: {{instance_type: ml.g5.8xlarge, count: 1, zone: usw2-az2}}\n"
VALIDATED: Final = {"baseline": 1.6, "empty app": 3.2}
"""Limits of prod's processor seconds as a multiple of the yardstick's, with the validator of templates."""
UNVALIDATED: Final = {"baseline": 2.7, "empty app": 6.0}
"""The same without the validator."""
GROWTH: Final = 1.3
"""Limit of 50 groups as a multiple of 3 groups, without the validator."""
PLAIN: Final[Mapping[str, str]] = {"CDK_VALIDATION": "false"}


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The comparisons with their limits, and the parts of one synthesis."""
    use_bundled_node()
    timings = _timings(folder, args.runs)
    times = [
        [name, timing.processor_text, f"{timing.median:.2f} s", f"{timing.peak_mib:.0f} MiB"]
        for name, timing in timings.items()
    ]
    ratios = [
        (f"prod / {name}, {kind}", f"prod, {kind}", f"{name}, {kind}", limit)
        for kind, limits in (("validated", VALIDATED), ("not validated", UNVALIDATED))
        for name, limit in limits.items()
    ]
    ratios.append(
        ("50 groups / 3 groups, not validated", "50 groups, not validated", "3 groups, not validated", GROWTH)
    )
    measured = [
        (name, timings[over].processor / timings[under].processor, limit) for name, over, under, limit in ratios
    ]
    cells = [[name, f"{value:.2f}", f"≤ {limit}", verdict(value, limit)] for name, value, limit in measured]
    tables = [
        markdown(["synthesis", "processor time, median (range)", "elapsed, median", "largest process"], times),
        markdown(["ratio of processor times", "measured", "limit", ""], cells),
        _parts(folder),
    ]
    return Report("\n\n".join(tables), all(value <= limit for _, value, limit in measured))


def _timings(folder: Path, runs: int) -> dict[str, Timing]:
    """Costs of prod, the baseline and the empty app, with and without the validator, and of prod with more groups."""
    finished = {"assembly": str(folder / "prod" / "assembly-prod"), "account": "111122223333", "region": "us-west-2"}
    apps = {
        "prod": _app(APP, folder / "prod", environment="prod", chart="stand-in"),
        "baseline": _app(HERE / "baseline_app.py", folder / "baseline", **finished),
        "empty app": _app(HERE / "empty_app.py", folder / "empty"),
    }
    commands = {f"{name}, validated": app for name, app in apps.items()}
    for count in (0, 47):
        file = _with_groups(folder, count)
        apps[f"{count + 3} groups"] = _app(APP, folder / file.stem, environment=str(file), chart="stand-in")
    commands |= {f"{name}, not validated": (command, {**env, **PLAIN}) for name, (command, env) in apps.items()}
    return measure_in_turn(commands, runs=runs)


def _app(script: Path, outdir: Path, **context: str) -> tuple[list[str], Mapping[str, str]]:
    """The command that synthesizes, and its variables: the same Node and the same flags of the CDK for every app."""
    return [sys.executable, str(script)], {
        "CDK_OUTDIR": str(outdir),
        "CDK_CONTEXT_JSON": json.dumps({**FEATURE_FLAGS, **context}),
        "NODE_OPTIONS": _node_options(),
    }


def _node_options() -> str:
    """The options of Node that podwright's app sets for itself. Raises ValueError when it sets none."""
    match = re.search(r'"NODE_OPTIONS", "([^"]+)"', APP.read_text())
    if match is None or "gc.disable()" not in APP.read_text():
        raise ValueError(f"{APP} sets other options than its yardsticks: make them the same")
    return match[1]


def _with_groups(folder: Path, count: int) -> Path:
    """Write prod with `count` more groups of one instance each, in a VPC that has room for them."""
    text = (ROOT / "environments" / "prod.yaml").read_text()
    file = folder / f"groups-{count}.yaml"
    section, more = "instance_groups:\n", "".join(GROUP.format(name=f"g{number}") for number in range(count))
    file.write_text(text.replace(section, section + more))
    return file


def _parts(folder: Path) -> str:
    """The table of the parts of one synthesis of prod, once with and once without the validator."""
    plain, validated = _profile(folder, "plain", PLAIN), _profile(folder, "validated", {})
    rows = [[part, f"{seconds:.2f} s"] for part, seconds in plain.items()]
    rows += [
        ["whole synthesis, not validated", f"{sum(plain.values()):.2f} s"],
        ["validation", f"{sum(validated.values()) - sum(plain.values()):.2f} s"],
    ]
    return markdown(["part of one synthesis of prod, Python and Node", "processor time"], rows)


def _profile(folder: Path, name: str, env: Mapping[str, str]) -> dict[str, float]:
    """Processor seconds by part."""
    result = folder / f"{name}.json"
    command, variables = _app(HERE / "profiled_app.py", folder / name, environment="prod", chart="stand-in")
    cost = run_once([*command, str(result)], {**variables, **env}, ROOT)
    parts = json.loads(result.read_text())
    return {**parts, "starting and ending Python and Node": cost.processor - sum(parts.values())}
