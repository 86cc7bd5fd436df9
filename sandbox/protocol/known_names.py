"""What the sandbox's own operations say of a name that nothing has: which there are."""

from collections.abc import Iterable


def check_known(kind: str, names: Iterable[str], known: Iterable[str], hint: str = "") -> None:
    """Raise ValueError for the first of `names` that is not among those known; `hint` says what else to do."""
    allowed = list(known)
    for name in names:
        if name not in allowed:
            raise ValueError(f"unknown {kind} {name}; known are {', '.join(allowed) or 'none so far'}{hint}")
