"""Errors of the sandbox's operations for unknown names, with the known ones."""

from collections.abc import Iterable


def check_known(kind: str, names: Iterable[str], known: Iterable[str], hint: str = "") -> None:
    """Raise ValueError for the first unknown name. `hint` is added to the message."""
    allowed = list(known)
    for name in names:
        if name not in allowed:
            raise ValueError(f"unknown {kind} {name}; known are {', '.join(allowed) or 'none so far'}{hint}")
