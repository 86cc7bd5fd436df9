"""Print the JSON Schema of environment files.

Editors complete and check a file whose first line is `# yaml-language-server: $schema=` and the schema's path.
"""

import argparse

from ..config.schema import environment_schema
from .output import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`podwright schema` takes no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    write_json(environment_schema())
    return 0
