"""Series of a node and their price at 1,000 nodes, at both levels; and node_exporter counted where it is installed."""

import argparse
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.observability import Level
from podwright.planning.cost.series import bill, series_rows
from table import Report, markdown

TYPES = ("ml.p5en.48xlarge", "ml.p5.48xlarge", "ml.trn2.48xlarge", "ml.m5.4xlarge")
LEVELS: tuple[Level, ...] = ("basic", "advanced")
NODES = 1000
TOLERANCE = 0.15
EXPORTER = "prometheus-node-exporter"


def report(folder: Path, args: argparse.Namespace) -> Report:
    """A row for each type and level, and one for the machine that measures."""
    del folder, args
    rows, types = list[list[str]](), catalog()
    for name in TYPES:
        instance = types.find(name)
        assert instance
        for level in LEVELS:
            resolved_bill = bill(instance, NODES, level)
            counts = (f"{resolved_bill.by_basis.get(basis, 0):,}" for basis in ("measured", "documented", "assumed"))
            rows.append(
                [
                    name,
                    level,
                    f"{resolved_bill.per_node:,}",
                    *counts,
                    f"{resolved_bill.series / 1e6:.2f} million",
                    f"${resolved_bill.usd:,.0f}",
                ]
            )
    head = ["instance type", "level", "series of a node", "measured", "documented", "assumed"]
    text = markdown([*head, f"series at {NODES:,} nodes", "a month"], rows)
    note, retained = _counted_here()
    return Report(f"{text}\n\n{note}", retained)


def _counted_here() -> tuple[str, bool]:
    """What node_exporter has on this machine, against what the table says of such a one."""
    if not shutil.which(EXPORTER):
        return f"{EXPORTER} is not installed here; its rows are those of an earlier run.", True
    text = _scraped()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    things = {
        "node": 1,
        "cpu": len(_values(lines, "node_cpu_seconds_total", "cpu")),
        "interface": len(_values(lines, "node_network_receive_bytes_total", "device")),
        "disk": len(_values(lines, "node_disk_read_bytes_total", "device")),
        "mount": len(_values(lines, "node_filesystem_size_bytes", "mountpoint")),
    }
    expected = sum(row.series * things[row.per] for row in series_rows() if row.exporter == "node")
    retained = abs(len(lines) - expected) <= TOLERANCE * expected
    note = f"node_exporter on this machine: {len(lines):,} series, by the table {expected:,}"
    return f"{note} ({'kept' if retained else '**missed**'}: within {TOLERANCE:.0%}).", retained


def _values(lines: list[str], metric: str, label: str) -> set[str]:
    pattern = re.compile(rf'^{metric}{{.*{label}="([^"]*)"')
    return {match[1] for line in lines if (match := pattern.match(line))}


def _scraped() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen([EXPORTER, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        for _ in range(100):
            try:
                with opener.open(f"http://{address}/metrics") as answer:
                    return answer.read().decode()
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{EXPORTER} does not answer")
    finally:
        process.kill()
        process.wait()
