"""What `podwright diff` knows, how often it is right on pairs of templates, and what it takes."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from table import Report, markdown, verdict
from timing import HELPERS

sys.path.extend(HELPERS)

from effect_cases import CASES, edited, reviewed
from podwright.config.catalog.facts import DATA, table
from podwright.operations.effects.changes import changes
from podwright.operations.effects.templates import pairs
from podwright.planning.delivery.effects import Effect

_CPU_LIMIT = 0.5


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Rows by effect, pairs that came out as their facts say, and the CPU time of the largest comparison."""
    del folder, args
    right, spent = 0, list[float]()
    for case in CASES:
        both = pairs(reviewed(case.environment), edited(case))
        start = time.process_time()
        resource_changes = changes(both, case.environment)
        spent.append(time.process_time() - start)
        right += {
            f"{item.type.rpartition('::')[2]} {item.action} {item.effect}" for item in resource_changes
        } == case.touches
    types = json.loads((DATA / "create_only.json").read_text())
    rows = Counter(row["effect"] for row in table("effects"))
    resources = sum(len(template["Resources"]) for template in reviewed("prod").values())
    retained = right == len(CASES) and max(spent) <= _CPU_LIMIT
    return Report(
        markdown(
            ["", "", "limit", ""],
            [
                ["pairs of templates whose effects are as documented", f"{right} of {len(CASES)}", "all", ""],
                ["types whose create-only properties are known", f"{len(types):,}", "", ""],
                ["rows of the effect table", f"{rows.total()}", "", ""],
                *([f"… {effect.words}", str(rows[effect]), "", ""] for effect in Effect if rows[effect]),
                [
                    f"CPU time to compare the {resources} resources of prod, slowest of {len(CASES)} edits",
                    f"{1000 * max(spent):.0f} ms",
                    f"≤ {1000 * _CPU_LIMIT:.0f} ms",
                    verdict(max(spent), _CPU_LIMIT),
                ],
            ],
        ),
        retained,
    )
