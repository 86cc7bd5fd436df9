"""Bundles of which parts are missing: other versions of services, and answers that somebody cut, do not stop doctor."""

import json
from random import Random
from typing import Any

from doctor_corpus import bundles
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.command import lines
from podwright.operations.doctor.diagnose import diagnose

EVERY = 4
"""One bundle of so many is damaged."""


def damaged(value: Any, random: Random) -> Any:
    """The value without some of its fields and items, and with null for others."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if random.random() > 0.03}
        return {key: None if random.random() < 0.02 else damaged(item, random) for key, item in kept.items()}
    if isinstance(value, list):
        return [damaged(item, random) for item in value if random.random() > 0.03]
    return value


def test_a_damaged_bundle_is_read_as_far_as_it_goes() -> None:
    random = Random("damage")
    for _, files in list(bundles())[::EVERY]:
        left = {
            path: json.dumps(damaged(json.loads(text), random)) if path.endswith(".json") else text
            for path, text in files.items()
            if random.random() > 0.05
        }
        assert lines(diagnose(Bundle.of(left | {"bundle.json": files["bundle.json"]})))
