"""Print the results of the benchmarks, and draw them: of one node from its file, or of all nodes of an environment.

A node keeps its results in /var/lib/podwright/benchmarks.json, and uploads them to the lifecycle bucket.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from ...config.catalog.names import benchmark_prefix, lifecycle_bucket_name
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.benchmark_results import BenchmarkResults
from ..arguments import open_target
from ..aws.account import Account
from ..aws.objects import list_objects, read_text
from ..output.console import write_json, write_line
from ..output.moving import under_way
from .picture import picture
from .table import write_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright bench`."""
    parser.add_argument("action", choices=["show"], help="print results")
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path, help="benchmark results of nodes, as JSON files")
    parser.add_argument(
        "--environment", metavar="ENV", help="print the latest results of all nodes of this environment"
    )
    parser.add_argument("--sandbox", action="store_true", help="use the sandbox instead of the account in the file")
    parser.add_argument("--out", metavar="FILE", type=Path, help="draw the results as SVG into this file")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace) -> int:
    """Print, and draw where asked to."""
    if bool(args.files) == bool(args.environment):
        raise CommandError("name result files, or --environment ENV", "podwright bench show --help", code=2)
    runs = [parsed(path.read_text(encoding="utf-8"), str(path)) for path in _existing(args.files)]
    if args.environment:
        target = open_target(args)
        under_way("reading what nodes published")
        runs = published(*target)
    if args.json:
        write_json([run.model_dump(mode="json") for run in runs])
    else:
        write_tables(runs)
    if args.out:
        args.out.write_text(picture(runs), encoding="utf-8")
        if not args.json:
            write_line(f"Picture: {args.out}")
    return 0


def parsed(text: str, source: str) -> BenchmarkResults:
    """Results of a node.

    Raises:
        CommandError: the text is not what nodes of this version write.
    """
    try:
        return BenchmarkResults.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        position = ".".join(map(str, first["loc"]))
        raise CommandError(
            f"{source} is not a node's results: {position or 'the whole'}: {first['msg']}", _SCHEMA
        ) from None
    except ValueError as error:
        raise CommandError(f"{source} is not JSON: {error}", _SCHEMA) from None


_SCHEMA = "the form is docs/benchmark.schema.json; results of a newer podwright need that podwright"


def published(environment: Environment, account: Account) -> list[BenchmarkResults]:
    """The latest results of every node that has published some, those of nodes that are gone included.

    Raises:
        CommandError: there are none.
    """
    bucket = environment.storage.buckets.lifecycle or lifecycle_bucket_name(
        environment.name, environment.account, environment.region
    )
    prefix = f"{benchmark_prefix(environment.cluster.name)}/results/"
    keys = sorted(item["Key"] for item in list_objects(account, bucket, prefix))
    if not keys:
        raise CommandError(
            f"no node has published results below s3://{bucket}/{prefix}",
            f"deploy {environment.name} with groups whose benchmarks are report or gate; nodes publish when they boot",
        )
    texts = ((key, read_text(account, bucket, key)) for key in keys)
    # A node that is replaced may take its results away while they are read.
    return [parsed(text, f"s3://{bucket}/{key}") for key, text in texts if text is not None]


def _existing(files: Sequence[Path]) -> Sequence[Path]:
    if missing := [str(path) for path in files if not path.is_file()]:
        raise CommandError(f"{', '.join(missing)}: no such file", code=2)
    return files
