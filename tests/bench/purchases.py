"""Purchases of training plans: how many ways of going wrong they are put through, and how many end badly."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from table import Report, markdown, verdict
from timing import HELPERS

sys.path.extend(HELPERS)

from podwright.planning.purchase import run as plan_run
from purchase_cases import FLOWS, MUTATIONS, RANDOM_SCHEDULES, VARIANTS, Case, every_case, random_case, violations

LIMIT_SECONDS = 40.0


def report(folder: Path, args: argparse.Namespace) -> Report:
    """All cases and schedules, then the cases without the lock and without the look-up up to the first bad end."""
    del folder, args
    rows, bad, start = [], 0, time.process_time()
    for flow in FLOWS:
        cases = [case for variant in VARIANTS for case in every_case(flow, variant)]
        actual = len(list(violations(iter(cases))))
        rows.append(
            [f"{flow}: cases, and those that end badly", f"{len(cases):,}, {actual}", "0 bad", verdict(actual, 0)]
        )
        bad += actual
    actual = len(list(violations(random_case(seed) for seed in range(RANDOM_SCHEDULES))))
    rows.append([f"random schedules, seeds 0–{RANDOM_SCHEDULES - 1}", f"{actual} bad", "0 bad", verdict(actual, 0)])
    seconds = time.process_time() - start
    rows.append(["CPU time of all", f"{seconds:.0f} s", f"≤ {LIMIT_SECONDS:.0f} s", verdict(seconds, LIMIT_SECONDS)])
    noticed = True
    for name, without in (("write", "lock"), ("find", "look-up")):
        firsts = []
        for flow in FLOWS:
            with mock.patch.object(plan_run, name, MUTATIONS[name]):
                firsts.append(_first_bad(case for variant in VARIANTS for case in every_case(flow, variant)))
        shown = ", ".join(str(first) if first else "none" for first in firsts)
        rows.append(
            [
                f"without the {without}, first bad case of {', '.join(FLOWS)}",
                shown,
                "found",
                verdict(firsts.count(None), 0),
            ]
        )
        noticed = noticed and all(firsts)
    return Report(
        markdown(["purchases", "measured", "limit", ""], rows), not bad and seconds <= LIMIT_SECONDS and noticed
    )


def _first_bad(cases: Iterator[Case]) -> int | None:
    return next((number for number, (_, case) in enumerate(cases, 1) if case()), None)
