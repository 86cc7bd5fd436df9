"""botocore's models of AWS's services, read once for all sessions of a test process.

Each session otherwise reads the endpoints of all services and the models of its clients again: 0.1 CPU seconds for each
client of the hundreds that commands create in tests.
"""

from functools import cache
from typing import Any

import botocore.session
from botocore.loaders import JSONFileLoader, Loader


class _ModelFiles(JSONFileLoader):
    def load_file(self, file_path: str) -> Any:
        return _content(file_path)


class _Models(Loader):
    """The models in the search paths of one session."""

    def list_available_services(self, type_name: str) -> list[str]:
        return list(_services(tuple(self.search_paths), type_name))


_FILES = _ModelFiles()


@cache
def _content(path: str) -> Any:
    return JSONFileLoader().load_file(path)


@cache
def _services(paths: tuple[str, ...], type_name: str) -> list[str]:
    return Loader(extra_search_paths=paths, include_default_search_paths=False).list_available_services(type_name)


def _loader(search_path_string: str | None = None) -> _Models:
    assert search_path_string is None, "AWS_DATA_PATH is not set in tests"
    return _Models(file_loader=_FILES)


def share() -> None:
    """Share the models between sessions that are created later."""
    botocore.session.create_loader = _loader
