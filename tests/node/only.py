"""Runs some steps of the published scripts, with those that they need: only.py [--serial] BUNDLE ROOT STEP …

With --serial one after another, each after those that it needs.
"""

import argparse
import importlib
import sys
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("bundle")
    parser.add_argument("root")
    parser.add_argument("steps", nargs="+")
    args = parser.parse_args()
    sys.path.insert(0, args.bundle)
    node_main: Any = importlib.import_module("podwright_node.__main__")
    known = {step.name: step for step in node_main.STEPS}
    names, wanted = list(args.steps), set[str]()
    while names:
        name = names.pop()
        wanted.add(name)
        names += known[name].needs
    steps = [known[name] for name in known if name in wanted]
    if args.serial:
        order = list(TopologicalSorter({step.name: step.needs for step in steps}).static_order())
        befores = dict(zip(order[1:], order, strict=False))
        steps = [replace(step, needs=(befores[step.name],) if step.name in befores else ()) for step in steps]
    node_main.STEPS = tuple(steps)
    sys.exit(node_main.main(["--root", args.root]))
