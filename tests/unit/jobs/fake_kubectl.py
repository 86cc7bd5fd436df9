"""A kubectl that answers with a recorded cluster: `fake_kubectl.py FOLDER ARGUMENT...`.

FOLDER has `cluster.json`, a list of objects; `forbidden`, the namespaces that may not be read, one a line; a log for
each pod in `logs`, and one before its restart with the ending `.previous`; and `calls`, to which every call is added.
"""

import json
import sys
from pathlib import Path

FOLDER, WORDS = Path(sys.argv[1]), sys.argv[4:]
OPTIONS = dict(word.removeprefix("--").partition("=")[::2] for word in WORDS if word.startswith("--"))
ITEMS = json.loads((FOLDER / "cluster.json").read_text())
FORBIDDEN = (FOLDER / "forbidden").read_text().split()


def plural(item: dict) -> str:
    """A kind as kubectl names it."""
    kind, group = item["kind"].lower(), item["apiVersion"].rpartition("/")[0]
    name = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}{'es' if kind.endswith('s') else 's'}"
    return f"{name}.{group}" if group else name


def read(kinds: str) -> str:
    """Objects of these kinds, of a namespace or of all."""
    namespace = OPTIONS.get("namespace")
    if namespace in FORBIDDEN or (namespace is None and FORBIDDEN):
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        sys.exit(f'Error from server (Forbidden): pods is forbidden: User "ada" cannot list resource "pods" {where}')
    asked = kinds.split(",")
    items = [
        item
        for item in ITEMS
        if {plural(item), plural(item).partition(".")[0]} & {*asked}
        and namespace in (None, item["metadata"].get("namespace"))
    ]
    return json.dumps({"kind": "List", "items": items})


with (FOLDER / "calls").open("a") as calls:
    calls.write(json.dumps({"words": WORDS, "input": "" if sys.stdin.isatty() else sys.stdin.read()}) + "\n")
if WORDS[0] == "api-resources":
    print("\n".join(sorted({plural(item) for item in ITEMS})))
elif WORDS[0] == "get":
    print(read(WORDS[1]))
elif WORDS[0] == "logs":
    log = FOLDER / "logs" / (WORDS[1] + (".previous" if "previous" in OPTIONS else ""))
    if not log.is_file():
        sys.exit(f'Error from server (BadRequest): container in pod "{WORDS[1]}" is waiting to start')
    print(log.read_text(), end="")
