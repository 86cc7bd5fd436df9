"""Kubernetes objects as files, which kubectl makes of kustomizations."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ...config.errors import CommandError
from ...operations.programs.helm import tool


def write_objects(file: Path, sources: Sequence[Path], namespace: str = "") -> None:
    """Write the objects of files and kustomizations into one file: a YAML document each, in JSON, which reads fast.

    With a namespace the objects are put there.
    """
    if namespace:
        texts = [_kustomized(sources, namespace)]
    else:
        texts = [_run(["kustomize", str(source)]) if source.is_dir() else source.read_text() for source in sources]
    objects = [item for text in texts for item in yaml.load_all(text, yaml.CSafeLoader) if item]
    file.write_text("".join(f"---\n{json.dumps(item)}\n" for item in objects), encoding="utf-8")


def _kustomized(sources: Sequence[Path], namespace: str) -> str:
    """The objects of kustomizations and of files in a namespace. JSON is YAML, too."""
    with tempfile.TemporaryDirectory() as folder:
        # Kustomize takes relative paths alone.
        resources = [os.path.relpath(source.resolve(), Path(folder).resolve()) for source in sources]
        kustomization = {"namespace": namespace, "resources": resources}
        Path(folder, "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
        return _run(["kustomize", folder, "--load-restrictor=LoadRestrictionsNone"])


def read_objects(file: Path) -> list[dict[str, Any]]:
    """The objects of a file: of one that `write_objects` wrote, or of one in YAML, which reads slower."""
    text = file.read_text(encoding="utf-8")
    if not text.startswith("---\n{"):
        return list(yaml.load_all(text, yaml.CSafeLoader))
    return [json.loads(line) for line in text.splitlines() if line != "---"]


def _run(arguments: Sequence[str]) -> str:
    """Output of kubectl. Raises CommandError with its complaint."""
    result = subprocess.run([str(tool("kubectl")), *arguments], capture_output=True, text=True)
    if result.returncode:
        raise CommandError(f"kubectl {arguments[0]} failed: {result.stderr.strip()}")
    return result.stdout
