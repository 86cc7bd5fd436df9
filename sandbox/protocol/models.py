"""Shares one copy of botocore's service models, without documentation, among all sessions of the process.

By default, each session loads the endpoints of all services (7 MB) and its services' models (up to 18 MB), and each
client has its own class with a method for each operation (0.1 MB on average).
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

import boto3
import botocore.session
import moto.core.loaders
import moto.core.utils
from botocore.client import BaseClient, ClientCreator
from botocore.loaders import JSONFileLoader, Loader
from moto.core.loaders import moto_root


class _ModelFiles(JSONFileLoader):
    """Reads a file of a model into plain dictionaries."""

    def _load_file(self, full_path: str, open_method: Callable[[str, str], IO[bytes]]) -> Any:
        if not Path(full_path).is_file():
            return None
        with open_method(full_path, "rb") as file:
            return json.loads(file.read(), object_pairs_hook=_without_prose)


class _Models(Loader):
    """The models of sessions. Those of boto3 add a search path, which exists already."""

    @property
    def search_paths(self) -> list[str]:
        """Return a copy, so that the shared list does not grow with each session."""
        return list(super().search_paths)


class _MotoModels(moto.core.loaders.Loader):
    """The models of moto. Its additions are for servers; clients with them would misread responses."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        """Return a model with moto's additions; without any, the sessions' model."""
        added = any(Path(moto_root, service_name.replace("-", "")).glob(f"*/{type_name}.moto-extras.*"))
        models = super() if added else _of_sessions()
        return models.load_service_model(service_name, type_name, api_version)


def mount() -> None:
    """Share models and classes between all later sessions and clients, including moto's."""
    botocore.session.create_loader = lambda search_path_string=None: _of_sessions()
    moto.core.utils.create_loader = _of_moto
    ClientCreator._create_client_class = _client_class  # pyrefly: ignore[bad-assignment]


_new_class: Any = ClientCreator._create_client_class  # pyrefly: ignore[missing-attribute]
_classes: dict[str, type[BaseClient]] = {}


def _client_class(creator: ClientCreator, service_name: str, service_model: Any) -> type[BaseClient]:
    """Return the class of a service's clients. If two threads create it at the same time, one of the two is kept."""
    if service_name not in _classes:
        _classes.setdefault(service_name, _new_class(creator, service_name, service_model))
    return _classes[service_name]


@cache
def _of_sessions() -> _Models:
    return _Models(extra_search_paths=[str(Path(boto3.__file__).parent / "data")], file_loader=_ModelFiles())


@cache
def _of_moto() -> _MotoModels:
    return _MotoModels(extra_search_paths=[moto_root], file_loader=_ModelFiles())


def _without_prose(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object without documentation. A member named `documentation` that is no string is kept."""
    return {key: "" if key == "documentation" and isinstance(value, str) else value for key, value in pairs}
