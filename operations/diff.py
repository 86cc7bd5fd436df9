"""Show what a deployment would change in AWS or in the sandbox, permissions included. Nothing is changed."""

import argparse

from .deployment import add_environment, cdk_for, load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright diff`."""
    add_environment(parser)


def run(args: argparse.Namespace) -> int:
    """Print the differences; returns the CDK CLI's exit code."""
    loaded = load(args)
    cdk = cdk_for(args, loaded)
    return cdk.run("diff", f"{loaded.environment.name}/*")
