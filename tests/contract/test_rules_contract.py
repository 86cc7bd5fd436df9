"""What the rules promise as a whole: no traceback for any file, and no time that anybody notices."""

import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from mutations import Outcome, examine, mutation
from podwright.config.findings import errors
from podwright.config.loading.project import Project
from podwright.planning.rules import findings

ROOT = Path(__file__).parents[2]
SEEDS = 300
_LIBRARIES = """
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, StringConstraints, Tag, model_validator
import yaml
class Model(BaseModel):
    number: int = Field(ge=0)
"""
_OURS = "import podwright.config.loading.project, podwright.planning.rules\n"
_COUNTED = """
import sys
events = []
sys.setprofile(lambda frame, event, argument: events.append(event) if "call" in event else None)
{}
sys.setprofile(None)
print(len(events))
"""
_BUILT = """
from podwright.config.settings.base import Settings
models = [Settings]
for model in models:
    models += model.__subclasses__()
print(len(models) > 100, [model.__name__ for model in models if model.__pydantic_complete__])
"""


def test_mutated_files_end_in_findings_and_in_time() -> None:
    """`bin/bench --only mutations` does the same with 2,000, and synthesizes some of those that pass."""
    assert {seed: outcome(seed).seconds for seed in range(SEEDS) if outcome(seed).seconds >= 2} == {}


def test_mutations_fail_and_pass() -> None:
    """If all failed or all passed, they would prove little."""
    passed = [seed for seed in range(SEEDS) if outcome(seed).passed]
    assert SEEDS // 5 < len(passed) < SEEDS * 4 // 5


@cache
def outcome(seed: int) -> Outcome:
    return examine(mutation(seed))


def test_a_seed_always_gives_the_same_file() -> None:
    assert [mutation(seed) for seed in range(20)] == [mutation(seed) for seed in range(20)]


def test_our_environments_have_no_errors() -> None:
    loaded = {name: Project.at(ROOT).load(name) for name in Project.at(ROOT).names}
    refused = {name: errors(findings(each.environment, each.source)) for name, each in loaded.items()}
    assert {name: items for name, items in refused.items() if items} == {}


def test_rules_take_no_time_that_anybody_notices() -> None:
    loaded = Project.at(ROOT).load("prod")
    assert min(_seconds(lambda: findings(loaded.environment, loaded.source)) for _ in range(20)) < 0.05


def test_importing_the_rules_builds_no_validators() -> None:
    """The file's environment builds those of all its parts; a default is written `Model.model_construct()`."""
    command = [sys.executable, "-P", "-c", _OURS + _BUILT]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "True []\n"


def test_importing_the_rules_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 3.5 times the calls of functions that pydantic and the YAML library take; 3.2 were counted.

    Calls, as they are the same on every machine. `podwright check` has its limit in docs/measurements.md.
    """
    # An installed podwright is byte-compiled; a fresh checkout is not.
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    # As the command sets it: the search for plugins takes calls for each package that happens to be installed.
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "__all__")
    assert calls(_LIBRARIES + _OURS) < 3.5 * calls(_LIBRARIES)


def calls(program: str) -> int:
    """The calls of functions that a program takes once it is byte-compiled."""
    command = [sys.executable, "-P", "-c", _COUNTED.format(program)]
    subprocess.run(command, check=True, capture_output=True)
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _seconds(call) -> float:
    start = time.process_time()  # the machine may be busy
    call()
    return time.process_time() - start
