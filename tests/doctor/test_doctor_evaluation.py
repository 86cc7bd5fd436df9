"""Doctor is right on the corpus, which others worded from public reports."""

from doctor_evaluation import evaluate

ENOUGH = 0.95


def test_doctor_is_right_on_the_corpus() -> None:
    evaluation = evaluate()
    assert evaluation.share >= ENOUGH, "\n".join(evaluation.wrong)
    assert evaluation.right["healthy"] == evaluation.bundles["healthy"], "\n".join(evaluation.wrong)
