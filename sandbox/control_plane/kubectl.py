"""Reads and writes files of Kubernetes objects, which kubectl builds from kustomizations."""

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
    """Write the objects of files and kustomizations into one file, as YAML documents in JSON, which parses fast.

    `namespace` replaces the namespace of the objects.
    """
    if namespace:
        texts = [_kustomized(sources, namespace)]
    else:
        texts = [_run(["kustomize", str(source)]) if source.is_dir() else source.read_text() for source in sources]
    objects = [item for text in texts for item in yaml.load_all(text, yaml.CSafeLoader) if item]
    file.write_text("".join(f"---\n{json.dumps(item)}\n" for item in objects), encoding="utf-8")


def _kustomized(sources: Sequence[Path], namespace: str) -> str:
    """Return the objects of kustomizations and files in a namespace."""
    with tempfile.TemporaryDirectory() as folder:
        # Kustomize accepts only relative paths.
        resources = [os.path.relpath(source.resolve(), Path(folder).resolve()) for source in sources]
        kustomization = {"namespace": namespace, "resources": resources}
        Path(folder, "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
        return _run(["kustomize", folder, "--load-restrictor=LoadRestrictionsNone"])


def read_objects(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file from `write_objects`, or of a YAML file, which parses more slowly."""
    text = file.read_text(encoding="utf-8")
    if not text.startswith("---\n{"):
        return list(yaml.load_all(text, yaml.CSafeLoader))
    return [json.loads(line) for line in text.splitlines() if line != "---"]


def _run(arguments: Sequence[str]) -> str:
    """Return the output of kubectl. Raises CommandError with its error message."""
    result = subprocess.run([str(tool("kubectl")), *arguments], capture_output=True, text=True)
    if result.returncode:
        raise CommandError(f"kubectl {arguments[0]} failed: {result.stderr.strip()}")
    return result.stdout
