"""Which form a text has, and the reader of that form."""

from collections.abc import Mapping

from .comma_separated import read_csv
from .slurm_accounting import read_sacct
from .trace import Trace, UnreadableTrace
from .workload_list import read_workloads


def read_trace(text: str, teams: Mapping[str, str]) -> Trace:
    """The trace in a text: Workloads of Kueue as JSON, Slurm's accounting, or CSV.

    Args:
        text: What a file holds.
        teams: Teams by their namespace.

    Raises:
        UnreadableTrace: it has none of these forms.
    """
    first, _, rest = text.lstrip("\ufeff \n").partition("\n")
    if not first:
        raise UnreadableTrace(1, "the trace is empty", "docs/user/simulation.md shows each form")
    if first[0] in "{[":
        return read_workloads(text, teams)
    if "JobID" in first.split("|"):
        return read_sacct(f"{first}\n{rest}")
    if "," not in first:
        forms = "CSV with a header, `kubectl get workloads -o json`, and `sacct --parsable2`"
        raise UnreadableTrace(1, f"{first[:60]!r} begins no trace", f"these are read: {forms}")
    return read_csv(text.lstrip("\ufeff"))
