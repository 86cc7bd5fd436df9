"""Runs some steps of the published scripts, with those that they need: only.py BUNDLE ROOT STEP …"""

import importlib
import sys

if __name__ == "__main__":
    bundle, root, *names = sys.argv[1:]
    sys.path.insert(0, bundle)
    node_main = importlib.import_module("podwright_node.__main__")
    known = {step.name: step for step in node_main.STEPS}
    wanted: set[str] = set()
    while names:
        name = names.pop()
        wanted.add(name)
        names += known[name].needs
    node_main.STEPS = tuple(step for step in node_main.STEPS if step.name in wanted)
    sys.exit(node_main.main(["--root", root]))
