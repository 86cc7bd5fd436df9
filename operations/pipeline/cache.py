"""Upload the archives of artifacts.lock for the builds of the pipeline, which then need no other network access.

The bucket is a cache: a build compares each archive with its digest in artifacts.lock. Run this after `podwright chart
fetch`, `podwright assets fetch` and `podwright kernels build`.
"""

import argparse
import os
from pathlib import Path

from ...config.errors import CommandError
from ...config.loading.artifacts import CACHE
from ...config.loading.project import Project
from ...planning.delivery.promotable import source_of
from ..aws.account import Account
from ..aws.objects import list_objects, upload
from ..aws.stacks import stack
from ..output.console import write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`podwright pipeline cache` takes no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Upload what is not there yet."""
    account, name = pipeline_account(Project.at(args.project))
    folder: Path = args.project / CACHE
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise CommandError(f"{folder} is empty", "`podwright chart fetch` and `podwright assets fetch` fill it")
    bucket = evidence_bucket(account, name)
    existing = {item["Key"]: item["Size"] for item in list_objects(account, bucket, "artifacts/")}
    for file in files:
        key = f"artifacts/{file.relative_to(folder).as_posix()}"
        same = existing.get(key) == file.stat().st_size
        if not same:
            upload(account, bucket, key, file)
        write_line(f"{'there   ' if same else 'uploaded'}  s3://{bucket}/{key}")
    return 0


def pipeline_account(project: Project) -> tuple[Account, str]:
    """The pipeline's account, as the process's credentials open it, and the pipeline's name."""
    settings, source = source_of(project)
    if source.on_github or settings.account is None or settings.region is None:
        raise CommandError("GitHub Actions promotes this project, so there is no pipeline in AWS", code=2)
    region = settings.region
    variables = dict(os.environ) | {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    return Account(settings.account, region, None, variables), settings.name


def evidence_bucket(account: Account, name: str) -> str:
    """The pipeline's bucket of evidence and archives. Raises CommandError where the pipeline is not deployed."""
    resolved_stack = stack(account, f"{name}-pipeline")
    if resolved_stack is None:
        raise CommandError(f"there is no stack {name}-pipeline in {account}", "`podwright pipeline deploy` makes it")
    return resolved_stack.outputs["EvidenceBucket"]
