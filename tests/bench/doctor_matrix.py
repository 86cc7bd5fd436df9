"""Doctor on whole bundles: how often it is right, and what it takes for what."""

import argparse
import sys
import time
from pathlib import Path

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

from doctor_evaluation import ANSWERS, NOTHING, Evaluation, evaluate

LEAST_SHARE = 0.95
SEEDS = range(10)
KINDS = {"one": "one cause", "two": "two causes", "healthy": "healthy, with noise", "unknown": "unknown"}


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The share of right answers by kind of bundle, and the confusion matrix of the corpus as it is published."""
    del folder, args
    start = time.process_time()
    evaluation = evaluate()
    each = (time.process_time() - start) / evaluation.bundles.total()
    seeds = evaluate(SEEDS)
    rows = [
        [
            shown,
            f"{evaluation.right[kind]} of {evaluation.bundles[kind]}",
            _percent(seeds.right[kind], seeds.bundles[kind]),
        ]
        for kind, shown in KINDS.items()
    ]
    total, many = evaluation.bundles.total(), seeds.bundles.total()
    rows.append(["all", f"{evaluation.right.total()} of {total}", _percent(seeds.right.total(), many)])
    rows.append(["CPU time of a bundle, made and read", f"{1000 * each:.0f} ms", ""])
    table = markdown(["bundles", "right", f"right with {len(SEEDS)} seeds"], rows)
    wrong = "\n".join(f"- {line}" for line in evaluation.wrong) or "No bundle was told wrong."
    return Report(f"{table}\n\n{wrong}\n\n{_matrix(evaluation)}", evaluation.share >= LEAST_SHARE)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _matrix(evaluation: Evaluation) -> str:
    """The confusion matrix as text: a row for what a bundle is, a column for what doctor said, in the same order."""
    rows = [*ANSWERS, NOTHING]
    width = max(map(len, rows))
    head = " " * (width + 4) + "".join(f"{number:>4}" for number in range(1, len(ANSWERS) + 1))
    lines = [head]
    for number, row in enumerate(rows, 1):
        counts = (evaluation.cells[row, column] for column in ANSWERS)
        cells = "".join(f"{count or '·':>4}" for count in counts)
        lines.append(f"{number if row != NOTHING else '':>2}  {row:<{width}}{cells}")
    return "```text\n" + "\n".join(lines) + "\n```"
