"""A disk on which there is room, however full that of the machine is."""

import shutil

import pytest


@pytest.fixture(autouse=True)
def large_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 0, 10**12))
