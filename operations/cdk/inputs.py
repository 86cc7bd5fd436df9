"""The inputs of a synthesis, and the digest that names the cloud assembly made from them.

`bin/app.py` reads the environment's file and the files that it extends, podwright.yaml, artifacts.lock,
podwright.context.json, the fetched archives, the CDK context, variables of the CDK, and the installed programs. It
reads nothing else: `tests/synth/test_assembly_inputs.py` compares this list with the files that the app opens.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...config.loading.artifacts import CACHE, LOCK
from ...config.loading.load import LoadedEnvironment
from ...config.loading.lookups import CONTEXT
from ..programs.node import use_bundled_node
from .app import app_context

# Folder of podwright's own modules, in a checkout or in an installed package.
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_FOLDERS: Final = (
    "bin",
    "cdk8s_charts",
    "config",
    "constructs",
    "lifecycle_scripts",
    "operations",
    "planning",
    "stacks",
)
# Variables of aws-cdk-lib and cdk8s, such as CDK8S_LEGACY_HASH, which changes names of Kubernetes objects.
_VARIABLES: Final = ("CDK_", "CDK8S_")
# `synthesize` sets CDK_OUTDIR and CDK_CONTEXT_JSON. The store marks validated entries, which CDK_VALIDATION decides.
_NO_INPUTS: Final = ("CDK_VALIDATION", "CDK_OUTDIR", "CDK_CONTEXT_JSON")


@dataclass(frozen=True, slots=True)
class SynthesisInputs:
    """Everything that one synthesis reads."""

    project: Path
    context: Mapping[str, str]
    """Context of the app in addition to that of the project's cdk.json."""
    files: Mapping[str, Path]
    """The environment's file and those that it extends, by the name that findings show."""

    @classmethod
    def of(cls, project: Path, loaded: LoadedEnvironment, context: Mapping[str, str]) -> "SynthesisInputs":
        """The inputs of a loaded environment."""
        return cls(project, dict(context), dict(loaded.source.files))

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 digest of each input, by its name; reads the files as they are now."""
        project = self.project
        texts = {name: _content(file) for name, file in self.files.items()}
        texts |= {name: _content(project / name) for name in ("podwright.yaml", LOCK, CONTEXT)}
        texts["context"] = _json(app_context(project, self.context))
        texts["archives"] = _json(_stamps(project / CACHE))
        texts["programs"] = _json(_programs())
        variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
        texts["variables"] = _json({name: variables[name] for name in variables.keys() - {*_NO_INPUTS}})
        return {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}


def digest(digests: Mapping[str, str]) -> str:
    """Returns one digest of several, 32 hexadecimal digits: a folder's name."""
    return hashlib.sha256(_json(digests)).hexdigest()[:32]


def _programs() -> dict[str, Any]:
    """Returns what identifies podwright's files, the installed packages, Python and Node."""
    use_bundled_node()
    node = Path(os.environ["JSII_NODE"])
    return {
        "python": sys.version,
        "node": [str(node), _stamp(node)],
        # The name of such a folder contains the package's version.
        "packages": sorted(
            entry.name
            for folder in {*sys.path}
            if folder and Path(folder).is_dir()
            for entry in os.scandir(folder)
            if entry.name.endswith((".dist-info", ".egg-info"))
        ),
        "podwright": [_stamps(_PACKAGE / name) for name in _FOLDERS] + [_stamp(_PACKAGE / "cdk.json")],
    }


def _stamps(folder: Path) -> list[tuple[str, str]]:
    """Returns path and stamp of every file below a folder, sorted; nothing for a missing folder.

    Links to folders are followed, as the app follows them; a folder that is linked twice is listed once.
    """
    stamps, visited = list[tuple[str, str]](), set[str]()
    for location, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(location)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        stamps += [(f"{location}/{name}", _stamp(Path(location, name))) for name in names]
    return sorted(stamps)


def _stamp(file: Path) -> str:
    """Returns a file's size in bytes and its time of change in nanoseconds; zeros for a link to nothing.

    The kernel sets the time of change (ctime) at each write and each replacement, even by a copy that keeps the time of
    modification. Reading a thousand files would take longer.
    """
    try:
        status = file.stat()
    except FileNotFoundError:
        # Emacs marks a file that is being edited by a link to nothing, and a concurrent command may delete a file.
        return "0 0"
    return f"{status.st_size} {status.st_ctime_ns}"


def _content(file: Path) -> bytes:
    """Returns a file's content after a mark that it exists; nothing for a missing file."""
    return b"+" + file.read_bytes() if file.is_file() else b""


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
