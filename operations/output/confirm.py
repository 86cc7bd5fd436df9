"""Asking before something happens that nothing takes back."""

import sys

from ...config.errors import CommandError
from .moving import settle


def confirm(word: str, what: str) -> None:
    """Have somebody type `word`, which says that they mean it. `what` ends the sentence "Type WORD to …".

    Raises:
        CommandError: nobody can be asked, or who was asked typed something else.
    """
    if not sys.stdin.isatty():
        raise CommandError("a confirmation needs a terminal", f"--yes continues without asking, and will {what}", 2)
    settle()
    if input(f"Type {word} to {what}: ").strip() != word:
        raise CommandError("nothing was done")
