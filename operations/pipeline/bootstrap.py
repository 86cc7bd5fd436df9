"""Print the commands that prepare each account and region for promotions, in order, and write their policies.

A plain `cdk bootstrap` gives CloudFormation's role administrator rights. This command writes a CloudFormation template
for each account, with policies for the resources of the synthesized templates, to --out. It calls nothing: an
administrator of each account runs the printed commands.
"""

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ...config.catalog.regions import region
from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.pipeline import Pipeline, PipelineSource
from ...planning.delivery.execution_policy import MAX_POLICIES, documents, needed, policies_template
from ...planning.delivery.pipeline_steps import ASSEMBLY
from ...planning.delivery.promotable import promotable, source_of
from ...planning.delivery.role_boundary import boundary, unknown_policies
from ..output.console import write_json, write_text
from .synth import synthesize

# The one of the CDK's own default.
_QUALIFIER: Final = "hnb659fds"
_OUT: Final = Path(".podwright") / "bootstrap"


@dataclass
class _Account:
    """One account, and what has to be done in it."""

    id: str
    regions: list[str] = field(default_factory=list)
    prefixes: set[str] = field(default_factory=set)
    """What the names of its stacks begin with."""
    templates: list[dict[str, Any]] = field(default_factory=list)
    boundaries: set[str] = field(default_factory=set)
    """ARNs of the boundaries of its roles."""

    def add(self, region_name: str, prefix: str, templates: list[dict[str, Any]], boundary: str | None) -> None:
        """Take stacks in."""
        if boundary:
            self.boundaries.add(boundary)
        if region_name not in self.regions:
            self.regions.append(region_name)
        self.prefixes.add(prefix)
        self.templates += templates


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and with whose credentials it is run."""

    account: str
    purpose: str
    line: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline bootstrap`."""
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for the policies (default: {_OUT})")
    parser.add_argument(
        "--assembly", type=Path, metavar="DIR", help="use the templates in this folder (default: synthesize to cdk.out)"
    )
    parser.add_argument("--json", action="store_true", help="print the commands as JSON")


def run(args: argparse.Namespace) -> int:
    """Write the policies and print the commands."""
    project = Project.at(args.project)
    settings, source = source_of(project)
    assembly: Path = args.assembly or synthesize(args.project)
    out: Path = args.out or args.project / _OUT
    accounts = _accounts(project, settings, source, assembly)
    commands = [
        command
        for account in accounts.values()
        for command in _prepare(account, settings, source, _qualifier(args.project), out)
    ] + _after(project, settings, source)
    if args.json:
        write_json({"commands": [asdict(command) for command in commands]})
        return 0
    shown = None
    for command in commands:
        # Commands of one account stand together, under one heading.
        if command.account != shown:
            write_text(f"\n# with credentials of account {command.account}" if command.account else "\n# anywhere")
            shown = command.account
        write_text(f"# {command.purpose}\n{command.line}")
    return 0


def _accounts(project: Project, settings: Pipeline, source: PipelineSource, assembly: Path) -> dict[str, _Account]:
    """The accounts in the order in which they are prepared: the pipeline's first."""
    accounts: dict[str, _Account] = {}
    environments = [loaded.environment for loaded in promotable(project)]
    if not source.on_github:
        assert settings.account is not None
        assert settings.region is not None
        own = accounts.setdefault(settings.account, _Account(settings.account))
        boundary = settings.boundary(region(settings.region).partition)
        own.add(settings.region, settings.name, _templates(assembly, "*.template.json"), boundary)
        # CodePipeline keeps a bucket in each region that it deploys to.
        for environment in environments:
            if environment.region not in own.regions:
                own.add(environment.region, settings.name, [], None)
    for environment in environments:
        account = accounts.setdefault(environment.account, _Account(environment.account))
        # Roles of the pipeline are a stage of their own beside the environment's.
        for prefix in (environment.name, f"{settings.name}-{environment.name}"):
            templates = _templates(assembly, f"assembly-{prefix}/*.template.json")
            account.add(environment.region, prefix, templates, environment.iam.permissions_boundary)
    return accounts


def _templates(assembly: Path, pattern: str) -> list[dict[str, Any]]:
    files = sorted(assembly.glob(pattern))
    if not files:
        raise CommandError(f"{assembly} has no {pattern}", f"`podwright pipeline synth` writes it to {ASSEMBLY}", 2)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _prepare(account: _Account, settings: Pipeline, source: PipelineSource, qualifier: str, out: Path) -> list[Command]:
    """Policies, and `cdk bootstrap` for each region."""
    partition = region(account.regions[0]).partition
    desired = needed(account.templates)
    if desired.unknown:
        types = ", ".join(sorted(desired.unknown))
        raise CommandError(
            f"it is not known what CloudFormation needs for {types}",
            "add the type to config/catalog/data/handler_permissions.json",
        )
    result = documents(
        desired, partition=partition, account=account.id, prefixes=account.prefixes, boundaries=account.boundaries
    )
    if len(result) > MAX_POLICIES:
        raise CommandError(
            f"account {account.id} would need {len(result)} policies, and a role takes {MAX_POLICIES}",
            "move environments into separate accounts",
        )
    own = _boundary(account, settings, partition)
    name = f"{settings.name}-execution"
    file = out / f"{name}-{account.id}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(policies_template(result, name, own), indent=1) + "\n", encoding="utf-8")
    arns = [f"arn:{partition}:iam::{account.id}:policy/{name}-{number}" for number in range(1, len(result) + 1)]
    deploy = (
        f"aws cloudformation deploy --region {account.regions[0]} --stack-name {name} "
        f"--template-file {file} --capabilities CAPABILITY_NAMED_IAM"
    )
    bounded = ", and the boundary of what it makes" if own else ""
    policies = f"{len(desired.actions)} actions in {len(result)} policies for CloudFormation's role{bounded}"
    commands = [Command(account.id, policies, deploy)]
    trusted = "" if source.on_github or settings.account == account.id else f" --trust {settings.account}"
    why = "the roles of the CDK" + (", which let the pipeline deploy" if trusted else "")
    commands += [
        Command(
            account.id,
            why,
            f"cdk bootstrap aws://{account.id}/{name} --qualifier {qualifier}{trusted} "
            f"--cloudformation-execution-policies {','.join(arns)}",
        )
        for name in account.regions
    ]
    return commands


def _boundary(account: _Account, settings: Pipeline, partition: str) -> tuple[str, dict[str, Any]] | None:
    """Name and document of the boundary that no organisation gives. Raises CommandError where it cannot be known."""
    arn = settings.own_boundary(partition, account.id)
    if arn not in account.boundaries:
        return None
    if unknown := unknown_policies(account.templates):
        raise CommandError(
            f"roles of account {account.id} have policies that no boundary can be made for: {', '.join(unknown)}",
            "name a boundary of your own in iam.permissions_boundary of the environment",
        )
    document = boundary(account.templates, partition=partition, account=account.id, prefixes=account.prefixes)
    return arn.rpartition("/")[2], document


def _after(project: Project, settings: Pipeline, source: PipelineSource) -> list[Command]:
    """What comes once all accounts are prepared."""
    if source.on_github:
        environments = [loaded.environment for loaded in promotable(project)]
        return [
            *(
                Command(
                    environment.account,
                    f"the roles that jobs take on for {environment.name}",
                    f"podwright pipeline deploy {environment.name}",
                )
                for environment in environments
            ),
            *(command for environment in environments for command in _github_environment(environment.name, source)),
        ]
    account = str(settings.account)
    return [
        Command(account, "the pipeline; from here on it deploys itself", "podwright pipeline deploy"),
        Command(account, "the archives of artifacts.lock, for its builds", "podwright pipeline cache"),
    ]


def _github_environment(name: str, source: PipelineSource) -> list[Command]:
    """A GitHub environment that only the branch may use: its name is what the roles trust."""
    location = f"repos/{source.repository}/environments/{name}"
    policy = '{"deployment_branch_policy": {"protected_branches": false, "custom_branch_policies": true}}'
    return [
        Command(
            "",
            f"GitHub's environment {name}; add reviewers who approve",
            f"gh api -X PUT {location} --input - <<< '{policy}'",
        ),
        Command(
            "",
            f"and no branch but {source.branch} may deploy to it",
            f"gh api -X POST {location}/deployment-branch-policies -f name={source.branch}",
        ),
    ]


def _qualifier(project: Path) -> str:
    file = project / "cdk.json"
    context = json.loads(file.read_text(encoding="utf-8")).get("context", {}) if file.is_file() else {}
    return context.get("@aws-cdk/core:bootstrapQualifier", _QUALIFIER)
