"""Configurations that we write, read by the pinned Kueue itself. It ends where it would ask an API server."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from control_plane_parts import require_parts
from podwright.config.catalog.charts import KUEUE, chart
from podwright.config.catalog.facts import table
from podwright.config.settings.governance.teams import Governance
from podwright.planning.helm.kueue_values import manager_configuration
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.pins import pins

GATES = table("kueue_feature_gates")


@pytest.fixture(scope="module")
def kueue() -> Path:
    """Its program, of the version of the chart."""
    cache, part = Cache.of_user(), next(part for part in pins().parts if part.name == "kueue")
    require_parts("kueue")
    assert part.version.removeprefix("v") == chart(KUEUE).version.removeprefix("v")
    return cache.folder(part) / "kueue"


def read_by(kueue: Path, folder: Path, settings: dict[str, Any]) -> str:
    """The last thing that Kueue says with the rendered configuration of some settings."""
    governance = Governance.model_validate({"engine": "kueue", **settings})
    file = folder / "configuration.json"
    file.write_text(json.dumps(manager_configuration(governance)))
    command = [kueue, "--config", file, "--kubeconfig", folder / "missing"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"fair_share": False, "wait_for_pods": {"one_at_a_time": True, "tries": 3}}, id="waiting"),
        pytest.param({"kueue": {"feature_gates": {row["gate"]: row["default"] == "on" for row in GATES}}}, id="gates"),
    ],
)
def test_kueue_takes_what_is_rendered(kueue: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    assert "unable to get kubeconfig" in read_by(kueue, tmp_path, settings)


@pytest.mark.parametrize(
    ("gate", "switch", "refusal"),
    [
        pytest.param("PrioritizePreemptors", True, "unrecognized feature gate", id="unknown"),
        *(
            pytest.param(row["gate"], row["default"] != "on", "feature is locked", id=row["gate"])
            for row in GATES
            if row["locked"] == "yes"
        ),
    ],
)
def test_kueue_ends_with_gates_that_we_refuse(
    kueue: Path, tmp_path: Path, gate: str, switch: bool, refusal: str
) -> None:
    assert refusal in read_by(kueue, tmp_path, {"kueue": {"feature_gates": {gate: switch}}})
