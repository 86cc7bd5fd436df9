"""Runs a program of Python, and is killed before the N-th thing that it would change or command that it would run.

Questions that it asks do not count: run_killed.py N PROGRAM
"""

import os
import runpy
import signal
import sys
from pathlib import Path

CHANGES = {"open", "os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rename", "shutil.rmtree", "subprocess.Popen"}
QUESTIONS = {"show", "squeue", "--version"}


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


die_before(int(sys.argv[1]))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
