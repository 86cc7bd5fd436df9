"""How long the Kubernetes objects of many teams and the manifests of their jobs take, and how that grows."""

import argparse
import sys
from pathlib import Path

from table import Report, markdown, verdict
from timing import measure_in_turn

LARGE, SMALL, GROUPS = 200, 20, 8
JOBS_EACH = 2.5
# Ten times the teams and jobs may take ten times as long, and the start of a process besides.
GROWTH = 10
ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network: {{cidr: 10.0.0.0/16, zones: [usw2-az2, usw2-az3]}}
cluster: {{zones: [usw2-az2, usw2-az3], eks: {{admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}}}
platform: {{training_operator: {{}}, cert_manager: {{}}}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 4, zone: usw2-az2}}
{groups}
governance:
  engine: kueue
  priorities: {{training: 70, tests: 50}}
  teams:
{teams}
jobs:
{jobs}
"""


def environment(teams: int) -> str:
    """So many teams with a GPU in each of 8 groups, and 500 jobs for 200 of them."""
    groups = [
        f"  g{number}: {{instance_type: ml.g5.48xlarge, count: {-(-teams // 8)}, zone: usw2-az2}}"
        for number in range(GROUPS)
    ]
    quota = ", ".join(f"g{number}: {{accelerators: 1}}" for number in range(GROUPS))
    jobs = [
        f"  job-{number}: {{kind: hyperpod_pytorch, team: team-{number % teams}, group: g{number % GROUPS}, "
        f"priority: training, image: registry.example.com/train, accelerators: 1, command: [train.py]}}"
        for number in range(round(teams * JOBS_EACH))
    ]
    return ENVIRONMENT.format(
        groups="\n".join(groups),
        teams="\n".join(f"    team-{number}: {{quota: {{{quota}}}}}" for number in range(teams)),
        jobs="\n".join(jobs),
    )


def report(folder: Path, args: argparse.Namespace) -> Report:
    """`podwright render` and `podwright render jobs` as whole processes, for all and for a tenth."""
    commands = {}
    for teams in (LARGE, SMALL):
        file = folder / f"teams-{teams}.yaml"
        file.write_text(environment(teams))
        for name, words in (("objects", ("render",)), ("jobs", ("render", "jobs"))):
            arguments = (*words, str(file), "--out", str(folder / f"{name}-{teams}"))
            commands[f"{name} {teams}"] = ([sys.executable, "-m", "podwright.operations.cli", *arguments], {})
    timings = measure_in_turn(commands, runs=args.runs)
    rows, retained = [], True
    for name, what in (("objects", f"quotas in {GROUPS} flavors"), ("jobs", "manifests of their jobs")):
        large, small = timings[f"{name} {LARGE}"], timings[f"{name} {SMALL}"]
        growth = large.median / small.median
        retained = retained and growth <= GROWTH
        shown = [f"{growth:.1f} ×", f"≤ {GROWTH} ×", verdict(growth, GROWTH)]
        rows.append([f"{LARGE} teams: {what}", str(large), f"{large.peak_mib:.0f} MiB", str(small), *shown])
    header = ["whole process", "median (range)", "largest process", f"{SMALL} teams", "growth", "limit", ""]
    return Report(markdown(header, rows), retained)
