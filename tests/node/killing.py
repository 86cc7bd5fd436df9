"""Kills the set-up of a node at named points, starts it again, and looks at what is left.

Usage: killing.py FOLDER, in a mount namespace of its own, with a task as JSON on standard input: the kind of node and
what to do with it. A point is `STEP:N`, the N-th thing that the step would change or command that it would run; the
process is killed with SIGKILL just before. Each case begins with the same node, in a mount namespace and a tmpfs of its
own. The answer is JSON: which points there are, what an undisturbed run leaves, and what each case leaves.
"""

import ctypes
import hashlib
import importlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_node

CHANGES = {
    "open",
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "shutil.rmtree",
    "subprocess.Popen",
}
NEW_MOUNT_NAMESPACE = 0x00020000
# Logs, the record of a set-up with its time, and what stand-ins note for other tests: both runs of a case write there.
APART = ("var/log", "var/lib/podwright/setup.json", "run/fake/calls", "run/fake-systemd.log", "run/podwright.lock")
TRIES = 3


def watch(root: Path, observed: Callable[[str, int], None]) -> None:
    """Call `observed` before each change below `root` and each command, with the step and its number within the
    step.
    """
    counts: dict[str, int] = {}

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in CHANGES:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if event != "subprocess.Popen" and (
            str(root) not in str(arguments[0])
            or str(arguments[0]).startswith(tuple(f"{root}/{name}" for name in APART))
        ):
            return
        step = threading.current_thread().name
        counts[step] = counts.get(step, 0) + 1
        observed(step, counts[step])

    sys.addaudithook(hook)


def spoil(node_main: Any) -> None:
    """Add a step that is not idempotent: killed between its two changes, it adds its line again."""
    steps = importlib.import_module("podwright_node.runner.steps")

    def apply(node: Any) -> None:
        with node.path("/etc/spoilt").open("a") as file:
            file.write("a line\n")
        node.write("/etc/spoilt.done", "")

    step = steps.Step("spoilt", lambda node: True, lambda node: node.read("/etc/spoilt.done") is not None, apply)
    node_main.STEPS = (*node_main.STEPS, step)


def set_up(task: dict[str, Any], root: Path, prepare: Callable[[], None]) -> int:
    """Run the scripts in a process of their own; returns how it ended, as subprocess does."""
    child = os.fork()
    if child == 0:
        # Its own session: nobody else is killed along. It says nothing: its log is in the node.
        os.setsid()
        threading.current_thread().name = "start"
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        node_main: Any = importlib.import_module("podwright_node.__main__")
        node_main.STEPS = tuple(
            replace(step, needs=tuple(need for need in step.needs if need not in task["without"]))
            for step in node_main.STEPS
            if step.name not in task["without"]
        )
        if task["spoilt"]:
            spoil(node_main)
        prepare()
        os._exit(node_main.main(["--root", str(root)]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(root: Path) -> dict[str, str]:
    """Every path below the root with kind, mode, owner and content, and every mount."""
    actual = {str(path.relative_to(root)): described(path) for path in walk(root)}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        _, _, _, inside, point, options = fields.split()[:6]
        if point.startswith(f"{root}/"):
            name = f"mount {point.removeprefix(str(root))}"
            actual[name] = f"{actual.get(name, '')}{inside.rpartition('root/')[2]} {options} {source.split()[0]};"
    return actual


def walk(folder: Path) -> Iterator[Path]:
    """All paths below, without those that count apart."""
    for path in sorted(folder.iterdir()):
        if str(path).partition("/root/")[2] in APART:
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from walk(path)


def described(path: Path) -> str:
    """What a path is."""
    status = path.lstat()
    head = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if path.is_symlink():
        return f"{head} -> {path.readlink()}"
    return f"{head} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" if path.is_file() else head


def case(task: dict[str, Any], folder: Path, point: str | None) -> dict[str, Any]:
    """One case in this process, which is then of no more use: it lives in a mount namespace of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNT_NAMESPACE) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    root = folder / "work" / "root"
    subprocess.run(["mount", "-t", "tmpfs", "work", str(folder / "work")], check=True)
    subprocess.run(["cp", "-a", str(folder / "template" / "root"), str(root)], check=True)
    os.environ["PODWRIGHT_ROOT"] = str(root)
    points = folder / "work" / "points"
    if point is None:

        def note(step: str, number: int) -> None:
            os.write(descriptor, f"{step}:{number}\n".encode())

        descriptor = os.open(points, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        code = set_up(task, root, lambda: watch(root, note))
        return {"code": code, "points": points.read_text().split(), "state": state(root), "log": log(root)}

    def die(step: str, number: int) -> None:
        if f"{step}:{number}" == point:
            os.kill(os.getpid(), signal.SIGKILL)

    killed = set_up(task, root, lambda: watch(root, die)) == -signal.SIGKILL
    code = set_up(task, root, lambda: None)
    return {"point": point, "killed": killed, "code": code, "state": state(root), "log": log(root)}


def log(root: Path) -> str:
    """The end of the structured log."""
    return (root / "var/log/provision/podwright.jsonl").read_text()[-3000:]


def start(task: dict[str, Any], folder: Path, point: str | None, answer: Path) -> int:
    """The same in a process of its own, which leaves its answer in that file; returns its id."""
    child = os.fork()
    if child == 0:
        answer.write_text(json.dumps(case(task, folder, point)))
        os._exit(0)
    return child


def all_of(task: dict[str, Any], folder: Path, points: Sequence[str | None]) -> list[dict[str, Any]]:
    """What these cases leave, in order. As many run at once as there are processors; this process has one thread,
    because what a fork copies of other threads' locks stays locked.

    A case that did not come to its point is tried again: which step makes a shared folder is up to chance.
    """
    waiting = [(index, TRIES) for index in range(len(points))]
    running: dict[int, tuple[int, int]] = {}
    answers: dict[int, dict[str, Any]] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            index, tries = waiting.pop(0)
            running[start(task, folder, points[index], folder / f"answer-{index}")] = index, tries
        index, tries = running.pop(os.wait()[0])
        file = folder / f"answer-{index}"
        answers[index] = json.loads(file.read_text())
        file.unlink()
        if points[index] and not answers[index]["killed"] and tries > 1:
            waiting.append((index, tries - 1))
    return [answers[index] for index in range(len(points))]


def main() -> None:
    """Do the task."""
    folder, task = Path(sys.argv[1]), json.load(sys.stdin)
    files = fake_node.FILE_SYSTEMS if task["file_systems"] else None
    node = fake_node.make_node(folder / "template", **task["node"], file_systems=files)
    node.running(*task["running"])
    shutil.copytree(fake_node.FAKES, folder / "fakes")
    (folder / "work").mkdir()
    hosts = folder / "hosts"
    hosts.write_text(node.hosts)
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    os.environ.update(PATH=f"{folder}/fakes:/usr/sbin:/usr/bin:/sbin:/bin", FAKE_ADDRESS=fake_node.ADDRESS)
    sys.dont_write_bytecode = True
    # Once for all cases: they are forks of this process.
    sys.path.insert(0, str(node.bundle))
    importlib.import_module("podwright_node.__main__")
    clean, again = all_of(task, folder, [None, None])
    names = task["steps"]
    points = [point for point in clean["points"] if names is None or point.partition(":")[0] in names]
    # Every so many of each step, and so its first in any case.
    points = [point for point in points if (int(point.partition(":")[2]) - 1) % task["stride"] == 0]
    cases = all_of(task, folder, points)
    for result in cases:
        differs = {
            name: [clean["state"].get(name), result["state"].get(name)]
            for name in clean["state"].keys() | result["state"].keys()
            if clean["state"].get(name) != result["state"].get(name)
        }
        result["differs"] = differs
        del result["state"]
    unstable = sorted(name for name, _ in clean["state"].items() ^ again["state"].items())
    json.dump({"code": clean["code"], "log": clean["log"], "unstable": unstable, "cases": cases}, sys.stdout)


if __name__ == "__main__":
    main()
