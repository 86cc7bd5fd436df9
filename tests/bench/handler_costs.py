"""What a Lambda function of ours costs before it does anything: its package, and the import of its handler."""

import argparse
import json
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from podwright.operations.programs.node import use_bundled_node
from table import Report, markdown, verdict
from timing import ROOT, measure_in_turn

CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"]
# What Lambda's Python runtime brings.
RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
MORE_THAN_BOTO3, PACKAGE_KIB = 0.3, 64


def packages(folder: Path) -> dict[str, tuple[Path, str]]:
    """The asset of each handler of ours in a synthesis of prod, and the module that Lambda imports."""
    use_bundled_node()
    context = CONTEXT | {"environment": "prod", "chart": "stand-in"}
    variables = {"CDK_OUTDIR": str(folder / "handlers"), "CDK_CONTEXT_JSON": json.dumps(context)}
    command = [sys.executable, str(ROOT / "bin" / "app.py")]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL, env=os.environ | variables)
    actual = {}
    for index in sorted((folder / "handlers").glob("asset.*/podwright/constructs/*/*/handler/index.py")):
        asset = index.parents[4]
        actual[index.parent.parent.name] = (asset, ".".join(index.relative_to(asset).with_suffix("").parts))
    return actual


def zipped(asset: Path, file: Path) -> int:
    """Bytes of the package as the CDK CLI uploads it."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in (each for each in asset.rglob("*") if each.suffix == ".py"):
            archive.write(path, path.relative_to(asset))
    return file.stat().st_size


def runtime(folder: Path) -> Path:
    """A folder with what Lambda's runtime brings and nothing else of this machine."""
    target = folder / "runtime"
    target.mkdir()
    for spec in filter(None, map(find_spec, RUNTIME)):
        source = Path(spec.origin or "")
        source = source.parent if source.name == "__init__.py" else source
        (target / source.name).symlink_to(source)
    return target


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Import times and package sizes of all handlers, beside what boto3 alone takes."""
    brought, actual = runtime(folder), packages(folder)

    def process(module: str, asset: Path | None = None) -> tuple[list[str], dict[str, str]]:
        path = [str(asset)] if asset else []
        program = f"import sys; sys.path[:0] = {[*path, str(brought)]}; import {module}"
        # As in the sandbox: no site-packages. Region and keys stand in for Lambda's.
        keys = {"AWS_DEFAULT_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        return [sys.executable, "-I", "-S", "-c", program], keys

    commands = {name: process(module, asset) for name, (asset, module) in actual.items()}
    timings = measure_in_turn({"": process("sys"), "boto3": process("boto3"), **commands}, runs=args.runs)
    limit = timings["boto3"].median + MORE_THAN_BOTO3
    rows, retained = (
        [["Python alone", "", str(timings[""]), "", ""], ["boto3", "", str(timings["boto3"]), "", ""]],
        True,
    )
    for name, (asset, _) in actual.items():
        size, seconds = zipped(asset, folder / f"{name}.zip") / 1024, timings[name].median
        good = seconds <= limit and size <= PACKAGE_KIB
        bounds = f"≤ boto3 + {MORE_THAN_BOTO3} s, ≤ {PACKAGE_KIB} KiB"
        rows.append([f"`{name}`", f"{size:.1f} KiB", str(timings[name]), bounds, verdict(not good, 0)])
        retained = retained and good
    return Report(markdown(["handler", "package", "import, median (range)", "limit", ""], rows), retained)
