"""How long a training on two real nodes takes to resume after each fault, and its goodput."""

import argparse
import os
import sys
from pathlib import Path

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

from elastic_story import grow, preempt, sandbox
from forked_commands import forked_commands

_VARIABLE = "PODWRIGHT_TEST_ASSEMBLIES"


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Play the story of the test once."""
    del args
    os.environ.setdefault(_VARIABLE, str(folder))
    (folder / "story").mkdir()
    with forked_commands(cdk_cli=False) as programs, sandbox(folder / "story", programs) as user:
        preempt(user)
        training = grow(user)
    goodput = training.goodput()
    rows = [[item.fault, f"{item.seconds:.0f} s", str(item.repeated)] for item in training.recoveries()]
    tables = markdown(["fault", "first step after", "steps taken again"], rows)
    whole = (
        f"Goodput of the job: {goodput.by_steps:.1%}, {goodput.done} steps of {goodput.possible:.0f} at "
        f"{training.run.pace:.2f} s a step; {goodput.lost_to_faults:.0f} s were lost to faults and "
        f"{goodput.lost_to_sizes:.0f} s to changes of its size. The recording rule of the page Goodput says "
        f"{goodput.recorded():.1%} of the same seconds."
    )
    return Report(f"{tables}\n\n{whole}", kept=True)
