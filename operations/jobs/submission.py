"""Handing a job to a cluster: all its objects or none, by whatever way leads there."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ..kubernetes.job_manifests import Manifest, rejection
from ..kubernetes.kubectl import NO_SCHEDULER, REAL_KUBERNETES, Kubectl, Refused
from ..output.console import write_findings, write_json, write_line, write_note
from .reach import command_for, kubectl_for

_DRY_RUN: Final = "--dry-run=server"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of the commands that submit."""
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting of the job, such as nodes=4 or env.LR=1e-4; may be repeated",
    )
    parser.add_argument("--dry-run", action="store_true", help="let the API server validate the job, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def submit(
    args: argparse.Namespace, loaded: LoadedEnvironment, name: str, manifests: list[Manifest], target: Environment
) -> int:
    """Apply the manifests of a job to the cluster of `target`, and say what to type next.

    Raises:
        CommandError: the cluster cannot be reached, or refuses them.
    """
    environment, kubectl = loaded.environment.name, kubectl_for(args, target)
    if args.dry_run and not kubectl.is_real:
        hint = f"`podwright render jobs {environment} {name}` shows the job"
        raise CommandError("a store of the sandbox has no dry run", hint, 2)
    try:
        message = kubectl.apply(manifests, _DRY_RUN) if args.dry_run else _all_or_none(kubectl, manifests)
    except Refused as refused:
        findings = rejection(loaded, name, str(refused))
        write_findings(findings, sys.stderr)
        hint = "fix the settings above" if findings else "`podwright render jobs` prints what was handed over"
        raise CommandError(f"the cluster refuses {name}: {refused}", hint) from None
    job = manifests[-1]
    following = [command_for(args, "why", target.name, name), command_for(args, "logs", target.name, name, "--follow")]
    if args.json:
        objects = [_named(manifest) for manifest in manifests]
        write_json(
            {
                "job": name,
                "namespace": job["metadata"]["namespace"],
                "dry_run": args.dry_run,
                "objects": objects,
                "next": [] if args.dry_run else following,
            }
        )
        return 0
    write_line(message)
    if args.dry_run:
        write_line("The cluster would take it; nothing runs.")
    elif kubectl.is_real:
        write_line(f"Where it stands:  {following[0]}")
        write_line(f"Its log:          {following[1]}")
    else:
        write_line(f"It stays as it is: {NO_SCHEDULER}. {REAL_KUBERNETES}.")
    return 0


def _all_or_none(kubectl: Kubectl, manifests: list[Manifest]) -> str:
    """What kubectl says of manifests that the cluster has all taken.

    Of several objects kubectl makes those that the cluster takes, also where it refuses another. So the cluster is
    asked first; and where it refuses one all the same, what was made goes again.
    """
    if len(manifests) == 1:
        return kubectl.apply(manifests)
    if kubectl.is_real:
        kubectl.apply(manifests, _DRY_RUN)
    before = kubectl.existing(manifests)
    try:
        return kubectl.apply(manifests)
    except Refused:
        made = [item for item in kubectl.existing(manifests) if item not in before]
        if made:
            kubectl.delete(_of(made, manifests))
            write_note(f"podwright: took back {', '.join(made)}, so that nothing is left of it")
        raise


def _of(names: Sequence[str], manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if _named(manifest) in names]


def _named(manifest: dict[str, Any]) -> str:
    """An object as kubectl names it: `pytorchjob.kubeflow.org/llama`."""
    group = manifest["apiVersion"].rpartition("/")[0]
    kind = manifest["kind"].lower()
    return f"{kind}.{group}/{manifest['metadata']['name']}" if group else f"{kind}/{manifest['metadata']['name']}"
