"""The recipes of sagemaker-hyperpod-recipes that are known, with model, size and technique."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from ...config.catalog.facts import table


class Recipe(NamedTuple):
    """A recipe."""

    path: str
    """Below `recipes_collection/recipes` of the collection, without `.yaml`."""
    model: str
    size: str
    """Parameters, as its publisher names the model; empty where nobody says."""
    technique: str
    elastic: bool
    """Whether it has an elastic policy: of AWS's 46, each fine-tunes or aligns by LoRA."""
    scales: tuple[int, ...]
    """Numbers of nodes that it has settings for, of any release that was read; empty where none was."""


@cache
def known_recipes() -> Mapping[str, Recipe]:
    """All of the table, by path."""
    return {
        row["path"]: Recipe(
            row["path"],
            row["model"],
            row["size"],
            row["technique"],
            row["elastic"] == "yes",
            tuple(map(int, row["scales"].split())),
        )
        for row in table("recipes")
    }


def nearest(path: str) -> list[Recipe]:
    """The known recipes whose paths are most like one that is not known."""
    return [known_recipes()[close] for close in get_close_matches(path, list(known_recipes()), 3)]
