"""Promote environments by a pipeline: print its steps, prepare its accounts, deploy it.

`show`, `synth` and `bootstrap` need no account. A person runs `deploy` once; after that the pipeline deploys itself.
`cache` uploads fetched archives for the builds. The builds call `wait` and `protect`.
"""

import argparse

from ..arguments import add_project
from . import bootstrap, cache, deploy, show, synth
from .builds import protecting, waiting

_VERBS = {
    "show": (show, "print the steps of a promotion, with commands and roles"),
    "synth": (synth, "synthesize all promoted environments and the pipeline to cdk.out"),
    "bootstrap": (bootstrap, "print the commands that prepare each account, and write its policies"),
    "deploy": (deploy, "deploy the pipeline, or the roles of GitHub Actions"),
    "cache": (cache, "upload the archives of artifacts.lock for the builds"),
    "wait": (waiting, "wait until earlier promotions end, if the pipeline itself changes"),
    "protect": (protecting, "enable termination protection of stacks, as their templates say"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, (module, help_text) in _VERBS.items():
        verb = verbs.add_parser(name, help=help_text, description=module.__doc__)
        module.add_arguments(verb)
        # The same as the whole command has, so that it may stand behind the verb.
        add_project(verb)
        verb.set_defaults(verb=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return args.verb(args)
