"""Writes Go modules that require a published module, to build its programs with only the module proxy."""

from collections.abc import Iterable
from typing import Any

from .pins import GoModule

_NAME = "podwright.local/control-plane"
EDITED = "edited"
"""Folder of edited sources during a build, next to the go.mod."""


def go_mod(module: GoModule, published: dict[str, Any]) -> str:
    """Return the go.mod of a module that requires only `module`.

    Args:
        module: The published module.
        published: Its go.mod, as `go mod edit -json` prints it. Go applies `replace` only in the main module, and
            replacements by folders exist only in the repository, so published modules take their place.
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
    """Return the initial go.sum. Go adds the other modules after checking them with its checksum database."""
    return "".join(f"{line}\n" for line in module.sums)


def linker_flags(module: GoModule) -> str:
    """Return linker options: no symbols, which halves the size, and the variables with the version."""
    return " ".join(["-s", "-w", *_settings(module.variables.items())])


def _settings(variables: Iterable[tuple[str, str]]) -> list[str]:
    return [f"-X {name}={value}" for name, value in variables]
