"""What an all-reduce measured, as rows: from the table of nccl-tests, or from a record of our own programs."""

import re
from dataclasses import dataclass
from typing import Any

from ...config.errors import CommandError


@dataclass(frozen=True, slots=True)
class Row:
    """One message size of nccl-tests: out-of-place columns."""

    bytes: int
    busbw: float
    """GB/s."""
    wrong: int | None
    """Elements that are not what they should be; None where that was not checked."""


def parsed(log: str) -> list[Row]:
    """The table of nccl-tests: size, count, type, operation, root, then time, algbw, busbw and errors, twice."""
    rows = list[Row]()
    for line in log.splitlines():
        words = line.split()
        if len(words) >= 9 and words[0].isdigit() and re.fullmatch(r"[0-9.]+", words[7]):
            rows.append(Row(int(words[0]), float(words[7]), int(words[8]) if words[8].isdigit() else None))
    return rows


def table_of(record: dict[str, Any], bytes_: int) -> list[Row]:
    """The all-reduce in a record of our own programs as one row. Raises CommandError where it was not measured."""
    results = {item["name"]: item for item in record["results"]}
    if "all_reduce" not in results or results["all_reduce"]["value"] is None:
        messages = "; ".join(item["reason"] for item in record["results"] if item["reason"]) or "no reason is given"
        raise CommandError(f"the nodes measured no all-reduce: {messages}", "`podwright kernels build`, and deploy")
    wrong = results.get("all_reduce_wrong", {}).get("value")
    return [Row(bytes_, results["all_reduce"]["value"], int(wrong) if wrong is not None else None)]
