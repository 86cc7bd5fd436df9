"""The control plane of the sandbox's Kubernetes: `python -m podwright.sandbox.control_plane install|status|remove`.

Use `podwright sandbox kubernetes`. The verb `wheels` is for releases: it packs the installed parts for other machines.
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ...config.catalog.eks_versions import eks_versions
from ...config.errors import CommandError, InvalidFile
from ...config.loading.project import Project
from ...operations.output.console import write_answer, write_error, write_json, write_line, write_note, write_refusal
from ...planning.helm.operators import NODE_PARTS, control_plane_parts
from .cache import Cache, State
from .install import install
from .pins import GoModule, Part, mismatched_charts, pins
from .platform_wheels import build_wheels
from .progress import duration
from .pytorch import GIGABYTES, INSTALL, PyTorch, require_linux

_INTERRUPTED = 130
_NOTES: Final = {
    "kuberay": "where pods run nothing, a stand-in for Ray's dashboard answers: a job does what its submitter does"
}
"""Limits of a part in the sandbox."""


def main() -> int:
    """Run the verb. Returns 0; 1 when it fails, or when `status` finds a missing part; 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="podwright sandbox kubernetes")
    parser.add_argument("verb", choices=["install", "status", "remove", "wheels"])
    parser.add_argument("environments", nargs="*", help="for `install`: those whose parts are built; all parts without")
    parser.add_argument("--project", type=Path, default=Path(), help="folder of the project")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--minor", action="append", default=[], help="for `install`: another one of Kubernetes")
    parser.add_argument("--pytorch", action="store_true", help="for `install`: PyTorch, too, for real nodes")
    parser.add_argument("--to", type=Path, default=Path("dist/control-plane"), help="where `wheels` puts them")
    options = parser.parse_args()
    cache = Cache.of_user()
    try:
        if options.verb == "install":
            needed = _needed(options.project, options.environments)
            if options.pytorch:
                # A build takes an hour, so this error has to come first.
                require_linux()
            install(pins(), cache, _further(options.minor), needed)
            if options.pytorch:
                PyTorch.of_user().install(cache)
            if needed:
                names = ", ".join(options.environments)
                answer = {"installed": sorted(set(needed)), "folder": str(cache.root)}
                write_answer(options.json, answer, [f"The installed parts are enough for {names}."])
                return 0
        elif options.verb == "remove":
            return _remove(cache, options.json)
        elif options.verb == "wheels":
            build_wheels(pins(), cache, metadata.version("podwright"), options.to)
            return 0
        return _status(cache, options.project, options.json)
    except InvalidFile as error:
        write_refusal(error.findings)
        return 2
    except CommandError as error:
        write_error(error)
        return error.code
    except KeyboardInterrupt:
        write_note("podwright: interrupted; `podwright sandbox kubernetes install` resumes")
        return _INTERRUPTED


def _needed(project: Path, environments: Sequence[str]) -> list[str] | None:
    """Return the names of the parts that environments need; None for every part.

    Raises:
        CommandError: An environment cannot be read, or none of them has a Kubernetes cluster.
    """
    if not environments:
        return None
    loaded = [Project.at(project).load(name).environment for name in environments]
    parts = [part for environment in loaded for part in control_plane_parts(environment)]
    if not parts:
        names = ", ".join(environment.name for environment in loaded)
        raise CommandError(f"{names} has no Kubernetes cluster, so it needs no control plane", "name another", 2)
    available = {part.name for part in pins().parts}
    return [*parts, *(name for name in NODE_PARTS if name in available)]


def _status(cache: Cache, project: Path, as_json: bool) -> int:
    """Print each part, and which environments of the project the installed parts are enough for."""
    minors = [part for part in pins().minors.values() if cache.state(part) is not State.MISSING]
    rows = [_row(cache, part) for part in (*pins().parts, *minors)]
    installed = {part.name for part in pins().parts if cache.state(part) is State.INSTALLED}
    whole = all(part.name in installed for part in pins().parts)
    environments, pytorch = _environments(project, installed), PyTorch.of_user()
    if as_json:
        known = {"default": pins().minor, "others": [*pins().minors], "without": _without_pins()}
        optional = {"pytorch": {"version": pytorch.version, "state": pytorch.state, "folder": str(pytorch.folder)}}
        described = {"installed": whole, "folder": str(cache.root), "parts": rows, "minors": known} | optional
        write_json(described | {"environments": environments})
        return 0 if whole else 1
    for row in rows:
        write_line(_line(row))
    hint = "" if pytorch.state is State.INSTALLED else f"; `{INSTALL}` installs {GIGABYTES} GB for jobs on real nodes"
    write_line(f"pytorch {pytorch.version}, optional: {pytorch.state}{hint}")
    write_line(
        f"Clusters of Kubernetes {', '.join(pins().minors)} run on {pins().minor} unless `install --minor` adds "
        f"theirs; those of {', '.join(_without_pins())} always do."
    )
    if whole:
        size, seconds = sum(row.get("size", 0) for row in rows), sum(row.get("seconds", 0) for row in rows)
        write_line(f"The control plane is installed in {cache.root}: {size / 1e6:.0f} MB, {duration(seconds)}.")
        return 0
    if enough := [name for name, missing in environments.items() if missing == []]:
        write_line(f"The installed parts are enough for {', '.join(enough)}.")
    for name, missing in environments.items():
        if missing is None:
            write_line(f"{name} cannot be read: `podwright check {name}` says why.")
        elif missing:
            write_line(f"{name} lacks {', '.join(missing)}: `podwright sandbox kubernetes install {name}`.")
    write_line("`podwright sandbox kubernetes install` builds every missing part.")
    return 1


def _environments(project: Path, installed: Collection[str]) -> dict[str, list[str] | None]:
    """Return the missing parts of each environment of a project with Kubernetes; None if it cannot be read."""
    settings = Project.at(project)
    environments = dict[str, list[str] | None]()
    for name in settings.names:
        try:
            needed = control_plane_parts(settings.load(name).environment)
        except InvalidFile:
            environments[name] = None
        else:
            if needed:
                environments[name] = [part for part in needed if part not in installed]
    return environments


def _line(row: dict[str, Any]) -> str:
    """Return a part as text: version, state, size, origin and notes."""
    made = f", {row['size'] / 1e6:.0f} MB, {row['origin']} in {duration(row['seconds'])}" if "size" in row else ""
    charts = "".join(f"; chart {name} is pinned at {version}" for name, version in row.get("charts", {}).items())
    note = f"; {row['note']}" if "note" in row else ""
    return f"{row['name']} {row['version']}: {row['state']}{made}{charts}{note}"


def _further(minors: list[str]) -> list[str]:
    """Return the minor versions other than the default. Raises CommandError if one has no pins."""
    known = [pins().minor, *pins().minors]
    if unknown := [minor for minor in minors if minor not in known]:
        raise CommandError(
            f"Kubernetes {', '.join(unknown)} cannot be installed",
            f"choose from {', '.join(known)}, or leave --minor out",
            2,
        )
    return [minor for minor in minors if minor != pins().minor]


def _without_pins() -> list[str]:
    """Return the allowed minor versions of environments that have no pins."""
    return [version for version in eks_versions() if version not in (*pins().minors, pins().minor)]


def _row(cache: Cache, part: Part) -> dict[str, Any]:
    record = cache.record(part)
    made = "built from its Go module" if isinstance(part.source, GoModule) else "fetched from PyPI"
    origin = f"taken from {record.origin}" if record and record.origin else made
    figures = {"size": record.size, "seconds": record.seconds, "origin": origin} if record else {}
    note = {"note": _NOTES[part.name]} if part.name in _NOTES else {}
    charts = {"charts": mismatches} if (mismatches := mismatched_charts(part)) else {}
    return {"name": part.name, "version": part.version, "state": cache.state(part)} | figures | charts | note


def _remove(cache: Cache, as_json: bool) -> int:
    """Delete the control plane, and print what remains."""
    left = [str(item) for item in cache.remove()]
    lines = [f"The control plane is removed from {cache.root}."]
    pytorch = PyTorch.of_user()
    if pytorch.remove():
        lines.append(f"PyTorch is removed from {pytorch.folder}.")
    if left:
        lines.append(f"Left alone, since podwright did not make it: {', '.join(left)}")
    lines.append("Go's own caches stay where your Go built it; `go clean -cache -modcache` empties them.")
    write_answer(as_json, {"removed": True, "folder": str(cache.root), "left": left}, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
