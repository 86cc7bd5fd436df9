"""What sentences show: the causes that they are signs of, and noise that is none."""

import pytest

from doctor_examples import EXAMPLES, NOISE
from podwright.operations.doctor.evidence import Kind
from podwright.operations.doctor.knowledge import shown_by


@pytest.mark.parametrize(("cause", "kind", "text"), EXAMPLES, ids=[f"{item[0]}-{item[1]}" for item in EXAMPLES])
def test_a_sentence_shows_its_cause(cause: str, kind: Kind, text: str) -> None:
    shown = shown_by(text, kind, running=False)
    assert shown is not None
    assert shown.id == cause


@pytest.mark.parametrize(("kind", "text"), NOISE)
def test_noise_shows_nothing(kind: Kind, text: str) -> None:
    assert shown_by(text, kind, running=False) is None
