"""Runs Slurm's steps of the bundle in the current folder, or those that are named, and prints their outcomes.

With `--die N` it is killed before the N-th thing that it would change or command that it would run; questions that it
asks do not count.
"""

import argparse
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, ".")
sys.dont_write_bytecode = True
from podwright_node.runner.lock import held  # noqa: E402
from podwright_node.runner.log import Log  # noqa: E402
from podwright_node.runner.node import Node  # noqa: E402
from podwright_node.runner.steps import run  # noqa: E402
from podwright_node.slurm.steps import STEPS  # noqa: E402

CHANGES = {"open", "os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rename", "shutil.rmtree", "subprocess.Popen"}
QUESTIONS = {"show", "squeue", "--version"}
LOG = Path("/var/log/provision/steps.jsonl")


def die_before(number: int) -> None:
    """Ends this process as a power cut would."""
    changes = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal changes
        if event not in CHANGES:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if event == "subprocess.Popen":
            words = arguments[1]
            if isinstance(words, (list, tuple)) and any(Path(str(word)).name in QUESTIONS for word in words):
                return
        elif str(arguments[0]).startswith(("/var/log/", "/dev/", "/run/podwright.lock")):
            return
        changes += 1
        if changes == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--die", type=int, default=0)
parser.add_argument("names", nargs="*")
args = parser.parse_args()
names = args.names or [step.name for step in STEPS]
steps = [
    dataclasses.replace(step, needs=tuple(need for need in step.needs if need in names))
    for step in STEPS
    if step.name in names
]
LOG.unlink(missing_ok=True)
with Log(LOG) as log, held(Path("/run/podwright.lock")):
    if args.die:
        die_before(args.die)
    run(steps, Node.here(Path("/"), Path.cwd(), log))
events = [json.loads(line) for line in LOG.read_text().splitlines()]
summary = next(event for event in reversed(events) if event["event"] == "summary")
print(json.dumps({name: step["outcome"] for name, step in summary["steps"].items()}))
