"""What `bin/bench --only control-plane` measures, small: every row has seconds and memory, and nothing runs on."""

from pathlib import Path

import control_plane_cost
from needs import require
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins


def test_environments_and_nodes_cost_memory(tmp_path: Path) -> None:
    installed = all(Cache.of_user().state(part) is State.INSTALLED for part in pins().parts)
    require(installed, "the control plane: `podwright sandbox kubernetes install`")
    rows = control_plane_cost.rows(tmp_path, 2, 50)
    assert [row[0].split(",")[0] for row in rows] == ["1 environment", "the same", "2 environments", "1 environment"]
    one, _, two, _ = (float(row[2].removesuffix(" MiB").replace(",", "")) for row in rows)
    assert 500 < one < two
    for row in rows:
        assert float(row[1].removesuffix(" s")) > 0
