"""How long `podwright preflight` takes: whole processes against the sandbox, and its checks where each call is slow."""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from table import Report, markdown, verdict
from timing import HELPERS, ROOT, Timing, measure

sys.path.extend(HELPERS)

import preflight_account
import preflight_answers

LIMIT = 10.0
SLOW = 0.2
PAGES = 40
"""Pages of a hundred quotas: more than SageMaker is known to have."""


class SlowAccount(preflight_account.PreflightAccount):
    """An account that takes a fifth of a second for every call, and lists SageMaker's quotas in many pages."""

    def answer(self, service: str, operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """As any account's; only with the last page are the quotas that are wanted there."""
        pages = super().answer(service, operation, request)
        many = operation == "list_service_quotas" and request["ServiceCode"] == "sagemaker"
        time.sleep(SLOW * (PAGES if many else 1))
        return pages


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The command as a whole; then the checks in a slow account, without and with codes of an earlier run."""
    (folder / "environments").mkdir()
    (folder / "environments/sandbox.yaml").write_text((ROOT / "environments/sandbox.yaml").read_text())
    command = [str(ROOT / ".venv/bin/podwright"), "preflight", "sandbox", "--project", str(folder)]
    measure([*command[:1], "deploy", "--bootstrap", *command[2:]], runs=0, env={"NO_COLOR": "1", **os.environ})
    whole = measure(command, runs=args.runs)
    measure([*command[:1], "sandbox", "stop", *command[3:]], runs=0)
    rows = [["`podwright preflight sandbox`, deployed", str(whole), f"≤ {LIMIT:g} s", verdict(whole.median, LIMIT)]]
    first, later, checks = _slow()
    what = f"{checks} checks, each call {SLOW:g} s, {PAGES} pages of quotas"
    rows.append([f"{what}: the first run, without a limit", str(first), "to compare", ""])
    rows.append(
        [f"{what}: a later run, which knows the codes", str(later), f"≤ {LIMIT:g} s", verdict(later.median, LIMIT)]
    )
    retained = max(whole.median, later.median) <= LIMIT
    return Report(markdown(["preflight", "median (range)", "limit", ""], rows), retained)


def _slow() -> tuple[Timing, Timing, int]:
    codes: dict[str, dict[str, str]] = {}
    named = preflight_answers.quotas()(ServiceCode="sagemaker")["Quotas"]

    def by_code(**request: Any) -> dict[str, Any]:
        service = codes[request["ServiceCode"]]
        name = next(name for name, code in service.items() if code == request["QuotaCode"])
        return {"Quota": preflight_answers.quota(name, 100.0) | {"QuotaCode": request["QuotaCode"]}}

    timings: list[float] = []
    outcomes: list[Any] = []
    for _ in range(3):
        slow_account = SlowAccount({("service-quotas", "get_service_quota"): by_code})
        started = time.monotonic()
        outcomes = preflight_account.examine(slow_account, preflight_account.NEW, codes=codes)
        timings.append(time.monotonic() - started)
        codes["sagemaker"] = {row["QuotaName"]: f"L-{number:08}" for number, row in enumerate(named)}
    assert statistics.median(timings[1:]) < timings[0]
    return Timing((timings[0],), 0), Timing(tuple(timings[1:]), 0), len(outcomes)
