"""Print the JSON Schema of environment files.

Editors complete and check a file whose first line is `# yaml-language-server: $schema=` and the schema's path. Files
that `extends:` joins have a schema of their own, in which nothing is required.
"""

import argparse

from ...config.loading.schema import environment_schema
from ..output.console import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright schema`."""
    parser.add_argument("--part", action="store_true", help="of files that others extend, or that extend others")


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    write_json(environment_schema(part=args.part))
    return 0
