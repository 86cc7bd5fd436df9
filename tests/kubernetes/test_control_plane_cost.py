"""What `bin/bench --only control-plane` measures, small and without operators: every row has seconds and memory."""

from pathlib import Path

import control_plane_cost
from control_plane_parts import require_parts


def test_environments_and_nodes_cost_memory(tmp_path: Path) -> None:
    require_parts()
    rows = control_plane_cost.rows(tmp_path, 1, 20, settled_seconds=0, operators=())
    assert [row[0] for row in rows] == ["1 environment", "the same, started again", "1 environment, with 20 nodes"]
    for row in rows:
        assert float(row[2].removesuffix(" MiB")) > 200
    for row in rows:
        assert float(row[1].removesuffix(" s")) > 0
