"""Progress of an installation: the number of parts, the share of each, and the remaining time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .pins import KUBERNETES, Part, Pins


@dataclass(slots=True)
class Progress:
    """The parts of one installation, in order.

    Expected times are those of a recorded build, scaled by the pace of the parts built so far.
    """

    parts: Sequence[Part]
    compiled: frozenset[str]
    """Folders of the parts that Go builds; the others take seconds."""
    pins: Pins
    _recorded: float = field(default=0.0, init=False)
    _taken: float = field(default=0.0, init=False)

    def expected(self, part: Part) -> float:
        """Return the seconds that a part is expected to take on this machine; 0 for one that is only unpacked."""
        return self._pace * self._weight(part)

    def remaining(self, part: Part) -> float:
        """Return the seconds that a part and all parts after it are expected to take."""
        return sum(map(self.expected, self.parts[self.parts.index(part) :]))

    def started(self, part: Part) -> str:
        """Describe the next part, such as `part 3 of 5, 38 % of the build, about 2 min 41 s`."""
        words = f"part {self.parts.index(part) + 1} of {len(self.parts)}"
        if not self._weight(part):
            return words
        share = 100 * self._weight(part) / sum(map(self._weight, self.parts))
        words += f", {share:.0f} % of the build, about {duration(self.expected(part))}"
        left = self.remaining(part)
        return words + (f" of the {duration(left)} that are left" if left > self.expected(part) else "")

    def finished(self, part: Part, seconds: float) -> None:
        """Add the duration of a part to the pace."""
        if weight := self._weight(part):
            self._recorded += weight
            self._taken += seconds

    @property
    def _pace(self) -> float:
        """Seconds on this machine for each recorded second."""
        return self._taken / self._recorded if self._recorded else 1.0

    def _weight(self, part: Part) -> float:
        """Return the recorded seconds of a part. A further minor version of Kubernetes takes what the default took."""
        if part.folder not in self.compiled:
            return 0.0
        return self.pins.build_seconds.get(part.name, self.pins.build_seconds.get(KUBERNETES, 0.0))


def duration(seconds: float) -> str:
    """Return a duration as text, such as 12 s or 4 min 7 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
