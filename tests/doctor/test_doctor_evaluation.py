"""Doctor is right on the corpus, which others worded from public reports."""

import pytest

from doctor_evaluation import Evaluation, evaluate
from doctor_examples import EXAMPLES
from podwright.operations.doctor.knowledge import knowledge

ENOUGH = 0.95


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate()


def test_doctor_is_right_on_the_corpus(evaluation: Evaluation) -> None:
    assert evaluation.share >= ENOUGH, "\n".join(evaluation.wrong)
    assert evaluation.right["healthy"] == evaluation.bundles["healthy"], "\n".join(evaluation.wrong)


def test_every_cause_is_tried(evaluation: Evaluation) -> None:
    tried = evaluation.causes | {cause for cause, _, _ in EXAMPLES}
    assert [cause.id for cause in knowledge().causes if cause.id not in tried] == []
