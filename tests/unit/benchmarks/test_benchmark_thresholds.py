"""The lines that benchmarks are judged by: none is beyond what the hardware can do, and none fails without a figure."""

from itertools import product

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.lifecycle_scripts.podwright_benchmarks.judge import THRESHOLDS, bound

LINES = THRESHOLDS["lines"]
# One direction of the links of one GPU, and its peak rates, by the data sheets: A100, H100, H200, B200, B300, GB200.
NVLINK = {"A100": 300, "H100": 450, "H200": 450, "B200": 900, "B300": 900, "GB200": 900}
BF16 = {"A100": 312, "H100": 989, "H200": 989, "B200": 2250, "B300": 2250, "GB200": 2500}
HBM = {"A100": 2039, "H100": 3350, "H200": 4800, "B200": 8000, "B300": 8000, "GB200": 8000}


def physical(name: str, instance_type: str, nodes: int) -> float:
    """What the data sheets allow, worked out here once more."""
    row = catalog().get(instance_type)
    gpu, count = row.accelerator_name, row.accelerator_count
    if nodes > 1:
        # Everything that n GPUs on k nodes exchange with other nodes has to pass the network of each node.
        return row.network_gbps / 8 * (nodes * count - 1) / ((nodes - 1) * count)
    if name == "efa_loopback":
        return row.network_gbps / 8 / row.efa_interfaces
    if name in ("host_to_device", "device_to_host"):
        return {"A100": 32, "B300": 128, "GB200": 450}.get(gpu, 64)
    if name.startswith("gemm"):
        return BF16[gpu] * (2 if name == "gemm_fp8" else 1)
    if name.startswith("hbm"):
        return HBM[gpu]
    # The switches of Hopper and Blackwell add up what passes them: each GPU sends and receives everything only once.
    factor = 2 * (count - 1) / count if name == "all_reduce" and gpu != "A100" else 1
    return NVLINK[gpu] * (2 if name == "pair_both" else factor)


def cases() -> list[tuple[str, str, int, dict]]:
    return [
        (name, kind, line["nodes"], line)
        for line in LINES
        for name, kind in product(line["names"], line["instance_types"])
    ]


def test_no_line_is_beyond_the_physical_bound():
    wrong = []
    for name, instance_type, nodes, line in cases():
        most = physical(name, instance_type, nodes)
        values = [line[key] for key in ("fail_below", "warn_below", "measured") if line[key] is not None]
        # A line that fails lies below one that warns, and that below what was measured.
        if line["bound"] > most * 1.001 or values != sorted(values) or not all(0 < value <= most for value in values):
            wrong.append(f"{instance_type} × {nodes}: {name} {line}; the hardware does {most}")
    assert wrong == []
    assert len(cases()) > 100


def test_a_line_fails_only_with_a_published_measurement():
    unfounded = [line for line in LINES if line["fail_below"] is not None and line["measured"] is None]
    assert unfounded == []
    assert [line for line in LINES if not line["source"]] == []


def test_each_measurement_of_a_type_has_one_line():
    keys = [(name, kind, nodes) for name, kind, nodes, _ in cases()]
    assert len(keys) == len(set(keys))


def test_networks_are_those_of_the_catalog():
    for name, network in THRESHOLDS["networks"].items():
        row = catalog().get(name)
        assert network == {"gb_per_second": row.network_gbps / 8, "gpus": row.accelerator_count}


@pytest.mark.parametrize(
    ("instance_type", "nodes", "most"),
    [
        ("ml.p5.48xlarge", 2, 750),
        ("ml.p5en.48xlarge", 4, 516.7),
        ("ml.p5e.48xlarge", 8, 450),
        ("ml.p4d.24xlarge", 2, 93.75),
        ("ml.p5.48xlarge", 1000, 400),
    ],
)
def test_what_a_network_allows(instance_type, nodes, most):
    assert bound(instance_type, nodes) == pytest.approx(most, rel=0.002)


def test_lines_that_others_use_for_several_nodes_are_beyond_the_bound():
    # 800 and 300 GB/s, asked for by a public health check of two nodes and more.
    assert (bound("ml.p5.48xlarge", 2) or 0) < 800
    assert (bound("ml.p4d.24xlarge", 2) or 0) < 300


def test_one_node_has_no_bound_by_its_network():
    assert bound("ml.p5.48xlarge", 1) is None
    assert bound("ml.m5.4xlarge", 2) is None
