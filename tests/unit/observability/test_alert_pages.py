"""Every alert has a page, whose facts are those of the code, and `podwright explain` prints it."""

import re
from pathlib import Path

import pytest

from podwright.config.catalog.metrics import metrics
from podwright.operations.cli import COMMANDS, main
from podwright.planning.monitoring.alerts import RUNBOOKS, alerts
from podwright.planning.monitoring.alerts.pages import header, needs_advanced, page
from podwright.planning.monitoring.alerts.table import markdown
from podwright.planning.monitoring.collected import names_in
from podwright.planning.monitoring.recordings import recordings

_PARTS = ("**Where to look**", "**To fix it:**")


def test_a_page_each_and_no_other() -> None:
    assert sorted(file.stem for file in RUNBOOKS.glob("*.md")) == sorted(alerts())


def test_pages_say_what_the_code_says() -> None:
    odd, known = [], {command.name for command in COMMANDS}
    for name, alert in alerts().items():
        text = page(name)
        if not text.startswith(header(alert) + "\n"):
            odd.append(f"{name}: the page does not begin with what the code says")
        odd += [f"{name}: {part} is missing" for part in _PARTS if part not in text]
        odd += [f"{name}: podwright {word}" for word in set(re.findall(r"`podwright ([a-z]+)", text)) - known]
    assert not odd, "\n".join(odd)


def test_alerts_and_recordings_read_what_there_is() -> None:
    known = {*metrics(), *(item.name for item in recordings())}
    read = {name for item in (*alerts().values(), *recordings()) for name in names_in(item.expression)}
    assert read - known == set()
    assert len(read) > 50


def test_what_the_level_advanced_adds() -> None:
    needing = {name for name, alert in alerts().items() if needs_advanced(alert)}
    # Directly, and through a recording.
    assert {"GpuThrottling", "EfaErrors", "GoodputLow"} <= needing
    assert "GpuXid" not in needing


def test_explain_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gpuxid"]) == 0
    assert capsys.readouterr().out.startswith("# GpuXid\n")


def test_explain_names_what_is_close(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GpuXids"]) == 2
    assert "GpuXid" in capsys.readouterr().err


def test_the_table_of_the_operators_page_is_of_the_code() -> None:
    written = (Path(__file__).parents[3] / "docs" / "operator" / "alerts.md").read_text(encoding="utf-8")
    assert markdown() in written
