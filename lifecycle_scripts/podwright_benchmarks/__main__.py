"""Benchmarks by hand: `python3 -m podwright_benchmarks`, from the folder of the published scripts.

run INSTANCE_TYPE [--mode thorough]     measure this node and print the record
job INSTANCE_TYPE                       NCCL's collectives between several nodes, as one task on each of them
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .job import job
from .run import run


def main(arguments: list[str] | None = None) -> int:
    """Run and print; the exit code is 1 when something failed."""
    parser = argparse.ArgumentParser(
        prog="podwright_benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("run", "job"))
    parser.add_argument("instance_type", help="such as ml.p5en.48xlarge")
    parser.add_argument("--mode", choices=("quick", "thorough"), default="quick")
    parser.add_argument("--root", type=Path, default=Path("/"), help="root of the file system")
    specified = parser.parse_args(arguments)
    bundle = Path(__file__).resolve().parent.parent
    try:
        facts = json.loads((bundle / "node.json").read_text(encoding="utf-8"))
        known = sorted(facts["instance_types"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{bundle / 'node.json'} does not describe the cluster ({error}); use the published folder")
    if specified.instance_type not in known:
        # It would measure nothing, and call that skipped.
        parser.error(f"this cluster has no {specified.instance_type}; it has {', '.join(known)}")
    action = run if specified.action == "run" else job
    record = action(facts, specified.instance_type, specified.mode, bundle, specified.root, _say)
    print(json.dumps(record, indent=1))
    return 1 if record["verdict"] == "fail" else 0


def _say(event: str, **facts: object) -> None:
    print(event, json.dumps(facts), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
