"""Check, synthesize and deploy an environment: to AWS with your credentials, or to the sandbox on this machine.

An environment of account 123456789012 uses the sandbox, and so does any other with --sandbox. Without ENV the command
deploys the only environment of the project, or the one named sandbox. The same command resumes an interrupted
deployment. On AWS it first runs the checks of `podwright preflight` and `podwright diff`. It refuses a change that
replaces or deletes data, buys capacity, or removes nodes from a running group, unless --allow names it.
"""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.findings import Finding, counted, errors
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.delivery.missing_artifacts import missing_artifacts
from ...planning.helm.chart_types import chart_type_findings
from ...planning.rules import findings
from ..arguments import add_environment, load
from ..aws.account import is_sandboxed
from ..aws.sandbox_clusters import announce_cluster
from ..cdk.cli import Cdk
from ..cdk.deployment import bootstrap, cdk_for, deployed_stacks, failure, wait_for_earlier_run, watch
from ..cdk.progress import Progress
from ..effects.approval import stop_unapproved
from ..effects.document import change_set
from ..effects.show import lines
from ..effects.templates import resources, synthesized
from ..live.cluster_table import report, write_report
from ..output.confirm import confirm
from ..output.console import write_findings, write_json, write_line, write_note
from ..output.moving import under_way
from ..output.tables import Table, new_table
from ..preflight.command import summary
from ..preflight.inquiry import findings_of, preflight
from ..preflight.stand_ins import make_stand_ins
from ..programs.helm import tool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright deploy`."""
    add_environment(parser)
    parser.add_argument("--yes", action="store_true", help="do not show the changes and do not ask for confirmation")
    parser.add_argument(
        "--no-preflight", dest="preflight", action="store_false", help="do not run the preflight checks"
    )
    parser.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="allow the deployment to replace, delete, buy or shrink NAME of `podwright diff`; may be repeated",
    )
    parser.add_argument(
        "--plan", metavar="DIGEST", help="deploy only the change set with this digest of `podwright diff`"
    )
    parser.add_argument("--bootstrap", action="store_true", help="bootstrap the AWS account for the CDK if necessary")
    parser.add_argument("--json", action="store_true", help="print stacks, groups and nodes as JSON")


def run(args: argparse.Namespace) -> int:
    """Deploy, and print what is there afterwards."""
    return deploy(args)


def deploy(args: argparse.Namespace, counts: Mapping[str, int] | None = None, *, quiet: bool = False) -> int:
    """Deploy with `counts` in place of the file's numbers of nodes, and print what is there afterwards unless `quiet`.

    Returns the exit code.
    """
    loaded = load(args)
    environment = loaded.environment
    checked = findings_before(loaded, args.project, sandbox=args.sandbox)
    write_findings(checked, sys.stderr)
    if errors(checked):
        write_note(f"nothing was deployed: {counted(checked)}")
        return 1
    if environment.cluster.orchestrator == "eks" and is_sandboxed(environment, args.sandbox):
        # The sandbox installs charts and manifests with them, minutes from here.
        tool("helm"), tool("kubectl")
    progress = Progress()
    cdk = cdk_for(args, loaded, counts)
    write_note(f"{environment.name} → {cdk.account}")
    if cdk.account.endpoint:
        announce_cluster(environment, cdk.account)
    if args.preflight and cdk.account.endpoint is None and not _is_healthy(args, loaded, cdk, progress):
        return 1
    bootstrap(cdk, progress, args.bootstrap)
    # What the file says exists was made in its account, or in the sandbox's own.
    if cdk.account.endpoint and environment.account != SANDBOX_ACCOUNT:
        make_stand_ins(environment, cdk.account)
    wait_for_earlier_run(cdk, progress)
    asked = not args.yes and cdk.account.endpoint is None
    if asked and not sys.stdin.isatty():
        raise CommandError("a confirmation needs a terminal", "--yes deploys without showing the changes and asking", 2)
    first = not deployed_stacks(cdk.account, cdk.environment, cdk.project)
    options = ("--require-approval", "never", "--progress", "events", "--concurrency", "4")
    # A plan that a person reads appears sooner without the validator, which then runs after the confirmation.
    with cdk.synthesized(progress, validated=not asked) as assembly:
        if asked or args.plan is not None or _has_something_to_lose(environment, cdk):
            _review_changes(args, loaded, cdk, assembly.folder, asked)
        cdk.validate(assembly, progress)
        watch(cdk, progress, partial(_resource_count, assembly.folder, cdk.environment))
        if cdk.follow(progress, "deploy", f"{environment.name}/*", *options, assembly=assembly):
            raise failure(cdk, progress, assembly)
    for stack in deployed_stacks(cdk.account, cdk.environment, cdk.project):
        if stack.name not in progress.touched:
            progress.say(stack.name, "no changes")
    write_note(f"{environment.name}: deployed in {progress.elapsed}")
    if quiet:
        return 0
    under_way(f"reading {environment.cluster.name}")
    resolved_report = report(environment, cdk.account, args.project)
    if args.json:
        write_json(resolved_report)
    else:
        write_report(resolved_report)
        if first:
            write_line()
            write_line(_next_steps(environment, sandbox=args.sandbox))
    return 0


def findings_before(loaded: LoadedEnvironment, project: Path, *, sandbox: bool) -> list[Finding]:
    """What is found in the files before anything is deployed."""
    environment = loaded.environment
    checked = findings(environment, loaded.source)
    # In the sandbox stand-ins take the place of charts and archives that nobody has fetched.
    if is_sandboxed(environment, sandbox):
        return checked
    return [
        *checked,
        *missing_artifacts(project, environment),
        *chart_type_findings(project, environment, loaded.source),
    ]


def _is_healthy(args: argparse.Namespace, loaded: LoadedEnvironment, cdk: Cdk, progress: Progress) -> bool:
    """Whether the account has nothing that would make the deployment fail; prints what it has."""
    # Whether the account is bootstrapped is looked at next, with what to do about it.
    under_way("looking at the account")
    outcomes = preflight(loaded, cdk.account, args.project, left_out=("PRE001",))
    progress.say("preflight", summary(outcomes))
    resolved_findings = findings_of(outcomes)
    write_findings(resolved_findings, sys.stderr)
    if errors(resolved_findings):
        words = "--no-preflight deploys in spite of this"
        write_note(f"nothing was deployed: {counted(resolved_findings)}; {words}")
    return not errors(resolved_findings)


def _resource_count(assembly: Path, environment: str, stack: str) -> int:
    """Returns the number of resources of a synthesized stack and of the stacks nested in it."""
    templates = synthesized(assembly, environment)
    names = [name for name in templates if name == stack or name.startswith(f"{stack}/")]
    return sum(len(resources(templates[name])) for name in names)


def _next_steps(environment: Environment, *, sandbox: bool) -> Table:
    """What somebody does after a first deployment."""
    where = " --sandbox" if sandbox else ""
    steps = [(f"podwright report {environment.name}", "one HTML file on what was deployed")]
    if environment.jobs:
        steps.append((f"podwright submit {environment.name} {next(iter(environment.jobs))}{where}", "a first job"))
    if environment.observability:
        steps.append((f"podwright dashboards preview {environment.name}", "its dashboards, without a Grafana"))
    return new_table("Next", (), steps)


def _has_something_to_lose(environment: Environment, cdk: Cdk) -> bool:
    """Whether a deployment may do harm: there is something deployed, or something to buy."""
    buys = any(plan.state == "purchase" for plan in environment.training_plans.values())
    return buys or bool(deployed_stacks(cdk.account, cdk.environment, cdk.project))


def _review_changes(args: argparse.Namespace, loaded: LoadedEnvironment, cdk: Cdk, assembly: Path, asked: bool) -> None:
    """Stop where the deployment would do harm that nobody named, or, on a terminal, have somebody name it.

    `asked`: show the change set, and continue only after a yes.
    """
    under_way("comparing with what is deployed")
    resolved_set = change_set(loaded.environment, cdk.account, cdk.project, assembly, args.allow)
    if args.plan not in (None, resolved_set.digest):
        raise CommandError(
            f"nothing was deployed: the change set is {resolved_set.digest} now, and not {args.plan}",
            f"`podwright diff {cdk.environment}` shows what has changed",
        )
    harm = [need for need in resolved_set.approvals if need.refused and not need.approved]
    if asked or harm:
        for line in lines(resolved_set):
            write_note(line)
    if harm and sys.stdin.isatty():
        for name in dict.fromkeys(need.name for need in harm):
            confirm(name, f"accept that {'; '.join(need.why for need in harm if need.name == name)}")
    else:
        stop_unapproved(cdk.environment, resolved_set.approvals, resolved_set.digest)
    if asked and input(f"Deploy these changes to {cdk.account}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was deployed")
