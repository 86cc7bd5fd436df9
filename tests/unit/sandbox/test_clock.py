"""The sandbox's clock, by which repairs end and events are sent."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.sandbox.server import application


def test_an_error_stops_neither_the_clock_nor_other_accounts(caplog: pytest.LogCaptureFixture) -> None:
    ticks = list[str]()

    def fail(bus: object) -> bool:
        raise TimeoutError("the sandbox does not answer itself")

    def account(name: str, tick: Any) -> SimpleNamespace:
        return SimpleNamespace(
            account=name, bus=SimpleNamespace(tick=lambda: None), hyperpod=SimpleNamespace(tick=tick)
        )

    accounts = [account("first", fail), account("second", lambda bus: ticks.append("second") or True)]
    sandbox = object.__new__(application.Sandbox)
    sandbox.accounts_by_id = SimpleNamespace(all=lambda: accounts)  # pyrefly: ignore[bad-assignment]
    sandbox._changed = threading.Event()
    sandbox.tick()
    sandbox.tick()
    assert ticks == ["second", "second"]
    assert "the clock of account first continues after" in caplog.text
    assert sandbox._changed.is_set()
