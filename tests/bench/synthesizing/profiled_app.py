"""Synthesizes like `bin/app.py`, and writes the processor seconds of each part to a file, those of Node included."""

import builtins
import gc
import importlib
import importlib.util
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tree import seconds_of

PARTS: Final = (
    ("podwright.config.loading.project", "Project.load", "reading the environment"),
    ("podwright.planning.rules.project.project", "all_findings", "rules"),
    ("podwright.operations.artifacts.resolved", "resolved_in", "settings that follow from the environment"),
    ("podwright.stacks.stage", "TrainingStage.__init__", "stacks and constructs"),
    ("aws_cdk", "App.synth", "app.synth: templates and assets"),
)
"""Module and name of each function that is a part."""
IMPORTS: Final = "imports"


class Meter:
    """Gives the processor seconds of this process and its children to the innermost part that runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._last = 0.0

    def begin(self, part: str) -> None:
        """Charge what was used so far to the part that ran, and `part` from now on."""
        self._charge()
        self._running.append(part)

    def end(self) -> None:
        """Charge the innermost part, and the one around it from now on."""
        self._charge()
        self._running.pop()

    def _charge(self) -> None:
        now = seconds_of(os.getpid())
        if self._running:
            self.seconds[self._running[-1]] += now - self._last
        self._last = now

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, charged to a part."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            self.begin(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.end()

        return measured

    def import_module(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What the import statement calls; modules that a part loads late count as imports as well."""
        absolute = name
        if level:
            absolute = importlib.util.resolve_name("." * level + name, str((globals or {}).get("__package__")))
        if absolute in sys.modules or (self._running and self._running[-1] == IMPORTS):
            return _IMPORT(name, globals, locals, fromlist, level)
        self.begin(IMPORTS)
        try:
            return _IMPORT(name, globals, locals, fromlist, level)
        finally:
            self.end()


_IMPORT: Final = builtins.__import__


def main() -> int:
    """Synthesize; returns the app's exit code."""
    gc.disable()
    meter = Meter()
    builtins.__import__ = meter.import_module
    meter.begin(IMPORTS)
    for module, name, part in PARTS:
        owner: Any = importlib.import_module(module)
        *classes, function = name.split(".")
        for attribute in classes:
            owner = getattr(owner, attribute)
        setattr(owner, function, meter.wrap(part, getattr(owner, function)))
    from podwright.bin.app import main as synthesize

    meter.end()
    meter.begin("the app's own lines")
    code = synthesize()
    meter.end()
    Path(sys.argv[1]).write_text(json.dumps(meter.seconds))
    return code


sys.exit(main())
