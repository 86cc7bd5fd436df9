"""The program of a simulated container: `python simulated.py REASON`. It runs inside the container.

It runs until it is stopped. The sandbox writes lines of JSON to its standard input: `{"print": "a text"}`, and
`{"exit": 1}`, which ends it with this code.
"""

import json
import os
import signal
import sys


def main() -> None:
    """Print why the container is simulated, then follow the lines."""
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    for ending in (signal.SIGTERM, signal.SIGINT):
        # The code of a program that a signal ends. With 0, a job whose pods are deleted would count as a success.
        signal.signal(ending, lambda number, _: os._exit(128 + number))
    print(f"simulated by the sandbox: {sys.argv[1]}", flush=True)
    with open(0, encoding="utf-8") as lines:
        # The own end for writing keeps the input open.
        for line in lines:
            message = json.loads(line)
            if "exit" in message:
                os._exit(message["exit"])
            print(message["print"], end="", flush=True)
    os.close(writing)


if __name__ == "__main__":
    main()
