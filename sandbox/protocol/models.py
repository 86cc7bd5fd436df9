"""One copy of botocore's models of AWS's services for all sessions of the process, without their documentation.

Each session of botocore has copies of its own: the endpoints of all services (7 MB) and the models that it works with
(up to 18 MB). Each client has a class of its own with a method for each operation (0.1 MB on average).
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
    """The models of sessions. Those of boto3 add a search path, which is there already."""

    @property
    def search_paths(self) -> list[str]:
        """A list of the caller's own, so that a shared one does not grow with each session."""
        return list(super().search_paths)


class _MotoModels(moto.core.loaders.Loader):
    """The models of moto: where it has additions they are a server's, by which a client would misread answers."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        """A model with moto's additions; one without any is the sessions'."""
        added = any(Path(moto_root, service_name.replace("-", "")).glob(f"*/{type_name}.moto-extras.*"))
        models = super() if added else _of_sessions()
        return models.load_service_model(service_name, type_name, api_version)


def mount() -> None:
    """Share models and classes between all sessions and clients that are created later, moto's among them."""
    botocore.session.create_loader = lambda search_path_string=None: _of_sessions()
    moto.core.utils.create_loader = _of_moto
    ClientCreator._create_client_class = _client_class  # pyrefly: ignore[bad-assignment]


_new_class: Any = ClientCreator._create_client_class  # pyrefly: ignore[missing-attribute]
_classes: dict[str, type[BaseClient]] = {}


def _client_class(creator: ClientCreator, service_name: str, service_model: Any) -> type[BaseClient]:
    """The class of a service's clients. Two threads may create it at the same time, and one of the two is kept."""
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
    """An object of JSON whose documentation is empty; a member of a service that has this name is no text and stays."""
    return {key: "" if key == "documentation" and isinstance(value, str) else value for key, value in pairs}
