"""Which test file a shard runs next: the longest first, so that all shards end at about the same time."""

from collections.abc import Mapping, Sequence

import records
from records import Record

FIRST = ("tests/stories/test_shared_platform.py",)
"""Files that mostly wait, and for longer than any other: each is the first file of a shard."""
GROUPS = ("tests/kubernetes/",)
"""Folders whose files share a session fixture: a control plane, which takes half a minute to start."""
GROUP_START_SECONDS = 60.0
"""A second shard takes files of a group only while more CPU seconds than this remain in it."""


class Worklist:
    """The test files that no shard has taken yet."""

    def __init__(self, files: Sequence[str], recorded: Mapping[str, Record]) -> None:
        self._seconds = {file: records.expected_seconds(recorded, file) for file in files}
        self._owners: dict[str, set[int]] = {group: set() for group in GROUPS}

    def __len__(self) -> int:
        return len(self._seconds)

    def take(self, shard: int) -> str | None:
        """The next file for a shard, or None if the shard is done."""
        file = self._choose(shard)
        if file is not None:
            del self._seconds[file]
            if group := _group(file):
                self._owners[group].add(shard)
        return file

    def _choose(self, shard: int) -> str | None:
        for file in FIRST:
            if file in self._seconds:
                return file
        # A group counts as one long file until a shard owns it.
        own = [group for group, owners in self._owners.items() if shard in owners]
        free = [group for group, owners in self._owners.items() if not owners]
        if files := [file for file in self._seconds if _group(file) in own]:
            return self._longest(files)
        sums = {group: self._sum(group) for group in free}
        files = [file for file in self._seconds if _group(file) in (None, *free)]
        if files:
            return max(files, key=lambda file: (sums.get(_group(file) or "", self._seconds[file]), self._key(file)))
        shared = [file for file in self._seconds if self._sum(_group(file) or "") > GROUP_START_SECONDS]
        return self._longest(shared) if shared else None

    def _sum(self, group: str) -> float:
        return sum(seconds for file, seconds in self._seconds.items() if file.startswith(group))

    def _longest(self, files: Sequence[str]) -> str:
        return max(files, key=self._key)

    def _key(self, file: str) -> tuple[float, str]:
        return self._seconds[file], file


def _group(file: str) -> str | None:
    return next((group for group in GROUPS if file.startswith(group)), None)
