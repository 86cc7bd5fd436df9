"""Steps that put settings files in place and let whoever reads them read them anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Callable

from .node import Node
from .steps import Step


def drop_in(
    name: str,
    *,
    applies_to: Callable[[Node], bool],
    files: Callable[[Node], Mapping[str, str]],
    reload: Callable[[Node], None],
    needs: tuple[str, ...] = (),
) -> Step:
    """A step that writes `files` (path → text) and then calls `reload`.

    It remembers what was reloaded: killed between the two, the next run reloads. At a reboot the files act by
    themselves.
    """

    def digest(node: Node) -> str:
        return hashlib.sha256(json.dumps(files(node), sort_keys=True).encode()).hexdigest()

    def check(node: Node) -> bool:
        in_place = all(node.read(path) == text for path, text in files(node).items())
        return in_place and node.remembered(name).get("reloaded") == digest(node)

    def apply(node: Node) -> None:
        for path, text in files(node).items():
            node.write(path, text)
        reload(node)
        node.remember(name, reloaded=digest(node))

    return Step(name, applies_to, check, apply, needs)
