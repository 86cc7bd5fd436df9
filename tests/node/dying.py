"""Runs the steps and dies, as by a power cut, just before the N-th thing that would change the node.

Usage: dying.py N BUNDLE ROOT. Ends with 137. With 0 for N it lives, and its last line says how many changes there were.
"""

import importlib
import os
import sys

CHANGES = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "subprocess.Popen"}


changes = 0


def die_before(number: int, root: str) -> None:
    """Ends this process before the N-th change below `root`, or command; logs do not count."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        global changes
        if event not in CHANGES:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if event != "subprocess.Popen" and (root not in str(arguments[0]) or "/var/log/" in str(arguments[0])):
            return
        changes += 1
        if changes == number:
            os._exit(137)

    sys.addaudithook(hook)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    # What is imported from here on leaves no caches in the bundle.
    sys.dont_write_bytecode = True
    node = importlib.import_module("podwright_node.__main__")
    die_before(int(sys.argv[1]), sys.argv[3])
    code = node.main(["--root", sys.argv[3]])
    print(changes)
    sys.exit(code)
