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
from podwright.operations.doctor.knowledge import SYMPTOM

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


RULE_LOST = ("image-name-invalid", "instance-failed-no-reason", "internal-failure")
"""Bundles that lost the rule of a security group as a whole. What is left is the answer for a group without it."""


def test_damage_makes_no_cause() -> None:
    """What a service says itself, such as that scripts failed, is told where the log that explains it is lost."""
    random = Random("damage")
    inventing = set()
    for label, files in bundles():
        damage = diagnose(Bundle.of(remains(files, random))).findings
        causes = {finding.cause.class_name for finding in damage if finding.cause.rank > SYMPTOM}
        if causes - diagnose(Bundle.of(files)).classes:
            inventing.add(label.name)
    assert inventing == set(RULE_LOST)


def test_a_file_that_ends_in_the_middle_makes_no_cause() -> None:
    for label, files in list(bundles())[::EVERY]:
        classes = diagnose(Bundle.of(files)).classes
        for path in files.keys() - {"bundle.json"}:
            damage = diagnose(Bundle.of(files | {path: files[path][: len(files[path]) // 2]})).findings
            causes = {finding.cause.class_name for finding in damage if finding.cause.rank > SYMPTOM}
            assert causes <= classes, f"{label.name} without the end of {path}"


def test_a_file_that_ends_in_the_middle_is_named_with_its_line() -> None:
    """Nothing of it counts, and the others do."""
    _, files = next(iter(bundles()))
    for path in (path for path in files if path != "bundle.json" and len(files[path]) > 2):
        lines_left = files[path].rstrip()[:-2].splitlines()
        diagnosis = diagnose(Bundle.of(files | {path: "\n".join(lines_left)}))
        assert [f"{path}:{len(lines_left)}" in reason for reason in diagnosis.bundle.unseen.values()] == [True]
        assert f"{path}:{len(lines_left)}" in " ".join(lines(diagnosis))


def test_an_index_that_was_cut_off_is_refused() -> None:
    _, files = next(iter(bundles()))
    with pytest.raises(CommandError, match=r"bundle.json is not JSON"):
        Bundle.of(files | {"bundle.json": files["bundle.json"][:-2]})
