"""Go modules of ours that require a published one, so that its programs can be built from the module proxy alone."""

from collections.abc import Iterable
from typing import Any

from .pins import GoModule

_NAME = "podwright.local/control-plane"
EDITED = "edited"
"""The folder beside the go.mod that edited sources lie in while they are built."""


def go_mod(module: GoModule, published: dict[str, Any]) -> str:
    """The go.mod of a module that requires `module` and nothing else.

    Args:
        module: What is built.
        published: Its own go.mod, as `go mod edit -json` prints it. Go heeds `replace` in the main module alone, and
            those that lead to folders of the repository are of no use outside it: here they become published modules.
    """
    changes = published.get("Replace") or ()
    replaced = [item["Old"]["Path"] for item in changes if item["New"]["Path"].startswith("./")]
    others = [item for item in changes if module.replaces and item["Old"]["Path"] not in replaced]
    lines = [f"module {_NAME}/{module.name}", f"go {published['Go']}", f"require {module.path} {module.version}"]
    lines += [f"replace {path} => {path} {module.staging}" for path in replaced if module.staging]
    lines += [f"replace {item['Old']['Path']} => {item['New']['Path']} {item['New']['Version']}" for item in others]
    lines += [f"replace {module.path} => ./{EDITED}" for _ in module.edits[:1]]
    return "\n".join([*lines, ""])


def go_sum(module: GoModule) -> str:
    """The go.sum to start from. Go adds the other modules, each checked by its checksum database."""
    return "".join(f"{line}\n" for line in module.sums)


def linker_flags(module: GoModule) -> str:
    """Programs without symbols, half the size, and with the variables that say their version."""
    return " ".join(["-s", "-w", *_settings(module.variables.items())])


def _settings(variables: Iterable[tuple[str, str]]) -> list[str]:
    return [f"-X {name}={value}" for name, value in variables]
