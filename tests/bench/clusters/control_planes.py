"""What control planes of the sandbox cost: seconds until they are ready, and memory."""

import argparse
import sys
from pathlib import Path
from typing import Final

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

from control_plane_cost import rows

ENVIRONMENTS: Final = 4
NODES: Final = 1000


def report(folder: Path, args: argparse.Namespace) -> Report:
    """One run. Each environment has a cluster with the operators of engine hyperpod and HyperPod's chart."""
    header = ["control planes", "ready after", "resident", "kube-apiserver", "the others"]
    return Report(markdown(header, rows(folder, ENVIRONMENTS, NODES)), kept=True)
