"""Kubernetes objects as files, and the real kubectl that applies them."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ...config.errors import CommandError
from ...operations.programs.helm import tool

# The names of the definitions that are served.
_SERVED: Final = """{{range .items}}{{$name := .metadata.name}}{{range .status.conditions -}}
{{if and (eq .type "Established") (eq .status "True")}}{{$name}} {{end}}{{end}}{{end}}"""
_SERVED_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.2


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


def apply(kubeconfig: Path, objects: Sequence[dict[str, Any]]) -> None:
    """Apply objects on the server's side.

    Raises:
        CommandError: The API server refuses one.
    """
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    # To check them, kubectl would have the server put the schemas of all kinds together: seconds, and much memory.
    _run(["apply", "--server-side", "--force-conflicts", "--validate=false", "--filename", "-"], kubeconfig, text)


def wait_served(kubeconfig: Path, definitions: Sequence[str]) -> None:
    """Wait until the kinds of these definitions are served: who starts before looks for them again after seconds.

    `kubectl wait` fails where a new definition has no conditions yet.

    Raises:
        CommandError: They are not served after a minute.
    """
    arguments = ["get", "crd", "--output", f"go-template={_SERVED}"]
    deadline = time.monotonic() + _SERVED_SECONDS
    while not set(definitions) <= set(_run(arguments, kubeconfig).split()):
        if time.monotonic() > deadline:
            raise CommandError(f"not served after {_SERVED_SECONDS:.0f} s: {', '.join(definitions)}")
        time.sleep(_POLL_SECONDS)


def delete(kubeconfig: Path, objects: Sequence[dict[str, Any]]) -> None:
    """Delete objects, those that are there; a namespace goes with all that is in it."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    _run(["delete", "--ignore-not-found", "--wait=false", "--filename", "-"], kubeconfig, text)


def wait_deleted(kubeconfig: Path, objects: Sequence[dict[str, Any]]) -> None:
    """Wait until namespaces of these are gone that are being deleted: nothing can be made in them meanwhile."""
    for name in [item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"]:
        namespace = find(kubeconfig, "namespace", name, name)
        if namespace and "deletionTimestamp" in namespace["metadata"]:
            _run(["wait", "--for=delete", f"namespace/{name}", "--timeout=120s"], kubeconfig)


def find(kubeconfig: Path, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
    """An object of the cluster; None without one."""
    text = _run(["get", kind, name, "--namespace", namespace, "--ignore-not-found", "--output", "json"], kubeconfig)
    return json.loads(text) if text else None


def account_token(kubeconfig: Path, namespace: str, account: str) -> str:
    """A token of a service account, for ten years."""
    options = ["--namespace", namespace, "--duration", "87600h"]
    return _run(["create", "token", account, *options], kubeconfig).strip()


def _run(arguments: Sequence[str], kubeconfig: Path | None = None, text: str | None = None) -> str:
    """Output of kubectl, which keeps what it learns of a server beside the kubeconfig: ports are used again."""
    options = ["--kubeconfig", str(kubeconfig), "--cache-dir", str(kubeconfig.parent / "cache")] if kubeconfig else []
    command = [str(tool("kubectl")), *options, *arguments]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode:
        raise CommandError(f"kubectl {arguments[0]} failed: {result.stderr.strip()}")
    return result.stdout
