"""The colours of the report in light and in dark, and its style sheet.

Every text colour has at least 4.5 to 1 on every ground that it stands on; a test computes that.
"""

from pathlib import Path
from typing import Final

from .lettering import FAMILY

LIGHT: Final = {
    "ground": "#f4f6f9",
    "card": "#ffffff",
    "sunk": "#eef1f6",
    "ink": "#161b25",
    "soft": "#4a5364",
    "line": "#d3d9e3",
    "blue": "#1a56b0",
    "violet": "#6437ab",
    "green": "#176b3e",
    "orange": "#934700",
    "red": "#b1221b",
    "teal": "#0b6366",
    "blue-tint": "#e6effb",
    "violet-tint": "#efe8fa",
    "green-tint": "#e3f3e9",
    "orange-tint": "#fcefdf",
    "red-tint": "#fce8e6",
    "teal-tint": "#def2f2",
}
"""Colours by role on a light ground: ground, card and sunk are grounds, those with -tint as well; the rest is drawn."""
DARK: Final = {
    "ground": "#0e1219",
    "card": "#161c26",
    "sunk": "#1d2430",
    "ink": "#e9edf4",
    "soft": "#aab4c4",
    "line": "#313b4b",
    "blue": "#8bbcff",
    "violet": "#c6abff",
    "green": "#7fd8a4",
    "orange": "#f6b96f",
    "red": "#ffa198",
    "teal": "#76d6d6",
    "blue-tint": "#17283f",
    "violet-tint": "#271e3d",
    "green-tint": "#142e20",
    "orange-tint": "#352512",
    "red-tint": "#3b1a18",
    "teal-tint": "#122f30",
}
"""The same roles on a dark ground."""
HUES: Final = ("blue", "violet", "green", "orange", "red", "teal")
"""The colours that mean something. Each has a tint to stand on."""


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _hues() -> str:
    return "".join(f".{hue}{{--hue:var(--{hue});--tint:var(--{hue}-tint)}}" for hue in HUES)


_THEMES: Final = f"""
:root{{color-scheme:light dark;--font:{FAMILY};{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{color-scheme:light;{_variables(LIGHT)}--ground:#ffffff;--sunk:#f7f8fa;}}}}
{_hues()}"""
_FOLDER: Final = Path(__file__).parent
DRAWING: Final = f"{_THEMES}\n{(_FOLDER / 'drawing.css').read_text(encoding='utf-8')}".strip()
"""What a drawing needs to be a file of its own."""
SHEET: Final = f"{DRAWING}\n{(_FOLDER / 'page.css').read_text(encoding='utf-8')}"
"""The style sheet of the page."""
