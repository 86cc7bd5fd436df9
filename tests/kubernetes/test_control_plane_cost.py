"""What `bin/bench --only control-plane` measures, small and without operators: every row has seconds and memory."""

from pathlib import Path

import control_plane_cost
from control_plane_parts import require_parts


def test_environments_and_nodes_cost_memory(tmp_path: Path) -> None:
    require_parts()
    rows = control_plane_cost.rows(tmp_path, 2, 50, settled_seconds=0, operators=())
    assert [row[0].split(",")[0] for row in rows] == ["1 environment", "the same", "2 environments", "1 environment"]
    one, _, two, _ = (float(row[2].removesuffix(" MiB").replace(",", "")) for row in rows)
    assert 200 < one < two
    for row in rows:
        assert float(row[1].removesuffix(" s")) > 0
