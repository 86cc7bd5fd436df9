"""Sets a node up: `python3 -m podwright_node`, from the folder that on_create.sh lies in."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .benchmarking import step as benchmarks
from .devices import efa, gdrcopy, gpus, neuron
from .host import clock, limits, log_rotation, name_resolution, network, ssh
from .runner.bundle import verify
from .runner.failure import Failure
from .runner.lock import held
from .runner.log import Log
from .runner.node import Node
from .runner.steps import run
from .slurm import steps
from .software import steps as software_steps
from .storage import container_storage as storage
from .storage import homes, lnet, local_nvme, shared_files

SET_UP = (
    network.STEP,
    name_resolution.STEP,
    clock.STEP,
    limits.STEP,
    ssh.STEP,
    log_rotation.STEP,
    local_nvme.STEP,
    storage.STEP,
    efa.STEP,
    efa.USE,
    lnet.STEP,
    shared_files.LUSTRE,
    shared_files.HOME,
    homes.STEP,
    gpus.GPUS,
    gpus.PERSISTENCE,
    gpus.FABRIC,
    gpus.IMEX_STEP,
    gdrcopy.STEP,
    neuron.STEP,
    neuron.TOOLS_STEP,
    *steps.STEPS,
    *software_steps.STEPS,
)
STEPS = (*SET_UP, benchmarks.after(SET_UP))


def main(arguments: list[str] | None = None) -> int:
    """Run every step that applies to this node; returns the exit code."""
    parser = argparse.ArgumentParser(prog="podwright_node", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"), help="root of the file system")
    root = parser.parse_args(arguments).root
    bundle = Path(__file__).resolve().parent.parent
    try:
        with Log(root / "var/log/provision/podwright.jsonl") as log:
            try:
                with held(root / "run/podwright.lock"):
                    verify(bundle)
                    return 0 if run(STEPS, Node.here(root, bundle, log)) else 1
            except (Failure, OSError) as error:
                log.say("error", step="start", error=str(error))
                return 1
    except OSError as error:
        # Not even the log can be written: the root volume is full or broken.
        print(f"podwright: error step=start error={str(error)!r}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
