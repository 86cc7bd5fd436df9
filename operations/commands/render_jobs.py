"""`podwright render jobs ENV [JOB]...`: the manifests and scripts of jobs, which `podwright submit` would hand over."""

import argparse

from ...config.errors import CommandError
from ...config.settings.jobs.patch import fields, patch_of
from ..arguments import load
from ..kubernetes.job_manifests import batch_scripts, job_manifests, recipes, yaml_text
from ..kubernetes.manifest_files import write_files
from ..output.console import write_text


def run(args: argparse.Namespace) -> int:
    """Write the manifests of the jobs that `args.more` names after their environment, of all when it names none."""
    args.environment, names = (args.more[0] if args.more else None), args.more[1:]
    loaded = load(args)
    jobs = loaded.environment.jobs
    files = {
        f"{name}.yaml": _patched(jobs[name].patch) + yaml_text(manifests)
        for name, manifests in job_manifests(loaded, names).items()
    }
    files |= {f"{name}.sh": text for name, text in (recipes(loaded, names) | batch_scripts(loaded, names)).items()}
    if not files:
        raise CommandError(
            f"{loaded.environment.name} has no jobs", "add one under `jobs`; docs/user/jobs.md shows each kind", 2
        )
    if args.out is None:
        for file, text in files.items():
            write_text(f"# jobs/{file}\n---\n{text.rstrip()}")
        return 0
    write_files(args.out / "jobs", files, some=bool(names))
    return 0


def _patched(patch: str | None) -> str:
    """A comment that names each field that a job's patch changes, so that who reads the manifest knows."""
    if patch is None:
        return ""
    changed = [path for path, _, value in fields(patch_of(patch)) if not isinstance(value, dict | list)]
    return "".join(f"# by `patch`: {path}\n" for path in changed)
