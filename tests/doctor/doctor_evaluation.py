"""How often doctor is right: its answers on the corpus of bundles against their labels."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from doctor_corpus import Label, bundles
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.classes import CLASSES
from podwright.operations.doctor.diagnose import Diagnosis, diagnose

ANSWERS = (*CLASSES, "healthy", "unknown")
"""What a bundle may be, and what doctor may say of it."""
NOTHING = "nothing more"
"""What was to be said, where doctor told a cause too many."""


def expected(label: Label) -> frozenset[str]:
    """What a bundle is."""
    return label.classes or frozenset({label.kind})


def told(diagnosis: Diagnosis) -> frozenset[str]:
    """What doctor says of it, in the same words."""
    return diagnosis.classes or frozenset({"healthy" if diagnosis.verdict == "well" else "unknown"})


@dataclass
class Evaluation:
    """The answers of one run over the corpus."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The confusion matrix: how often (what it is, what was said)."""
    right: Counter[str] = field(default_factory=Counter)
    """Bundles of each kind of which everything was told, and nothing else."""
    bundles: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """The others, each with what it is and what was said."""

    causes: set[str] = field(default_factory=set)
    """The ids of all causes that were told."""

    @property
    def share(self) -> float:
        """Of all bundles those that were told right."""
        return self.right.total() / self.bundles.total()

    def add(self, label: Label, diagnosis: Diagnosis) -> None:
        """Count an answer."""
        want, got = expected(label), told(diagnosis)
        self.bundles[label.kind] += 1
        self.causes |= {finding.cause.id for finding in diagnosis.findings}
        if want == got:
            self.right[label.kind] += 1
        else:
            self.wrong.append(f"{label.name}: is {', '.join(sorted(want))}, told {', '.join(sorted(got))}")
        for name in want & got:
            self.cells[name, name] += 1
        missed, extra = sorted(want - got), sorted(got - want)
        # A class that was missed stands against one that was told instead of it.
        for name, instead in zip(missed, [*extra, *["unknown"] * len(missed)], strict=False):
            self.cells[name, instead] += 1
        for name in extra[len(missed) :]:
            self.cells[NOTHING, name] += 1


def evaluate(seeds: Iterable[int] = (0,)) -> Evaluation:
    """Doctor's answers on all bundles, for each of the seeds that make their ids, times and noise."""
    evaluation = Evaluation()
    for seed in seeds:
        for label, files in bundles(seed):
            evaluation.add(label, diagnose(Bundle.of(files)))
    return evaluation
