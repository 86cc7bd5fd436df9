"""Helm's post-renderer for a real API server: removes objects that refer to a process that does not run.

These are webhook configurations and APIServices: the server would call their Service at each write. A running operator
has its own configurations with its port, and Services that lead to it. So the chart's configurations are removed, too,
and its Services become ExternalName Services, which the deletion of the release keeps.

Helm runs it as `python -m podwright.sandbox.kubernetes.chart_renderer NAMESPACE REPORT [NAMESPACE/SERVICE ...]`: the
release's namespace, the file for the names of removed objects that lack a process, and the Services that lead to one.
"""

import json
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml

from ..protocol.json_objects import JsonObject

_DOCUMENT = re.compile(r"^---\s*$", re.MULTILINE)
# Parsing every document would take seconds for charts with long schemas.
_JUDGED = re.compile(r"\b(?:Service|APIService|(?:Mutating|Validating)WebhookConfiguration)\b")


def rendered(text: str, namespace: str, leading_here: Collection[str]) -> tuple[str, list[str]]:
    """The remaining manifests of a chart, and the kinds and names of the objects that lack a process."""
    retained, lacking = list[str](), list[str]()
    for document in _DOCUMENT.split(text):
        item = (yaml.load(document, yaml.CSafeLoader) if _JUDGED.search(document) else None) or {}
        services = list(_asked(item))
        if any(service not in leading_here for service in services):
            lacking.append(f"{item['kind']} {item['metadata']['name']}")
        if item.get("kind") == "Service" and _name(item["metadata"], namespace) in leading_here:
            item["spec"] = {"type": "ExternalName", "externalName": "localhost"}
            item["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
            retained.append(json.dumps(item))
        elif not services:
            retained.append(document)
    return "\n---\n".join(retained), lacking


def _asked(item: JsonObject) -> Iterator[str]:
    """Return the Services that the API server would call because of an object, each as `namespace/name`."""
    clients = [webhook["clientConfig"] for webhook in item.get("webhooks") or ()]
    if item.get("kind") == "APIService":
        clients.append(item["spec"])
    for client in clients:
        if client.get("service"):
            yield _name(client["service"])


def _name(reference: JsonObject, namespace: str = "") -> str:
    return f"{reference.get('namespace') or namespace}/{reference['name']}"


def main() -> None:
    """Read manifests from standard input, and print the remaining ones."""
    namespace, report, *leading_here = sys.argv[1:]
    text, lacking = rendered(sys.stdin.read(), namespace, leading_here)
    Path(report).write_text("".join(f"{line}\n" for line in lacking), encoding="utf-8")
    # Helm treats an empty output as a failure.
    sys.stdout.write(f"# Rendered\n{text}")


if __name__ == "__main__":
    main()
