"""An environment's objects, with the values that only its deployment knows."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ...config.catalog.images import Image
from ...config.errors import CommandError
from ...config.loading.source import read_source
from ...config.settings.environment import Environment
from ...planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION, DeployedValues, value_paths
from ..aws.account import Account
from ..cdk.deployment import deployed_stacks
from .rendered import Object, rendered

_PLACEHOLDER: Final = re.compile(r"\$\{([a-z_]+(?:\.[^}]+)?)\}")


def filled(
    environment: Environment, specified: Mapping[str, str], mirror: Mapping[str, Image]
) -> tuple[list[Object], list[str]]:
    """The objects, and the paths of the values that they need and nobody gave."""
    # A placeholder where nobody gave a value shows where in the objects it is needed.
    values = {path: specified.get(path, f"${{{path}}}") for path in value_paths(environment)}
    objects = list(rendered(environment, DeployedValues.parse(values), mirror))
    texts = chain.from_iterable(map(_texts, objects))
    missing = {path for text in texts for path in _PLACEHOLDER.findall(text)}
    # A value that no object needs is not missing.
    return objects, sorted(missing & (values.keys() - specified.keys()))


def stack_values(account: Account, environment: Environment, project: Path) -> dict[str, str]:
    """The values that the stacks of an environment have as outputs."""
    return {
        output["Description"].removeprefix(OUTPUT_DESCRIPTION): output["OutputValue"]
        for stack in deployed_stacks(account, environment.name, project)
        for output in stack.description.get("Outputs", ())
        if output.get("Description", "").startswith(OUTPUT_DESCRIPTION)
    }


def file_values(file: Path, environment: Environment) -> dict[str, str]:
    """The values that a file of the user's gives. Raises CommandError for what the environment does not have."""
    if not file.is_file():
        raise CommandError(f"--values {file} is not a file", code=2)
    data = read_source(file).data
    if not isinstance(data, dict):
        raise CommandError(f"{file} is not a mapping of values", "`podwright render --help` shows one", 2)
    specified = dict(_flat(data, ""))
    known = value_paths(environment)
    if unknown := sorted(specified.keys() - set(known)):
        raise CommandError(
            f"{file} says what {', '.join(unknown)} are, which {environment.name} does not have",
            f"it has {', '.join(known)}",
            2,
        )
    return specified


def _flat(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, str(data)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
