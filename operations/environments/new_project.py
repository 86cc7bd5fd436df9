"""Writing the files of a new project: an environment, the settings of the CDK CLI, and workflows."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...config.catalog.regions import UnknownRegion
from ...config.catalog.regions import region as known_region
from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError, InvalidFile
from ...config.findings import errors
from ...config.loading.load import environment_from
from ...config.loading.project import Project
from ...config.loading.schema import environment_schema
from ...config.loading.source import parse_source
from ...planning.rules import findings
from ..pipeline.github import DRIFT, PROMOTION, drift_workflow, promotion_workflow
from .costs import today

# The command that CDK starts. `podwright deploy` says which Python it runs on; for a plain `cdk deploy`, the file that
# `podwright init` writes on each machine (git ignores it) names the one that podwright is installed in.
APP: Final = '"${PODWRIGHT_PYTHON:-$(cat .podwright/python 2>/dev/null || echo python3)}" -P -m podwright.bin.app'

_ENVIRONMENT: Final = """\
# yaml-language-server: $schema=environment.schema.json
# `podwright check {name}` finds mistakes, `podwright show {name}` prints this file with every default.
name: {name}
{account}region: {region}
{protection}
network:
{network}  # Zone ids, because accelerators are in zones and zone names differ between accounts.
  zones: [{zones}]

storage:
  # FSx for Lustre, 1.2 TiB. `efa: true` serves EFA instances faster, from 19.2 TiB at the default throughput.
  lustre: {{}}

cluster:
  # Zones of the control plane, for good: EKS takes no others later. Groups and file systems without a zone of their own
  # are in the first.
  zones: [{cluster_zones}]
{admins}
instance_groups:
  # Holds the add-ons; every cluster needs such a group.
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  training:
    instance_type: {instance_type}
    count: {count}
"""
_SUPPORT_ENDS: Final = """
acknowledge:
  # The default version is the newest documented one. `podwright cost` says what changes when its support ends.
  - {rule: UPG002, reason: no later version of Kubernetes is documented for HyperPod}
"""
SKILLS: Final = ".agents/skills"
"""Where coding agents look for the skills of a project."""
_SKILL: Final = Path(__file__).with_name("skill.md")
_SCENARIOS: Final = Path(__file__).resolve().parents[2] / "environments"
_SANDBOX_ACCOUNT_LINE: Final = f"""\
# The sandbox's account: nothing leaves this machine. An account id of yours, in quotes, deploys to AWS.
account: "{SANDBOX_ACCOUNT}"
"""
_SANDBOX_PROTECTION_LINE: Final = """\
# Everything is deleted with its stack. Leave this out, and networks and data survive their stacks.
protection: destroy
"""
_PROJECT: Final = """\
# The order of promotion; `podwright pipeline show` prints every step.
environments: [{environments}]
pipeline:
  source: {{repository: {repository}, branch: main}}
"""
_REQUIREMENTS: Final = """\
# python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/podwright init .
podwright[sandbox]=={version}
"""
_IGNORED: Final = "cdk.out/\n.podwright/\n.venv/\n"


class Beginning(NamedTuple):
    """What the file of a new environment says."""

    name: str
    account: str = SANDBOX_ACCOUNT
    region: str = "us-west-2"
    zones: tuple[str, ...] = ()
    """Zone ids; the region's first two where there are none."""
    instance_type: str = "ml.g5.12xlarge"
    """Of the group for training."""
    count: int = 2
    admins: tuple[str, ...] = ()
    """ARNs of who administers Kubernetes."""
    vpc: Mapping[str, Any] | None = None
    """An existing VPC as `network.vpc` takes it; a new one where there is none."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file of a project."""

    file: Path
    created: bool
    """Whether it was not there before."""

    def __str__(self) -> str:
        return f"{'created' if self.created else 'kept   '}  {self.file}"


def write_project(
    folder: Path,
    *,
    name: str | None = None,
    account: str | None = None,
    region: str | None = None,
    zones: str | None = None,
    scenario: str | None = None,
    admins: tuple[str, ...] = (),
    beginning: Beginning | None = None,
) -> list[Written]:
    """Write the files of a project that are not there yet, and say of each whether it was.

    Args:
        folder: The project's; made when it is not there.
        name: Of the environment; by default that of the scenario, `sandbox`, or `prod` with an account.
        account: AWS account id; by default the embedded sandbox's.
        region: AWS region; by default the scenario's, or us-west-2.
        zones: Zone ids with commas between.
        scenario: Name of the scenario to start from.
        admins: ARNs of the roles that administer Kubernetes; a scenario's file has its own.
        beginning: What somebody answered, `name` among it, instead of what comes before it.

    Raises:
        InvalidFile: a value that an environment does not allow.
        CommandError: something is in the way, or a region is not known.
    """
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file", "name a folder", 2)
    files = {
        folder / "environments/environment.schema.json": _json(environment_schema()),
        folder / "cdk.json": _json({**_cdk_settings(), "app": APP}),
        folder / "requirements.txt": _REQUIREMENTS.format(version=version("podwright")),
        folder / ".gitignore": _IGNORED,
        folder / ".podwright/python": f"{sys.executable}\n",
    }
    # A project that somebody has cloned is made ready for this machine, not given another environment.
    if name or account or scenario or not Project.at(folder).names:
        name = name or scenario or ("prod" if account else "sandbox")
        file = folder / "environments" / f"{name}.yaml"
        if scenario:
            text = scenario_file(scenario, name, account, region, zones)
        else:
            chosen = tuple(zones.split(",")) if zones else ()
            plain = Beginning(name, account or SANDBOX_ACCOUNT, region or "us-west-2", chosen, admins=admins)
            text = environment_file(beginning or plain)
        if file.exists() and file.read_text(encoding="utf-8") != text:
            raise CommandError(f"{file} exists and stays as it is", "edit it, or choose another --name")
        files = {file: text} | files
    return [_write(file, text) for file, text in files.items()]


def write_skill(folder: Path) -> Written:
    """Write what a coding agent has to know of podwright, as a skill (agentskills.io) in a folder of skills.

    Raises:
        CommandError: there is another text in its place.
    """
    file, text = folder / "podwright/SKILL.md", _SKILL.read_text(encoding="utf-8")
    if file.exists() and file.read_text(encoding="utf-8") != text:
        raise CommandError(f"{file} exists and is not what this podwright writes", "delete it, and run this again")
    return _write(file, text)


def _write(file: Path, text: str) -> Written:
    """Write a file that is not there yet."""
    created = not file.exists()
    if created:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Written(file, created)


def write_workflows(folder: Path, repository: str | None, order: str | None) -> Iterator[Written]:
    """Write workflows of GitHub Actions; a `podwright.yaml` too where there is none, since it says what they promote.

    Raises:
        InvalidFile: an order that a project does not allow.
        CommandError: there is nothing to promote, nobody says in which order, or a file is in the way.
    """
    if not Project.at(folder).names:
        raise CommandError(f"{folder} has no environments to promote", f"first `podwright init {folder} --name dev`", 2)
    settings = folder / "podwright.yaml"
    if repository and not settings.exists():
        names = Project.at(folder).names
        if order is None and len(names) > 1:
            raise CommandError(
                "in which order are they promoted?", f"--order with commas between; there are {','.join(names)}", 2
            )
        environments = ", ".join(order.split(",") if order else names)
        text = _PROJECT.format(environments=environments, repository=repository)
        settings.write_text(text, encoding="utf-8")
        try:
            Project.at(folder)
        except InvalidFile:
            settings.unlink()
            raise
        yield Written(settings, True)
    project = Project.at(folder)
    texts = {PROMOTION: promotion_workflow(project), DRIFT: drift_workflow(project)}
    for name, text in texts.items():
        file = folder / name
        if text is None:
            continue
        if file.exists() and file.read_text(encoding="utf-8") != text:
            raise CommandError(f"{file} exists and is not what podwright.yaml says", "delete it, and run this again")
        yield _write(file, text)


def environment_file(beginning: Beginning) -> str:
    """The text of a small environment file that passes every rule.

    Raises:
        InvalidFile: a value that an environment does not allow.
        CommandError: a region that is not known, or whose zone ids are not.
    """
    name, account = beginning.name, beginning.account
    zones, sandbox = beginning.zones or first_zones(beginning.region), account == SANDBOX_ACCOUNT
    admins = f"  eks: {{admins: {json.dumps(beginning.admins)}}}\n" if beginning.admins else ""
    text = _ENVIRONMENT.format(
        name=name,
        account=_SANDBOX_ACCOUNT_LINE if sandbox else f'account: "{account}"\n',
        region=beginning.region,
        protection=_SANDBOX_PROTECTION_LINE if sandbox else "",
        network=_network(beginning.vpc),
        zones=", ".join(zones),
        cluster_zones=", ".join(zones[:2]),
        admins=admins,
        instance_type=beginning.instance_type,
        count=beginning.count,
    )
    loaded = environment_from(parse_source(text, f"environments/{name}.yaml"), name)
    known = findings(loaded.environment, loaded.source, today())
    if wrong := errors(known):
        raise InvalidFile(wrong)
    accepted = _SUPPORT_ENDS if "UPG002" in {item.id for item in known} else ""
    return text.replace("\ninstance_groups:\n", f"{accepted}\ninstance_groups:\n")


def first_zones(region_name: str) -> tuple[str, str]:
    """The ids of the first two zones of a region. Raises CommandError where they are not known."""
    try:
        prefix = known_region(region_name).zone_prefix
    except UnknownRegion as error:
        raise CommandError(str(error), code=2) from None
    if not prefix:
        raise CommandError(f"the zone ids of {region_name} are not known", "give two of them with --zones", 2)
    return f"{prefix}-az1", f"{prefix}-az2"


def _network(vpc: Mapping[str, Any] | None) -> str:
    """The range of a new VPC, or an existing one with its subnets."""
    if vpc is None:
        return "  cidr: 10.16.0.0/16\n"
    lines = ["  # podwright makes no route, gateway or endpoint in it.", "  vpc:"]
    lines += [f"    {key}: {vpc[key]}" for key in ("id", "cidr")] + ["    subnets:"]
    for zone, subnets in vpc["subnets"].items():
        pairs = ", ".join(f"{key}: {value}" for key, value in subnets.items())
        lines.append(f"      {zone}: {{{pairs}}}")
    return "".join(f"{line}\n" for line in lines)


def scenarios() -> list[str]:
    """Names of the environment files that come with podwright and stand by themselves."""
    files = sorted(_SCENARIOS.glob("*.yaml"))
    return [file.stem for file in files if "\nextends:" not in file.read_text(encoding="utf-8")]


def scenario_file(scenario: str, name: str, account: str | None, region_name: str | None, zones: str | None) -> str:
    """The text of a scenario's file, with another name, account, region and other zones.

    Raises:
        InvalidFile: with these values it is no environment that passes the rules.
        CommandError: there is no such scenario, or zones are missing.
    """
    if scenario not in scenarios():
        raise CommandError(f"there is no scenario {scenario}", f"there are {', '.join(scenarios())}", 2)
    text = (_SCENARIOS / f"{scenario}.yaml").read_text(encoding="utf-8")
    former = environment_from(parse_source(text, scenario), scenario).environment
    used = list(dict.fromkeys(re.findall(rf"\b{re.escape(_prefix(former.region))}-az[0-9]+\b", text)))
    if region_name not in (None, former.region) and not zones:
        raise CommandError(
            f"{scenario} is in {former.region}",
            f"name {len(used)} zones of {region_name} with --zones, for {', '.join(used)}",
            2,
        )
    chosen = zones.split(",") if zones else used
    if len(chosen) < len(used):
        raise CommandError(f"{scenario} has {len(used)} zones, {', '.join(used)}", "name as many with --zones", 2)
    others = dict(zip(used, chosen, strict=False)) | {
        former.region: region_name or former.region,
        former.account: account or former.account,
    }
    text = re.sub(rf"\b({'|'.join(map(re.escape, others))})\b", lambda match: others[match[0]], text)
    text = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    text = text.replace("$schema=../docs/environment.schema.json", "$schema=environment.schema.json")
    loaded = environment_from(parse_source(text, f"environments/{name}.yaml"), name)
    if wrong := errors(findings(loaded.environment, loaded.source)):
        raise InvalidFile(wrong)
    return text


def _prefix(region_name: str) -> str:
    return known_region(region_name).zone_prefix or region_name


def _cdk_settings() -> dict[str, Any]:
    """The settings of podwright's own `cdk.json`, which reach the templates; the app itself knows its feature flags."""
    settings = json.loads((Path(__file__).resolve().parents[2] / "cdk.json").read_text(encoding="utf-8"))
    return {name: value for name, value in settings.items() if name != "context"}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
