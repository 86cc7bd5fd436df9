"""Mutated environment files: none may end in a traceback, and what `check` passes has to synthesize."""

import argparse
import random
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from podwright.operations.programs.node import use_bundled_node
from table import Report, markdown, verdict
from timing import HELPERS

sys.path.extend(HELPERS)

from mutations import Mutation, Outcome, examine, mutation

FILES, SYNTHESIZED, LIMIT_SECONDS = 2000, 50, 2.0


@dataclass(frozen=True)
class Refusal:
    """A file that `check` passes and synthesis refuses: a bug that wants a rule."""

    seed: int
    origin: str
    reason: str


def refusals(passed: list[tuple[Mutation, Outcome]], folder: Path) -> list[Refusal]:
    """Synthesize environments as stages of one app, validated; what is refused, and why."""
    use_bundled_node()
    import aws_cdk as cdk

    from podwright.operations.artifacts.stand_ins import stand_ins
    from podwright.planning.resolved import resolve
    from podwright.stacks.feature_flags import FEATURE_FLAGS
    from podwright.stacks.stage import TrainingStage

    actual = []
    for mutated, outcome in passed:
        assert outcome.environment
        app = cdk.App(
            outdir=str(folder / f"seed-{mutated.seed}"),
            context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True},
        )
        try:
            environment = outcome.environment
            resolved = resolve(environment, charts=stand_ins(environment))
            TrainingStage(app, environment.name, resolved=resolved)
            app.synth()
        except Exception as error:  # noqa: BLE001  whatever it is, it is what this looks for
            actual.append(Refusal(mutated.seed, mutated.origin, str(error)[-500:]))
    return actual


def report(folder: Path, args: argparse.Namespace) -> Report:
    """2,000 files through `check`, and 50 of those that pass through a validated synthesis."""
    del args
    slowest, tracebacks, passed = 0.0, 0, []
    for seed in range(FILES):
        mutated = mutation(seed)
        try:
            outcome = examine(mutated)
        except Exception:  # noqa: BLE001  whatever it is, it is what this looks for
            tracebacks += 1
            sys.stderr.write(f"seed {seed} ({mutated.origin}):\n{traceback.format_exc()}\n")
            continue
        slowest = max(slowest, outcome.seconds)
        if outcome.passed:
            passed.append((mutated, outcome))
    chosen = sorted(random.Random(0).sample(passed, SYNTHESIZED), key=lambda pair: pair[0].seed)
    refused = refusals(chosen, folder)
    for refusal in refused:
        sys.stderr.write(f"seed {refusal.seed} ({refusal.origin}) passes check but not synthesis: {refusal.reason}\n")
    rows = [
        [f"files, seeds 0–{FILES - 1}", f"{FILES}", "", ""],
        ["tracebacks", str(tracebacks), "0", verdict(tracebacks, 0)],
        ["slowest file", f"{slowest:.3f} s", f"≤ {LIMIT_SECONDS:g} s", verdict(slowest, LIMIT_SECONDS)],
        ["pass `check`", str(len(passed)), "", ""],
        [f"of {SYNTHESIZED} of them, refused by synthesis", str(len(refused)), "0", verdict(len(refused), 0)],
    ]
    table = markdown(["mutated files", "measured", "limit", ""], rows)
    seeds = ", ".join(str(mutated.seed) for mutated, _ in chosen)
    retained = not tracebacks and not refused and slowest <= LIMIT_SECONDS
    return Report(f"{table}\n\nSeeds synthesized: {seeds}.", retained)
