"""From a bundle to a diagnosis: what is wrong now, what causes it, and what nobody can explain."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from .bundle import Bundle
from .cluster_signals import cluster_signals, event_signals, service_signals
from .evidence import Signal
from .knowledge import EXACT, SYMPTOM, Cause, knowledge, shown_by
from .kubernetes_signals import node_signals, pod_signals, workload_signals
from .log_signals import deep_check_signals, health_signals, lifecycle_signals
from .scene import scene_of
from .stack_signals import stack_signals
from .state_signals import state_signals

_READERS: Final = (
    cluster_signals,
    event_signals,
    service_signals,
    state_signals,
    stack_signals,
    lifecycle_signals,
    health_signals,
    deep_check_signals,
    node_signals,
    pod_signals,
    workload_signals,
)
_LOGS: Final = ("lifecycle", "pod_log")
Verdict = Literal["well", "explained", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, and the evidence for it."""

    cause: Cause
    evidence: tuple[Signal, ...]
    """The clearest first."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """What it concerns."""
        return tuple(dict.fromkeys(signal.subject for signal in self.evidence))

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "id": self.cause.id,
            "class": self.cause.class_name,
            "title": self.cause.title,
            "subjects": list(self.subjects),
            "evidence": [_plain(signal) for signal in self.evidence],
            "fix": self.cause.fix,
            "sources": [asdict(source) for source in self.cause.sources],
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What doctor has to say of a bundle."""

    bundle: Bundle
    findings: tuple[Finding, ...]
    """The most exact first."""
    unexplained: tuple[Signal, ...]
    """What is wrong and follows from none of them."""

    @property
    def verdict(self) -> Verdict:
        """well: nothing is wrong; unknown: something is, and no cause was found."""
        if self.findings:
            return "explained"
        return "unknown" if self.unexplained else "well"

    @property
    def classes(self) -> frozenset[str]:
        """The classes of the causes."""
        return frozenset(finding.cause.class_name for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as plain data."""
        index = self.bundle.index
        return {
            "cluster": index.cluster,
            "environment": index.environment,
            "taken": index.taken.isoformat(),
            "verdict": self.verdict,
            "causes": [finding.to_json() for finding in self.findings],
            "unexplained": [_plain(signal) for signal in self.unexplained],
            "unseen": self.bundle.unseen,
        }


def _plain(signal: Signal) -> dict[str, Any]:
    return {
        "subject": signal.subject,
        "text": signal.text,
        "place": signal.place,
        "time": signal.time.isoformat() if signal.time else None,
    }


def diagnose(bundle: Bundle) -> Diagnosis:
    """What is wrong with the cluster of a bundle, and why."""
    scene = scene_of(bundle)
    symptoms: list[Signal] = []
    matches: list[tuple[Cause, Signal]] = []
    for signals in _by_log(signal for read in _READERS for signal in read(bundle, scene)):
        symptoms += [signal for signal in signals if signal.symptom and not knowledge().noise.search(signal.text)]
        matches += _matches(signals)
    # First all matches, as a more exact one may come from a source that is read later.
    retained = [match for match in matches if not _explained(match, matches)]
    # A consequence is told only where nothing explains it, and a job's own end never explains the cluster.
    evidence: dict[Cause, list[Signal]] = defaultdict(list)
    for cause, signal in retained:
        evidence[cause].append(signal)
    findings = [
        Finding(cause, tuple(dict.fromkeys(signals)))
        for cause, signals in evidence.items()
        # What is a mere symptom counts as a cause only where something is wrong at all.
        if cause.rank > SYMPTOM or _concerns_a_symptom(signals, symptoms)
    ]
    # By id last, so that two runs on one bundle print the same.
    findings.sort(key=lambda finding: (-finding.cause.rank, -len(finding.evidence), finding.cause.id))
    return Diagnosis(bundle, tuple(findings), tuple(_unexplained(symptoms, [signal for _, signal in matches])))


def _concerns_a_symptom(signals: Sequence[Signal], symptoms: Sequence[Signal]) -> bool:
    return any(symptom.follows_from(signal) for signal in signals for symptom in symptoms)


def _by_log(signals: Iterator[Signal]) -> Iterator[list[Signal]]:
    """The signals, those of one log together."""
    logs: dict[str, list[Signal]] = defaultdict(list)
    for signal in signals:
        if signal.kind in _LOGS:
            logs[signal.place.rpartition(":")[0]].append(signal)
        else:
            yield [signal]
    yield from logs.values()


def _matches(signals: Sequence[Signal]) -> list[tuple[Cause, Signal]]:
    """The causes that signals show: of a log the last one that is more than a symptom, else the first symptom."""
    if not signals or signals[0].kind not in _LOGS:
        return [match for signal in signals if (match := _best(signal))]
    best: tuple[Cause, Signal] | None = None
    # The end of a log tells what ended it; earlier lines are often tries that went well later.
    for signal in reversed(signals):
        match = _best(signal)
        if match and (best is None or match[0].rank > best[0].rank):
            best = match
            if best[0].rank > SYMPTOM + 1:
                break
    return [best] if best else []


def _best(signal: Signal) -> tuple[Cause, Signal] | None:
    cause = shown_by(signal.text, signal.kind, signal.running)
    return (cause, signal) if cause else None


def _explained(match: tuple[Cause, Signal], others: Sequence[tuple[Cause, Signal]]) -> bool:
    """Whether a more exact cause of the same thing explains it.

    What a log of a node shows happened there: a message about its group explains it only if it is about how things
    stand, such as a plan that has ended.
    """
    cause, signal = match
    own = (signal.kind in _LOGS and cause.rank > SYMPTOM) or signal.kind == "lifecycle"
    return any(
        other.rank > cause.rank
        and signal.follows_from(theirs)
        # A log shows what happened on this very node, which an event of the whole group does not explain away.
        and not (own and theirs.subject in signal.around - {signal.subject} and other.rank <= EXACT)
        for other, theirs in others
    )


def _unexplained(symptoms: Sequence[Signal], matched: Sequence[Signal]) -> Iterator[Signal]:
    messages: set[str] = set()
    for symptom in symptoms:
        # One line for each subject: a group that is short says so in several places.
        if symptom.subject in messages or any(symptom.follows_from(signal) for signal in matched):
            continue
        messages.add(symptom.subject)
        yield symptom
