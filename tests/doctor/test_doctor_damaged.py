"""Bundles of which parts are missing: other versions of services, and answers that somebody cut, do not stop doctor."""

import json
import re
from random import Random
from typing import Any

import pytest

from doctor_corpus import bundles
from podwright.config.errors import CommandError
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.command import lines
from podwright.operations.doctor.diagnose import diagnose
from podwright.operations.doctor.evidence import Signal

EVERY = 4
"""One bundle of so many is damaged."""


def damaged(value: Any, random: Random) -> Any:
    """The value without some of its fields and items, and with null for others."""
    if isinstance(value, dict):
        retained = {key: item for key, item in value.items() if random.random() > 0.03}
        return {key: None if random.random() < 0.02 else damaged(item, random) for key, item in retained.items()}
    if isinstance(value, list):
        return [damaged(item, random) for item in value if random.random() > 0.03]
    return value


def remains(files: dict[str, str], random: Random) -> dict[str, str]:
    """The files of a bundle without some of them, and with damage in the others. Its index stays whole."""
    left = {
        path: json.dumps(damaged(json.loads(text), random)) if path.endswith(".json") else text
        for path, text in files.items()
        if random.random() > 0.05
    }
    return left | {"bundle.json": files["bundle.json"]}


def place_of(signal: Signal) -> str:
    """The file of a signal. Its place continues with what is meant in it, or with the line of a log."""
    return re.split(r"[ :]", signal.place, maxsplit=1)[0]


def test_what_is_said_of_a_damaged_bundle_is_in_what_is_left_of_it() -> None:
    random = Random("damage")
    for label, files in list(bundles())[::EVERY]:
        left = remains(files, random)
        diagnosis = diagnose(Bundle.of(left))
        signals = [*diagnosis.unexplained, *(signal for finding in diagnosis.findings for signal in finding.evidence)]
        assert {place_of(signal) for signal in signals} <= left.keys(), label.name
        messages = lines(diagnosis)
        cluster = diagnosis.bundle.index.cluster
        assert messages[0].startswith(f"{cluster}, "), label.name
        titles = [line.partition(". ")[2] for line in messages if line[:1].isdigit() and ". " in line]
        expected = [f"{finding.cause.title} ({finding.cause.class_name})" for finding in diagnosis.findings]
        assert titles == expected, label.name


def test_most_causes_survive_the_damage() -> None:
    """Of one in a hundred fields and one in twenty files, the rest has the cause in four of five bundles."""
    random = Random("damage")
    broken = [(label, files) for label, files in bundles() if label.classes]
    observed = [label.classes <= diagnose(Bundle.of(remains(files, random))).classes for label, files in broken]
    assert sum(observed) >= 0.75 * len(broken)


def test_a_file_that_was_cut_off_is_named() -> None:
    """It is no answer of any service, so nothing is said of the cluster."""
    _, files = next(iter(bundles()))
    for path in (path for path in files if path.endswith(".json")):
        with pytest.raises(CommandError, match=rf"{re.escape(path)}.* not JSON"):
            diagnose(Bundle.of(files | {path: files[path][:-2]}))
