"""Writing a Kubernetes version, and the add-ons that need it, into an environment file."""

from pathlib import Path
from typing import Any

from ...config.errors import CommandError
from ...config.loading.source import Source
from ..capacity.plan_file import NotWritten, lines, write_values
from .readiness import Readiness


def write_version(file: Path, source: Source, readiness: Readiness) -> None:
    """Write the version into an environment file, and the add-ons whose version would not fit. Comments stay.

    Raises:
        CommandError: the file cannot take it; it says what to write by hand.
    """
    addons = {addon.name: addon.offered[0] for addon in readiness.addons if addon.offered and not addon.fits}
    settings: dict[str, Any] = {"version": readiness.wanted}
    specified = source.data.get("cluster") or {}
    try:
        if not specified.get("eks"):
            write_values(file, ("cluster",), {"eks": settings | ({"addons": addons} if addons else {})})
            return
        if addons and specified["eks"].get("addons"):
            write_values(file, ("cluster", "eks", "addons"), addons)
        elif addons:
            settings["addons"] = addons
        write_values(file, ("cluster", "eks"), settings)
    except NotWritten as reason:
        by_hand = lines(settings, 6)
        raise CommandError(
            f"nothing was written: {reason}", f"write under `cluster: {{eks: …}}` by hand:\n{by_hand}"
        ) from None
