"""docs/user/jobs.md says of each kind what has run on real nodes: the cases of test_jobs_on_real_nodes.py."""

from pathlib import Path
from typing import get_args

from job_cases import CASES, NOT_RUN
from podwright.config.settings.jobs.jobs import AnyJob

PAGE = Path(__file__).parents[3] / "docs/user/jobs.md"


def test_the_page_has_a_row_for_each_case_and_each_kind_that_does_not_run() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Kinds that have run\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    expected = [case.row for case in CASES.values()]
    expected += [f"| `{kind}` | {reason} | none | |" for kind, reason in NOT_RUN.items()]
    assert rows == expected


def test_every_kind_is_in_the_table_once_or_more() -> None:
    kinds = {get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(AnyJob)[0])}
    assert {case.kind for case in CASES.values()} | NOT_RUN.keys() == kinds
    assert not {case.kind for case in CASES.values()} & NOT_RUN.keys()
