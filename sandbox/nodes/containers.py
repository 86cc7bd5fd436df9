"""Replaces the program of a container that this machine cannot run, before runc creates the container.

`python containers.py ARGUMENTS`, with the arguments of `runc create`. A node's containerd calls it in place of runc
(see settings.py). It runs inside the node, so it imports the standard library only.
"""

import json
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any, Final

SIMULATED: Final = "/podwright/simulated.py"
"""The program of simulated containers."""
ENTRY: Final = ["/podwright/busybox", "sh", "-c"]
"""What the image's entry point begins with; its script, its name and the container's arguments follow."""
GATES: Final = ("podwright-canary-", "podwright-nccl-")
"""Name prefixes of the jobs of gates that need GPUs or EFA interfaces, which no node here has.

The elastic gate's job is not listed: its gate decides when it ends.
"""

_SOURCE: Final = "/etc/podwright/simulated.py"
_POD: Final = "io.kubernetes.cri.sandbox-name"
_CONTAINER: Final = "io.kubernetes.cri.container-name"
_RAY: Final = ("RAY_CLUSTER_NAME", "FQ_RAY_IP", "RAY_DASHBOARD_ADDRESS", "RAY_JOB_SUBMISSION_ID")
"""Variables that KubeRay sets in its containers. Source: its module, `controllers/ray/utils/constant.go`."""
_STARTERS: Final = re.compile(r"python[0-9.]*|torchrun|hyperpodrun|accelerate|deepspeed|mpirun|mpiexec|(ba|da)?sh")
"""Programs whose first argument with an ending of _SCRIPTS is a script that they run."""
_SCRIPTS: Final = (".py", ".sh")
_MAX_LINKS: Final = 40
"""Links that the kernel follows in one path."""


def main() -> None:
    """Change the bundle of the container."""
    bundle = Path(sys.argv[sys.argv.index("--bundle") + 1])
    file = bundle / "config.json"
    container = json.loads(file.read_text(encoding="utf-8"))
    if reason := why_simulated(container, bundle / container["root"]["path"]):
        simulate(container, reason)
        file.write_text(json.dumps(container), encoding="utf-8")


def why_simulated(container: dict[str, Any], root: Path) -> str:
    """Return why a container is simulated; empty for one that runs.

    Args:
        container: Its OCI runtime configuration.
        root: The folder of its root.
    """
    annotations = container.get("annotations", {})
    if _CONTAINER not in annotations:
        return ""
    if annotations[_POD].startswith(GATES):
        return "it proves GPUs or EFA interfaces, and no node of the sandbox has any"
    program = program_of(container)
    if not program:
        return "it has no command, and the sandbox uses no images"
    if not _has_program(container, root, program[0]):
        return f"this machine has no program {program[0]}, and the sandbox uses no images"
    variables = [item.partition("=")[0] for item in container["process"].get("env", ())]
    if any(name in _RAY for name in variables) and not _has_program(container, root, "ray"):
        # KubeRay calls it in a shell.
        return "this machine has no program ray, and the sandbox uses no images"
    script = _script(program)
    if script and not _has(container, root, script):
        folder = container["process"].get("cwd", "/")
        return f"this machine has no file {script} in {folder}, and the sandbox uses no images"
    return ""


def _script(program: list[str]) -> str:
    """Return the script of a command line; empty where it has none, such as a shell that gets its commands by -c."""
    name, words = PurePosixPath(program[0]).name, program[1:]
    if not _STARTERS.fullmatch(name) or (words[:1] and re.fullmatch(r"-[a-z]*c", words[0])):
        return ""
    scripts = (word for word in words if word.endswith(_SCRIPTS) and " " not in word and not word.startswith("-"))
    return next(scripts, "")


def program_of(container: dict[str, Any]) -> list[str]:
    """Return the command line of a container, without the image's entry point."""
    arguments = container["process"]["args"]
    return arguments[len(ENTRY) + 2 :] if arguments[: len(ENTRY)] == ENTRY else arguments


def simulate(container: dict[str, Any], reason: str) -> None:
    """Let a container run the program of simulated ones."""
    # A volume may be mounted over a virtual environment.
    python = os.path.realpath(sys.executable)
    container["process"]["args"] = [python, "-I", "-S", SIMULATED, reason]
    mount = {"destination": SIMULATED, "type": "bind", "source": _SOURCE, "options": ["bind", "ro"]}
    container.setdefault("mounts", []).append(mount)


def _has_program(container: dict[str, Any], root: Path, name: str) -> bool:
    if "/" in name:
        return _has(container, root, name)
    variables = dict(item.split("=", 1) for item in container["process"].get("env", ()))
    return any(_has(container, root, f"{folder}/{name}") for folder in variables.get("PATH", "").split(":"))


def _has(container: dict[str, Any], root: Path, name: str) -> bool:
    """Return True if a container has a file, on its root or on one of its mounts.

    Links are followed as the container follows them: an absolute target is a path of the container.
    """
    bound = {PurePosixPath(item["destination"]): item["source"] for item in container.get("mounts", ())}
    path, links = PurePosixPath("/"), 0
    rest = list(PurePosixPath(container["process"].get("cwd", "/"), name).parts)
    while rest:
        part = rest.pop(0)
        if part == "..":
            path = path.parent
            continue
        path /= part
        above = next((parent for parent in (path, *path.parents) if parent in bound), None)
        file = Path(bound[above]) / path.relative_to(above) if above else root / path.relative_to("/")
        if file.is_symlink() and path not in bound:
            links += 1
            path, rest = path.parent, [*PurePosixPath(file.readlink()).parts, *rest]
            if links > _MAX_LINKS:
                return False
        elif not file.exists() and path not in bound and not any(path in item.parents for item in bound):
            return False
    return True


if __name__ == "__main__":
    main()
