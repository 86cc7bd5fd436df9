"""`podwright render jobs ENV [JOB]...`: the manifests of jobs, which `podwright submit` would hand over."""

import argparse

from .deployment import load
from .job_manifests import job_manifests, yaml_text
from .output import Stop, write_line


def run(args: argparse.Namespace) -> int:
    """Write the manifests of the jobs that `args.more` names after their environment, of all when it names none."""
    args.environment, names = (args.more[0] if args.more else None), args.more[1:]
    loaded = load(args)
    jobs = job_manifests(loaded, names)
    if not jobs:
        raise Stop(
            f"{loaded.environment.name} has no jobs", "add one under `jobs`; docs/user/jobs.md shows each kind", 2
        )
    if args.out is None:
        for name, manifests in jobs.items():
            write_line(f"# jobs/{name}.yaml\n---\n{yaml_text(manifests).rstrip()}")
        return 0
    folder = args.out / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, manifests in jobs.items():
        (folder / f"{name}.yaml").write_text(yaml_text(manifests), encoding="utf-8")
    write_line(f"{len(jobs):,} files in {folder}")
    return 0
