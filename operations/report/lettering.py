"""How wide text is before anybody draws it, and text cut to the room there is.

The widths are those of DejaVu Sans, measured in Chromium 156: wider than the letters of every other system font
that the style sheet asks for, so what fits here fits there.
"""

from typing import Final

FAMILY: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
"""The fonts of page and drawings."""
# Hundredths of the size of the letters, for the characters from the space on.
_REGULAR: Final = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34),
    *(84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99),
    *(69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52),
    *(39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84),
)
_BOLD: Final = (
    *(35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 40, 40),
    *(84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85, 73, 85, 77, 72, 68, 81, 77),
    *(110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49),
    *(60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84),
)
_OTHER: Final = 84
_WIDE: Final = 110
# From here on come scripts whose letters are squares.
_SQUARES: Final = 0x2E80


def width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is at most, in the unit of `size`."""
    table = _BOLD if bold else _REGULAR
    return sum(_one(ord(character), table) for character in text) * size / 100


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """The text, or as much of its beginning as there is room for and an ellipsis."""
    if width(text, size, bold=bold) <= room:
        return text
    end = len(text)
    while end and width(f"{text[:end].rstrip()}…", size, bold=bold) > room:
        end -= 1
    return f"{text[:end].rstrip()}…"


def wrapped(texts: list[str], size: float, room: float, gap: float) -> list[list[str]]:
    """Texts in lines that have room for them with `gap` between them; one too long for a line is cut."""
    lines: list[list[str]] = []
    left = 0.0
    for text in texts:
        text = fitted(text, size, room)
        taken = width(text, size) + gap
        if not lines or taken - gap > left:
            lines.append([])
            left = room
        lines[-1].append(text)
        left -= taken
    return lines


def _one(code: int, table: tuple[int, ...]) -> int:
    return table[code - 32] if 32 <= code < 127 else _WIDE if code >= _SQUARES else _OTHER
