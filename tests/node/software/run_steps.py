"""Runs the steps about software, and of the others none. Usage: run_steps.py BUNDLE ROOT."""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    bundle, root = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(bundle))
    sys.dont_write_bytecode = True
    steps, node, log, ours = (
        importlib.import_module(f"podwright_node.{name}")
        for name in ("runner.steps", "runner.node", "runner.log", "software.steps")
    )
    # What comes before them and is not the matter here.
    before = [steps.Step(name, lambda _: False, lambda _: True, lambda _: None) for name in ("name-resolution", "gpus")]
    with log.Log(root / "var/log/provision/podwright.jsonl") as opened:
        succeeded = steps.run([*before, *ours.STEPS], node.Node.here(root, bundle, opened))
    sys.exit(0 if succeeded else 1)
