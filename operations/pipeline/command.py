"""Promote by a pipeline of your own: what it does, how accounts are prepared for it, and what its builds call.

`show`, `synth` and `bootstrap` need no account. `deploy` is run once by a person; after that the pipeline deploys
itself. `cache` hands fetched archives to its builds, and `wait` and `protect` are called by them.
"""

import argparse

from ..arguments import add_project
from ..command_help import HelpFormatter
from . import bootstrap, cache, deploy, show, synth
from .builds import protecting, waiting

_VERBS = {
    "show": (show, "print the steps of a promotion, what each runs and in which place"),
    "synth": (synth, "synthesize all that is promoted, and what promotes it, to cdk.out"),
    "bootstrap": (bootstrap, "print the commands that prepare each account, with policies for what the templates hold"),
    "deploy": (deploy, "deploy the pipeline, or the roles that GitHub Actions takes on"),
    "cache": (cache, "hand the archives of artifacts.lock to the pipeline's builds"),
    "wait": (waiting, "wait for earlier promotions when the pipeline itself would change"),
    "protect": (protecting, "protect stacks from being deleted, as their templates say"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, (module, help_text) in _VERBS.items():
        verb = verbs.add_parser(name, help=help_text, description=module.__doc__)
        verb.formatter_class = HelpFormatter
        module.add_arguments(verb)
        # The same as the whole command has, so that it may stand behind the verb.
        add_project(verb)
        verb.set_defaults(verb=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return args.verb(args)
