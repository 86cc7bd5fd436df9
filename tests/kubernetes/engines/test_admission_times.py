"""What `bin/bench --only admission` measures, with few teams: all that fit are admitted, and run."""

from pathlib import Path

import yaml

import admission_times
from control_plane_parts import require_parts


def test_two_teams_get_what_they_are_guaranteed(tmp_path: Path) -> None:
    require_parts("kueue")
    times = admission_times.admit(tmp_path, 2)
    assert 0 < times.created < times.admitted <= times.running


def test_the_scenarios_nodes_have_what_fifty_teams_own() -> None:
    content = admission_times.environment(50)
    nodes = {"p5": 60, "p4d": 25, "g5": 15}
    scenario = yaml.safe_load(admission_times.SCENARIO.read_text())
    assert {name: scenario["instance_groups"][name]["count"] for name in nodes} == nodes
    assert content["instance_groups"] == scenario["instance_groups"]
    for group, guaranteed in admission_times.GUARANTEED.items():
        assert guaranteed * 50 <= nodes[group] * 8
        assert admission_times.ASKED[group] > guaranteed
    assert len(content["jobs"]) == 1000
    assert admission_times.fitting(50) == 750
