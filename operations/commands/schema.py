"""Print the JSON Schema of environment files.

Editors use it for a file whose first line is `# yaml-language-server: $schema=` and the path of the schema. Files that
`extends:` merges have their own schema, in which nothing is required.
"""

import argparse

from ...config.loading.schema import environment_schema
from ..output.console import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright schema`."""
    parser.add_argument("--part", action="store_true", help="print the schema of files that `extends:` merges")


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    write_json(environment_schema(part=args.part))
    return 0
