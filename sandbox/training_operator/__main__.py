"""A stand-in for HyperPod's training operator, started with --kubeconfig=FILE and --port=PORT.

AWS's operator is closed. This one implements AWS's documentation on clusters of the sandbox with a control plane.
"""

import argparse
import asyncio
import logging
import os
import threading
from pathlib import Path

import kopf

from ..control_plane.operators import TIME_SCALE
from .reconciler import Reconciler
from .watches import Worklist, registry


def main() -> None:
    """Operate until SIGTERM or an unexpected error."""
    parser = argparse.ArgumentParser(prog="podwright.sandbox.training_operator")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True, help="answers 200 at /readyz")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    # At level INFO it logs every change of every object.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    # The client forwards ports in threads, which fail if a container does not listen yet.
    threading.excepthook = lambda failure: logging.info("%s: %s", failure.thread, failure.exc_value)
    time_scale = float(os.environ.get(TIME_SCALE, "1"))
    asyncio.run(_operate(options.kubeconfig, options.port, time_scale))


async def _operate(kubeconfig: Path, port: int, time_scale: float) -> None:
    reconciler = Reconciler(kubeconfig, time_scale)
    worklist = Worklist(reconciler.reconcile)
    survey = asyncio.create_task(worklist.survey(reconciler.jobs))
    survey.add_done_callback(worklist.end)
    await kopf.operator(
        registry=registry(worklist, kubeconfig),
        standalone=True,
        clusterwide=True,
        liveness_endpoint=f"http://127.0.0.1:{port}/readyz",
        stop_flag=worklist.stopped,
    )
    survey.cancel()


main()
