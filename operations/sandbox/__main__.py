"""The server process of the sandbox: `python -m podwright.operations.sandbox PORT LOG`. Use `podwright sandbox start`.

It loads, binds its port, prints its process id and leaves the terminal; so a caller that waits for the command knows
that the sandbox answers.
"""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from werkzeug.serving import make_server

from .application import Sandbox
from .hyperpod import Timing


def main() -> None:
    """Serve on the loopback interface until SIGTERM."""
    parser = argparse.ArgumentParser(prog="podwright.operations.sandbox")
    parser.add_argument("port", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("--time-scale", type=float, default=1.0)
    options = parser.parse_args()
    sandbox = Sandbox(f"http://localhost:{options.port}", Timing(scale=options.time_scale))
    server = make_server("127.0.0.1", options.port, sandbox.mount(), threaded=True)
    _leave_terminal(options.log)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)

    def stop(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    server.serve_forever()


def _leave_terminal(log: Path) -> None:
    process = os.fork()
    if process:
        os.write(1, str(process).encode())
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


if __name__ == "__main__":
    main()
