"""Print an environment with all defaults, and with its subnets.

The command merges the files that the environment extends. Lines marked `default` are in none of the files. A setting
that is not printed is off or empty.
"""

import argparse
import sys
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from ...config.catalog.instance_types import environment_types
from ...config.findings import Path, dotted
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.network.cidrs import usable
from ...planning.rules.network.addresses import demand_of_subnet
from ...planning.rules.network.network import planned
from ..arguments import add_name
from ..output.console import write_json, write_text

_COMMENTS = 60  # column of the marks
# What is special to an engine, under `governance`.
_SECTIONS = {"hyperpod": "task_governance", "kueue": "kueue", "kai": "kai", "yunikorn": "yunikorn"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright show`."""
    add_name(parser)
    parser.add_argument("--origins", action="store_true", help="print file and line of each value")
    parser.add_argument("--json", action="store_true", help="print all settings as JSON, also those that are off")


def run(args: argparse.Namespace) -> int:
    """Print the environment."""
    loaded = Project.at(args.project).load(args.environment)
    settings = loaded.environment.model_dump(mode="json", by_alias=True)
    subnets = _subnets(loaded.environment)
    if args.json:
        locations = {
            dotted(path): str(position)
            for path, position in sorted(loaded.source.positions.items(), key=lambda item: tuple(map(str, item[0])))
        }
        write_json({"settings": settings, "subnets": subnets} | ({"origins": locations} if args.origins else {}))
        return 0
    other = "slurm" if loaded.environment.cluster.orchestrator == "eks" else "eks"
    if ("cluster", other) not in loaded.source.positions:
        # A copy of what is printed would say that it is wanted.
        del settings["cluster"][other]
    for engine, section in _SECTIONS.items():
        if engine != loaded.environment.governance.engine and ("governance", section) not in loaded.source.positions:
            del settings["governance"][section]
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(_marked(settings, (), loaded, args.origins), sys.stdout)
    write_text("\n# Subnets, and the addresses that the nodes take: at full count, and while a batch is replaced")
    write_text(f"#   {'zone':<14} {'role':<14} {'range':<18} {'usable':>7} {'taken':>7} {'replacing':>9}")
    for row in subnets:
        counts = f"{row['taken']:>7,} {row['replacing']:>9,}  {row['sums']}" if row["role"] == "nodes" else ""
        write_text(f"#   {row['zone']:<14} {row['role']:<14} {row['range']:<18} {row['usable']:>7,} {counts}".rstrip())
    return 0


def _subnets(environment: Environment) -> list[dict[str, Any]]:
    """The subnets of the network, by address. Ranges that cannot be computed are a finding of `check`."""
    types = environment_types(environment.instance_types)
    rows = []
    for subnet in sorted(planned(environment.network), key=lambda subnet: subnet.block):
        row = {"zone": subnet.zone, "role": subnet.role, "range": str(subnet.block), "usable": usable(subnet.block)}
        if subnet.role == "nodes":
            need = demand_of_subnet(environment, subnet, types)
            row |= {"taken": need.full, "replacing": need.replacing, "sums": need.sums}
        rows.append(row)
    return rows


def _has_lines(value: Any) -> bool:
    """Whether it is written on lines of its own, which carry their own comments."""
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and isinstance(value[0], dict)))


def _marked(value: Any, path: Path, loaded: LoadedEnvironment, origins: bool) -> Any:
    """`value` for ruamel's writer: what the file does not say carries a comment, with `origins` everything."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return CommentedSeq(_marked(item, (*path, index), loaded, origins) for index, item in enumerate(value))
    if isinstance(value, list):
        flow = CommentedSeq(value)
        flow.fa.set_flow_style()
        return flow
    if not isinstance(value, dict):
        return value
    marked = CommentedMap()
    for key, item in value.items():
        below = (*path, key)
        specified = below in loaded.source.positions
        marked[key] = _marked(item, below, loaded, origins)
        if not specified and (item is None or marked[key] in ({}, [])):
            del marked[key]
        elif not specified and not isinstance(marked[key], CommentedMap):
            marked.yaml_add_eol_comment("default", key, column=_COMMENTS)
        elif origins and specified and not _has_lines(marked[key]):
            marked.yaml_add_eol_comment(str(loaded.source.positions[below]), key, column=_COMMENTS)
        elif not path and isinstance(marked[key], CommentedMap):
            marked.yaml_set_comment_before_after_key(key, before="\n")
    return marked
