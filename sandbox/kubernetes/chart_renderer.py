"""Helm's post-renderer for a real API server: leaves out what would lead the server to a process that is not here.

That are webhook configurations and APIServices whose Service nobody is behind: the server would wait for them with each
write. A Service that leads to a process here stays as it is, so the chart's own of its name is left out silently.

Helm runs it as `python -m podwright.sandbox.kubernetes.chart_renderer NAMESPACE REPORT [NAMESPACE/SERVICE ...]`: the
release's namespace, the file that gets a line for each object that is left out, and the Services that lead here.
"""

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml

from ..protocol.json_objects import JsonObject

_DOCUMENT = re.compile(r"^---\s*$", re.MULTILINE)
# Reading every document would take seconds for charts with long schemas.
_JUDGED = re.compile(r"\b(?:Service|APIService|(?:Mutating|Validating)WebhookConfiguration)\b")


def rendered(text: str, namespace: str, leading_here: Collection[str]) -> tuple[str, list[str]]:
    """What is left of a chart's manifests, and the kinds and names of what is left out."""
    retained, left_out = list[str](), list[str]()
    for document in _DOCUMENT.split(text):
        item = (yaml.load(document, yaml.CSafeLoader) if _JUDGED.search(document) else None) or {}
        if any(service not in leading_here for service in _asked(item)):
            left_out.append(f"{item['kind']} {item['metadata']['name']}")
        elif item.get("kind") != "Service" or _name(item["metadata"], namespace) not in leading_here:
            retained.append(document)
    return "---".join(retained), left_out


def _asked(item: JsonObject) -> Iterator[str]:
    """The Services that the API server would ask because of an object, each as `namespace/name`."""
    clients = [webhook["clientConfig"] for webhook in item.get("webhooks") or ()]
    if item.get("kind") == "APIService":
        clients.append(item["spec"])
    for client in clients:
        if client.get("service"):
            yield _name(client["service"])


def _name(reference: JsonObject, namespace: str = "") -> str:
    return f"{reference.get('namespace') or namespace}/{reference['name']}"


def main() -> None:
    """Read manifests from standard input, and print what is left of them."""
    namespace, report, *leading_here = sys.argv[1:]
    text, left_out = rendered(sys.stdin.read(), namespace, leading_here)
    Path(report).write_text("".join(f"{line}\n" for line in left_out), encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
