"""Write a report of an environment: one HTML file that needs no network, no script and no account.

The report has an architecture drawing, findings, quotas, cost and permissions. --live adds the state of the cluster and
its benchmarks, --changes the effects of a deployment. --drawing writes the drawing alone, as SVG.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.findings import Finding
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.simulation.assumptions import Assumptions
from ...planning.simulation.traces.trace import latest
from ..arguments import add_date, add_name, load
from ..aws.account import is_sandboxed
from ..benchmarks.command import parsed
from ..cdk.app import environment_context
from ..cdk.inputs import SynthesisInputs
from ..cdk.progress import Progress
from ..cdk.synthesis import assembly_of
from ..effects.quota_effect import trace_file
from ..environments.checked import stop_on_errors
from ..environments.costs import today
from ..output.console import REPORTS, from_here, write_file, write_json, write_line
from ..simulation.decisions import decide
from ..simulation.document import Simulation
from ..simulation.policies import policy_of
from ..simulation.run import simulation
from ..simulation.trace_files import trace_of
from .architecture import architecture
from .assembly import Assembly, read_assembly
from .drawing import drawing
from .drawing_file import drawing_file
from .live import observed
from .page import document, page
from .scene import Scene


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright report`."""
    add_name(parser, required=False)
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"the file (default: {REPORTS}/podwright-report-ENV.html)"
    )
    parser.add_argument("--drawing", action="store_true", help="write the drawing alone, as SVG")
    parser.add_argument(
        "--json", action="store_true", help="print the content of the report as JSON, and write no file"
    )
    parser.add_argument(
        "--assembly", metavar="DIR", type=Path, help="use the templates in this folder, such as cdk.out"
    )
    parser.add_argument("--changes", metavar="FILE", type=Path, help="change set of `podwright diff ENV --json`")
    parser.add_argument(
        "--benchmarks", metavar="FILE", type=Path, nargs="+", default=[], help="benchmark results of nodes"
    )
    parser.add_argument(
        "--live", action="store_true", help="also read the cluster, its training plans, benchmarks and changes"
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="with --live: use the sandbox instead of the account in the file"
    )
    parser.add_argument(
        "--trace",
        metavar="WHERE",
        help="simulate this work: a file, `metrics` or a Prometheus server (default: traces/ENV.*)",
    )
    parser.add_argument("--days", metavar="N", type=float, default=30.0, help="days of history to read (default: 30)")
    add_date(parser, "date of the report")


def run(args: argparse.Namespace) -> int:
    """Write the report, the drawing or the data."""
    loaded = load(args)
    findings = stop_on_errors(loaded)
    assembly = _assembly(args, loaded)
    if args.drawing:
        return _draw(args, loaded, assembly)
    result = document(_scene(args, loaded, findings, assembly))
    if args.json:
        write_json(result)
        return 0

    out = args.out or from_here(args.project / REPORTS / f"podwright-report-{loaded.environment.name}.html")
    text = page(result)
    write_file(out, text, option="--out")
    write_line(f"{out}: {len(text.encode()) / 1024:,.0f} KiB")
    return 0


def _draw(args: argparse.Namespace, loaded: LoadedEnvironment, assembly: Assembly) -> int:
    environment = loaded.environment
    # Without --date no day is marked, so that a drawing in version control changes with the environment alone.
    out = args.out or from_here(args.project / REPORTS / f"podwright-drawing-{environment.name}.svg")
    write_file(
        out, drawing_file(drawing(architecture(environment, assembly), environment.name, args.date)), option="--out"
    )
    write_line(f"{out}: the architecture of {environment.name}")
    return 0


def _assembly(args: argparse.Namespace, loaded: LoadedEnvironment) -> Assembly:
    if args.assembly:
        return read_assembly(args.assembly, loaded.environment.name)
    environment = loaded.environment
    context = environment_context(args.project, args.environment, environment)
    if is_sandboxed(environment, args.sandbox):
        context |= {"chart": "stand-in"}
    # The report shows no charts, so the app may use stand-ins for those that are not fetched.
    with assembly_of(SynthesisInputs.of(args.project, loaded, context), Progress()) as stored:
        return read_assembly(stored.folder, environment.name)


def _scene(args: argparse.Namespace, loaded: LoadedEnvironment, findings: list[Finding], assembly: Assembly) -> Scene:
    """What was asked for, collected."""
    runs = [parsed(_text(file), str(file)) for file in args.benchmarks]
    scene = Scene(
        loaded,
        findings,
        assembly,
        args.date or today(),
        benchmarks=runs,
        changes=_changes(args.changes, loaded),
        work=_work(args, loaded.environment),
    )
    if not args.live:
        return scene
    return observed(scene, args.project, args.environment, args.sandbox, Progress())


def _work(args: argparse.Namespace, environment: Environment) -> Simulation | None:
    """The work of the last days under the quotas of the file, where there is a trace."""
    where = args.trace or trace_file(args.project, environment)
    if where is None:
        return None
    policy = policy_of(environment, environment_types(environment.instance_types))
    trace = latest(trace_of(str(where), environment, args.project, args.days), args.days)
    return simulation([policy], trace, decide, Assumptions())


def _changes(file: Path | None, loaded: LoadedEnvironment) -> dict[str, Any] | None:
    """The document of `podwright diff`. Raises CommandError where it is none, or of another environment."""
    if file is None:
        return None
    # Not to this file: it may be another one by mistake.
    desired = f"`podwright diff {loaded.environment.name} --json --out changes.json` writes one"
    try:
        result = json.loads(_text(file))
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}", desired, 2) from None
    if not isinstance(result, dict) or not isinstance(result.get("stacks"), list):
        raise CommandError(f"{file} is not a list of changes: it has no `stacks`", desired, 2)
    if result.get("environment") != loaded.environment.name:
        raise CommandError(f"{file} is of {result.get('environment')}, not of {loaded.environment.name}", desired, 2)
    return result


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CommandError(f"{file} cannot be read: {message}", code=2) from None
