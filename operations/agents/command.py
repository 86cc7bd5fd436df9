"""Serve the project to an agent by the Model Context Protocol, on standard input and output.

The server reads, plans and proposes. With --allow-changes it also deploys, submits and stops jobs, replaces nodes and
buys capacity. Each change needs a plan that was shown, and a person who types the environment's name when the client
asks. The server never destroys an environment, deletes data, removes protection or approves a promotion. It records
changes in .podwright/audit/mcp.jsonl. A client starts the server; its configuration names this command.
"""

import argparse
from importlib.util import find_spec

from ...config.errors import CommandError
from ..output.console import write_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright mcp`."""
    parser.add_argument("--sandbox", action="store_true", help="use the sandbox instead of the account in the file")
    parser.add_argument(
        "--allow-changes", action="store_true", help="offer tools that change a cluster; a person confirms each call"
    )
    parser.add_argument(
        "--max-upfront",
        metavar="USD",
        type=int,
        default=0,
        help="with --allow-changes: highest price of a purchase in US dollars (default: 0, no purchase)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client hangs up."""
    if find_spec("mcp") is None:
        raise CommandError("the MCP SDK is not installed", "pip install 'podwright[mcp]'", 2)
    if args.max_upfront < 0 or (args.max_upfront and not args.allow_changes):
        raise CommandError(
            f"--max-upfront {args.max_upfront} limits what --allow-changes may spend",
            "give both, and dollars from 0",
            2,
        )
    from .server import Session, server_of

    session = Session(args.project, sandbox=args.sandbox, max_upfront_usd=args.max_upfront)
    try:
        server_of(session, allow_changes=args.allow_changes).run("stdio")
    except* BrokenPipeError:
        write_note("the client went away before it had its answer")
    return 0
