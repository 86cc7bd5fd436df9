"""A plugin of pytest that writes down which calls of AWS's SDK the code of handlers makes, and with which SDK.

`RECORDED_CALLS` names the file. Loaded by tests/contract/test_lambda_sdk.py into a run of its own.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.client import BaseClient

import modelled_client

_CALLS = set[tuple[str, str, str]]()
_CLIENT: Any = BaseClient
_MAKE_CALL, _CHECK = _CLIENT._make_api_call, modelled_client.check


def _calling_handlers() -> set[str]:
    """The folders of handlers whose code is on the stack, by their paths below `constructs`."""
    folders, frame = set[str](), sys._getframe(1)
    while frame is not None:
        parts = Path(frame.f_code.co_filename).parts
        if "constructs" in parts and parts[-2] == "handler":
            folders.add("/".join(parts[parts.index("constructs") + 1 : -1]))
        frame = frame.f_back
    return folders


def _recorded(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
    _CALLS.update((folder, self.meta.service_model.service_name, operation) for folder in _calling_handlers())
    return _MAKE_CALL(self, operation, parameters)


def _checked(service: str, method: str, parameters: dict[str, Any]) -> str:
    operation = _CHECK(service, method, parameters)
    _CALLS.update((folder, service, operation) for folder in _calling_handlers())
    return operation


def pytest_configure() -> None:
    _CLIENT._make_api_call = _recorded
    modelled_client.check = _checked


def pytest_sessionfinish(session: pytest.Session) -> None:
    recorded = {"version": botocore.__version__, "calls": sorted(_CALLS)}
    Path(os.environ["RECORDED_CALLS"]).write_text(json.dumps(recorded))
