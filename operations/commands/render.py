"""Write the Kubernetes objects of an environment as YAML, for review or for GitOps.

These are the objects that a deployment applies. For jobs, use `podwright render jobs ENV [JOB]...`. Values that only a
deployment knows, such as file system ids, come from the stacks, or from a `--values` file such as:

    lustre:
      lustre:
        id: fs-0123456789abcdef0
        dns_name: fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com
        mount_name: abcdefgh

The command deletes files that an earlier run wrote to the folder and that no object needs now. It leaves all other
files.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config.catalog.images import Image
from ...config.catalog.regions import regions
from ...config.errors import CommandError
from ...config.loading.artifacts import read_artifacts
from ...config.settings.environment import Environment
from ...planning.helm.mirrors import mirror_of
from ...planning.helm.wanted_charts import wanted_charts
from ...planning.kubernetes.deployed_values import known_values
from ..arguments import account_for, add_environment, load
from ..kubernetes.filled import file_values, filled, stack_values
from ..kubernetes.manifest_files import write_files
from ..kubernetes.rendered import placed
from ..output.console import write_note, write_text
from ..programs.node import use_bundled_node
from . import render_jobs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright render`."""
    add_environment(parser)
    parser.add_argument("more", nargs="*", metavar="...", help="after `jobs`: an environment, and names of jobs")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="write the files into this folder (default: print them)"
    )
    parser.add_argument("--values", metavar="FILE", type=Path, help="YAML file with values of deployed stacks")


def run(args: argparse.Namespace) -> int:
    """Write the objects, or jobs where the first word is `jobs`."""
    if args.environment == "jobs":
        return render_jobs.run(args)
    if args.more:
        raise CommandError(
            f"{args.more[0]} is one word too many", "one environment, or `jobs`, an environment and its jobs", 2
        )
    use_bundled_node()
    environment = load(args).environment
    mirror = mirror_of(environment, read_artifacts(args.project))
    specified = known_values(environment, _dns_suffix(environment))
    if args.values:
        specified |= file_values(args.values, environment)
    objects, missing = filled(environment, specified, mirror)
    if missing and not args.values:
        try:
            account = account_for(args, environment)
        except CommandError as stop:
            raise CommandError(
                f"{', '.join(missing)} of {environment.name} are in its stacks, and {stop}",
                f"give them in a file with --values, or: {stop.hint}",
            ) from None
        specified |= stack_values(account, environment, args.project)
        objects, missing = filled(environment, specified, mirror)
    if missing:
        raise CommandError(
            f"nobody says what {', '.join(missing)} of {environment.name} are",
            "deploy the environment first, or give them in a file with --values",
        )
    files = {file: _yaml(items) for file, items in placed(objects).items()} | _chart_values(environment, mirror)
    if not files:
        write_note(f"{environment.name} has no Kubernetes objects")
    if args.out is None:
        for file, text in sorted(files.items()):
            write_text(f"# {file}\n---\n{text.rstrip()}")
        return 0
    write_files(args.out, files)
    return 0


def _chart_values(environment: Environment, mirror: Mapping[str, Image]) -> dict[str, str]:
    """The values of each chart, which objects may need and a deployment installs as a Helm release."""
    return {
        f"charts/{desired.chart.name}.values.yaml": (
            f"# Values of chart {desired.chart.name} {desired.chart.version}, for a release in namespace "
            f"{desired.chart.namespace}.\n{_yaml([dict(desired.values)])}"
        )
        for desired in wanted_charts(environment, mirror)
    }


def _yaml(documents: list[Any]) -> str:
    import cdk8s

    return cdk8s.Yaml.stringify(*documents)


def _dns_suffix(environment: Environment) -> str:
    region = regions().get(environment.region)
    return "amazonaws.com.cn" if region and region.partition == "aws-cn" else "amazonaws.com"
