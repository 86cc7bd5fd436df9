"""The control plane of the sandbox's Kubernetes: `python -m podwright.sandbox.control_plane install|status|remove`.

Use `podwright sandbox kubernetes`. The verb `wheels` is for a release: it packs what is installed for other machines.
"""

import argparse
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ...config.catalog.eks_versions import eks_versions
from ...config.errors import CommandError
from ...operations.output.console import write_answer, write_error, write_json, write_line, write_note
from .cache import Cache, State
from .install import duration, install
from .pins import GoModule, Part, mismatched_charts, pins
from .platform_wheels import build_wheels

_INTERRUPTED = 130
_NOTES: Final = {
    "kuberay": "pods run nothing, so a stand-in for Ray's dashboard answers: a job does what its submitter does"
}
"""What a part cannot show here."""


def main() -> int:
    """Do what the verb says. Returns 0; 1 when it fails, or when `status` misses a part; 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="podwright sandbox kubernetes")
    parser.add_argument("verb", choices=["install", "status", "remove", "wheels"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--minor", action="append", default=[], help="for `install`: another one of Kubernetes")
    parser.add_argument("--to", type=Path, default=Path("dist/control-plane"), help="where `wheels` puts them")
    options = parser.parse_args()
    cache = Cache.of_user()
    try:
        if options.verb == "install":
            install(pins(), cache, _further(options.minor))
        elif options.verb == "remove":
            return _remove(cache, options.json)
        elif options.verb == "wheels":
            build_wheels(pins(), cache, metadata.version("podwright"), options.to)
            return 0
        return _status(cache, options.json)
    except CommandError as error:
        write_error(error)
        return error.code
    except KeyboardInterrupt:
        write_note("podwright: interrupted; `podwright sandbox kubernetes install` resumes")
        return _INTERRUPTED


def _status(cache: Cache, as_json: bool) -> int:
    """Print each part: version, state, size, and how long it took to install."""
    minors = [part for part in pins().minors.values() if cache.state(part) is not State.MISSING]
    rows = [_row(cache, part) for part in (*pins().parts, *minors)]
    whole = all(cache.state(part) is State.INSTALLED for part in pins().parts)
    if as_json:
        known = {"default": pins().minor, "others": [*pins().minors], "without": _without_pins()}
        write_json({"installed": whole, "folder": str(cache.root), "parts": rows, "minors": known})
        return 0 if whole else 1
    for row in rows:
        write_line(_line(row))
    write_line(
        f"Clusters of Kubernetes {', '.join(pins().minors)} run on {pins().minor} unless `install --minor` adds "
        f"theirs; those of {', '.join(_without_pins())} always do."
    )
    if whole:
        size, seconds = sum(row.get("size", 0) for row in rows), sum(row.get("seconds", 0) for row in rows)
        write_line(f"The control plane is installed in {cache.root}: {size / 1e6:.0f} MB, {duration(seconds)}.")
    else:
        write_line("The control plane is not whole; `podwright sandbox kubernetes install` makes what is missing.")
    return 0 if whole else 1


def _line(row: dict[str, Any]) -> str:
    """One part: version, state, size, where it comes from, and what is to be known of it."""
    made = f", {row['size'] / 1e6:.0f} MB, {row['origin']} in {duration(row['seconds'])}" if "size" in row else ""
    charts = "".join(f"; chart {name} is pinned at {version}" for name, version in row.get("charts", {}).items())
    note = f"; {row['note']}" if "note" in row else ""
    return f"{row['name']} {row['version']}: {row['state']}{made}{charts}{note}"


def _further(minors: list[str]) -> list[str]:
    """The minor versions beside the default one. Raises CommandError where nothing is pinned for one."""
    known = [pins().minor, *pins().minors]
    if unknown := [minor for minor in minors if minor not in known]:
        raise CommandError(
            f"Kubernetes {', '.join(unknown)} cannot be installed",
            f"choose from {', '.join(known)}, or leave --minor out",
            2,
        )
    return [minor for minor in minors if minor != pins().minor]


def _without_pins() -> list[str]:
    """The minor versions that environments may have and that nothing is pinned for."""
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
    """Delete the control plane, and say what stays."""
    left = [str(item) for item in cache.remove()]
    lines = [f"The control plane is removed from {cache.root}."]
    if left:
        lines.append(f"Left alone, since podwright did not make it: {', '.join(left)}")
    lines.append("Go's own caches stay where your Go built it; `go clean -cache -modcache` empties them.")
    write_answer(as_json, {"removed": True, "folder": str(cache.root), "left": left}, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
