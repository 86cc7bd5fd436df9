"""What keeps a node from being set up."""

from __future__ import annotations


class Failure(Exception):
    """Something that keeps the node from being set up: what was seen, and what to do next."""

    def __init__(self, saw: str, next_step: str) -> None:
        super().__init__(f"{saw}; {next_step}")
