"""What differs between a running cluster and the templates that its file synthesizes to."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...config.errors import CommandError, InvalidFile
from ...config.loading.project import Project
from ...planning.cost.cost_tags import ENVIRONMENT_TAG
from ..cdk.app import environment_context
from ..cdk.inputs import SynthesisInputs
from ..cdk.progress import Progress
from ..cdk.synthesis import assembly_of
from ..drift.readers import cluster_properties
from ..effects.compare import Difference, differences, is_intrinsic
from ..effects.templates import Template, resources, synthesized
from .addons import values_of
from .reading import RunningCluster

_CLUSTER: Final = "AWS::SageMaker::Cluster"
_QUOTA: Final = "AWS::SageMaker::ComputeQuota"
_SCHEDULER: Final = "AWS::SageMaker::ClusterSchedulerConfig"
_ADDON: Final = "AWS::EKS::Addon"
# Lists in which order means nothing to AWS.
_UNORDERED: Final = ("Subnets", "SecurityGroupIds", "OnStartDeepHealthChecks")
# HyperPod names these whether or not anybody asked for one, and keeps them where a template is silent.
_KEPT: Final = re.compile(r"InstanceGroups/\*/(ImageReleaseVersion|ImageId)")
_WORDS: Final = (
    (r"Tags.*", "podwright tags what it deploys"),
    (r"VpcConfig/Subnets/?.*", "a file gives the cluster one subnet of its own; a change here replaces the cluster"),
    (r".*/OverrideVpcConfig/.*", "podwright names subnets and security groups for every group"),
    (r".*/CapacityRequirements/OnDemand", "HyperPod's default, written out"),
    (r".*/DeploymentConfig/.*", "podwright writes out how an update moves over the nodes"),
    (r".*/OnStartDeepHealthChecks/?.*", "CloudFormation has no word for one of the checks"),
)
# Of an add-on is compared what its owner has set: version, configuration and role.
_OF_ADDONS: Final = (
    *("AddonName", "AddonVersion", "ClusterName", "ConfigurationValues", "PodIdentityAssociations", "ResolveConflicts"),
    *("ServiceAccountRoleArn", "NamespaceConfig", "PreserveOnDelete"),
)
_ADDED: Final = "podwright writes it out; the cluster has AWS's default"
_GONE: Final = "a file has no word for it, or not for this value"
_CHANGED: Final = "the file asks for something else"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One property that a deployment of the file would set otherwise."""

    resource: str
    """Type and name."""
    property: str
    now: Any
    """None where the cluster says nothing of it."""
    file: Any
    """What the file's template says; None where it is silent."""
    why: str


class Comparison(NamedTuple):
    """The running cluster beside the templates of its file."""

    compared: int
    """Resources that both have."""
    deviations: tuple[Deviation, ...]
    beside: dict[str, int]
    """Resources that the templates have besides, by stack: a deployment would make them."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "compared": self.compared,
            "deviations": [asdict(item) for item in self.deviations],
            "beside": self.beside,
        }


def compare(running: RunningCluster, name: str, file: Path, project: Path, *, sandbox: bool) -> Comparison:
    """Synthesize the environment `name` of `file`, and compare it with what was found.

    Raises:
        CommandError: the file does not synthesize.
    """
    try:
        loaded = Project.at(project).load(str(file))
        context = environment_context(project, str(file), loaded.environment)
        if sandbox:
            context |= {"chart": "stand-in"}
        with assembly_of(SynthesisInputs.of(project, loaded, context), Progress()) as stored:
            return beside(running, synthesized(stored.folder, name))
    except (CommandError, InvalidFile) as error:
        raise CommandError(f"{file} does not synthesize, so nothing was compared:\n{error}", "fix that first") from None


def beside(running: RunningCluster, templates: Mapping[str, Template]) -> Comparison:
    """The cluster beside templates, by stack."""
    live, known = dict(_live(running)), _pseudo_parameters(running)
    deviations, compared, others = list[Deviation](), 0, dict[str, int]()
    for stack, template in templates.items():
        for _, item in resources(template):
            properties = item.get("Properties", {})
            key = item["Type"], _name(item["Type"], properties)
            if key not in live:
                outermost = stack.partition("/")[0]
                others[outermost] = others.get(outermost, 0) + 1
                continue
            compared += 1
            deviations += _deviations(*key, live.pop(key), _resolved(properties, known))
    for kind, named in live:
        if kind != _ADDON:
            deviations.append(Deviation(f"{kind} {named}", "", "there", None, _GONE))
    return Comparison(compared, tuple(deviations), others)


def _name(kind: str, properties: Mapping[str, Any]) -> str:
    """What tells a resource from others of its kind."""
    match kind:
        case "AWS::SageMaker::Cluster":
            return properties.get("ClusterName", "")
        case "AWS::SageMaker::ComputeQuota":
            return properties["ComputeQuotaTarget"]["TeamName"]
        case "AWS::EKS::Addon":
            return properties["AddonName"]
        case _:
            return properties.get("Name", "") if isinstance(properties.get("Name"), str) else ""


def _live(running: RunningCluster) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """What runs, in the words of templates, by type and name."""
    cluster = dict(cluster_properties(running.cluster))
    cluster["Tags"] = [{"Key": key, "Value": value} for key, value in sorted(running.tags.items())]
    yield (_CLUSTER, running.cluster["ClusterName"]), cluster
    for quota in running.quotas:
        keys = ("Name", "ComputeQuotaConfig", "ComputeQuotaTarget", "Description")
        properties = {key: quota[key] for key in keys if key in quota}
        if quota.get("ActivationState") == "Disabled":
            properties["ActivationState"] = "Disabled"
        yield (_QUOTA, quota["ComputeQuotaTarget"]["TeamName"]), properties
    if scheduler := running.scheduler:
        keys = ("Name", "SchedulerConfig", "Description")
        yield (_SCHEDULER, scheduler["Name"]), {key: scheduler[key] for key in keys if key in scheduler}
    for name, addon in running.addons.items():
        properties = {
            "AddonVersion": addon.get("addonVersion"),
            "ConfigurationValues": values_of(addon.get("configurationValues")),
            "ServiceAccountRoleArn": addon.get("serviceAccountRoleArn"),
        }
        yield (_ADDON, name), {key: value for key, value in properties.items() if value}


def _deviations(kind: str, name: str, live: Mapping[str, Any], template: Mapping[str, Any]) -> Iterator[Deviation]:
    """Every property in which a resource and its template differ. Tags are compared of the cluster alone."""
    own = {key: value for key, value in template.items() if key in live or key not in _OF_ADDONS}
    if isinstance(values := own.get("ConfigurationValues"), str):
        own["ConfigurationValues"] = values_of(values)
    own.pop("ClusterArn", None)
    if kind != _CLUSTER:
        own.pop("Tags", None)
    for item in differences(_comparable(live), _comparable(own)):
        if item.before in ({}, [], None) and item.after in ([], None):
            continue
        if item.change == "remove" and _KEPT.fullmatch(item.pattern):
            continue
        # What looks an existing plan up answers with the ARN that the file names.
        if item.pattern.endswith("/TrainingPlanArn") and is_intrinsic(item.after):
            continue
        yield Deviation(f"{kind} {name}", item.path, item.before, _shown(item.after), _why(item))


def _why(item: Difference) -> str:
    """Why a property is otherwise, in words."""
    if item.path == f"Tags[{ENVIRONMENT_TAG}]":
        return _WORDS[0][1]
    for pattern, words in _WORDS:
        if re.fullmatch(pattern, item.pattern):
            return words
    return {"add": _ADDED, "remove": _GONE}.get(item.change, _CHANGED)


def _comparable(value: Any, key: str = "") -> Any:
    """A value in which the order of lists means what it means to AWS, and nothing is there that says nothing."""
    if isinstance(value, Mapping) and not is_intrinsic(value):
        return {name: _comparable(item, name) for name, item in value.items() if item not in ([], None)}
    if isinstance(value, list):
        return sorted(value) if key in _UNORDERED else [_comparable(item) for item in value]
    return value


def _pseudo_parameters(running: RunningCluster) -> dict[str, str]:
    """What CloudFormation puts in the place of its own names."""
    partition = running.cluster["ClusterArn"].split(":")[1]
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return {
        "AWS::Region": running.region,
        "AWS::AccountId": running.account,
        "AWS::Partition": partition,
        "AWS::URLSuffix": suffix,
    }


def _resolved(value: Any, known: Mapping[str, str]) -> Any:
    """A value of a template with everything filled in that no deployment is needed for."""
    match value:
        case {"Ref": str() as name} if name in known:
            return known[name]
        case {"Fn::Join": [str() as between, list() as parts]}:
            filled = [_resolved(part, known) for part in parts]
            return between.join(filled) if all(isinstance(part, str) for part in filled) else value
        case dict():
            return {key: _resolved(item, known) for key, item in value.items()}
        case list():
            return [_resolved(item, known) for item in value]
    return value


def _shown(value: Any) -> Any:
    """A value of a template, with words in place of what only a deployment knows."""
    if is_intrinsic(value):
        return "what the deployment makes"
    if isinstance(value, Mapping):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value
