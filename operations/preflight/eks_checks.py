"""Checks of EKS, and of what an existing cluster holds already."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema.validators import validator_for

from ...config.catalog.prices import service_price
from ...config.findings import Path, listed
from ...config.settings.cluster import AdoptedEks
from ...config.settings.governance.task_governance import ADDON as _GOVERNANCE
from ...planning.delivery.kubernetes_upgrades import step_problem
from ...planning.helm.addon_configurations import addon_configurations
from ...planning.kubernetes.addons import NODE_ADDONS, addon_version, installed_addons
from ...planning.kubernetes.isolation import isolates_networks
from ...planning.rules.cluster.upgrades import NEAR
from ...planning.rules.framework.rule import Problem
from ..aws.unseen import Unseen
from .check import Answers, Ask, Note, Skip, check
from .shared import cluster, other_clusters, stack

_EXISTING: Final[Path] = ("cluster", "eks", "existing")
_KUEUE: Final = "kueue.x-k8s.io"
_DEPENDENCIES: Final = "kubeflow.org"
"""API group of the training operators in HyperPod's dependencies chart."""


@check("PRE060")
def version(ask: Ask) -> Answers:
    """Whether EKS creates clusters of the version."""
    if (desired := _new_version(ask)) is None:
        return
    present = _versions(ask)
    offered = [name for name, row in present.items() if row.get("versionStatus") != "UNSUPPORTED"]
    if desired not in offered:
        yield Problem(
            ("cluster", "eks", "version"),
            f"EKS creates no cluster of Kubernetes {desired}; it offers {listed(sorted(offered), 'and')}",
            "choose one of these that HyperPod takes: `podwright check` says which",
        )
    else:
        yield Note(f"Kubernetes {desired}")


@check("PRE061")
def support(ask: Ask) -> Answers:
    """How long EKS supports the version at its ordinary price."""
    desired = _new_version(ask)
    end = _versions(ask).get(desired, {}).get("endOfStandardSupportDate") if desired else None
    if end and end - ask.now < NEAR:
        deleted = end < ask.now
        region, prices = ask.environment.region, ask.environment.own_prices
        standard, extended = (
            service_price(f"eks_{name}", region, prices) for name in ("control_plane", "extended_support")
        )
        dollars = f": ${extended.usd:.2f} an hour instead of ${standard.usd:.2f}" if standard and extended else ""
        yield Problem(
            ("cluster", "eks", "version"),
            f"standard support of Kubernetes {desired} {'ended' if deleted else 'ends'} on {end:%Y-%m-%d}; "
            f"extended support costs more{dollars}",
            "choose a later version for a new cluster, or plan the upgrade (`podwright upgrade`)",
        )
    elif end:
        yield Note(f"Kubernetes {desired} until {end:%Y-%m-%d}")


@check("PRE062")
def addons(ask: Ask) -> Answers:
    """Whether EKS has the add-on versions that are installed, for the cluster's Kubernetes version."""
    settings = ask.environment.cluster.eks
    # An existing cluster gets add-ons too, for the version that the file says it has.
    for name in installed_addons(ask.environment):
        present = _addon_versions(ask, name)
        pinned = addon_version(name, settings)
        if not present or (pinned and pinned not in present):
            newest = f"; it has {listed(present[:3])}" if present else ""
            yield Problem(
                ("cluster", "eks", "addons"),
                f"EKS has no {name} {pinned or ''} for Kubernetes {settings.version}{newest}".replace("  ", " "),
                f"write `addons: {{{name}: {present[0]}}}` under cluster.eks" if present else "choose another version",
            )
        else:
            yield Note(f"{name} {pinned or present[0]}")


@check("PRE069")
def addon_settings(ask: Ask) -> Answers:
    """The configuration of add-ons against the schema that EKS has for their versions."""
    for name, configuration in addon_configurations(ask.environment).items():
        if configuration is None:
            continue
        version = addon_version(name, ask.environment.cluster.eks) or next(iter(_addon_versions(ask, name)), None)
        # A version that EKS does not have is a finding of the check before.
        answer = version and ask.aws.find(
            "eks",
            "describe_addon_configuration",
            {"ResourceNotFoundException", "InvalidParameterException"},
            addonName=name,
            addonVersion=version,
        )
        if not answer or not answer.get("configurationSchema"):
            yield Skip(f"EKS shows no schema of {name} {version or ''}".rstrip())
            continue
        problems = list(_against_schema(answer["configurationSchema"], configuration))
        for where, message in problems:
            yield Problem(
                ("cluster", "eks", "addons"),
                f"{name} {version} does not take the configuration that it would get: {where}: {message}",
                f"choose a version that does (`aws eks describe-addon-configuration --addon-name {name} "
                f"--addon-version {version}` prints what this one takes)",
            )
        if not problems:
            yield Note(f"{name} {version}")


@check("PRE063")
def existing(ask: Ask) -> Answers:
    """An existing EKS cluster against what the file says of it."""
    if (settings := _existing(ask)) is None:
        return
    result = _described(ask, settings)
    if result is None:
        yield Problem(
            (*_EXISTING, "name"), f"there is no EKS cluster {settings.name} in {ask.environment.region}", "correct it"
        )
        return
    vpc, network = ask.environment.network.vpc, result["resourcesVpcConfig"]
    for path, written, actual in (
        ((*_EXISTING, "name"), "ACTIVE", result["status"]),
        (("cluster", "eks", "version"), ask.environment.cluster.eks.version, result["version"]),
        ((*_EXISTING, "security_group"), settings.security_group, network.get("clusterSecurityGroupId")),
        (("network", "vpc", "id"), vpc.id if vpc else network.get("vpcId"), network.get("vpcId")),
    ):
        if written != actual:
            yield Problem(path, f"{settings.name} has {actual} where {written} is expected", f"write {actual} there")
    mode = result.get("accessConfig", {}).get("authenticationMode")
    if mode == "CONFIG_MAP":
        yield Problem(
            (*_EXISTING, "authentication"),
            f"{settings.name} takes its users from a ConfigMap alone, which HyperPod refuses",
            f"`aws eks update-cluster-config --name {settings.name} --access-config "
            "authenticationMode=API_AND_CONFIG_MAP` (there is no way back)",
        )
    yield Note(f"{settings.name}, Kubernetes {result['version']}")


@check("PRE064")
def other_hyperpod(ask: Ask) -> Answers:
    """Whether the existing EKS cluster belongs to another HyperPod cluster."""
    settings = _existing(ask)
    if settings is None or (result := _described(ask, settings)) is None:
        return
    for other in other_clusters(ask):
        if other.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn") == result["arn"]:
            yield Problem(
                (*_EXISTING, "name"),
                f"{settings.name} belongs to the HyperPod cluster {other['ClusterName']}; it takes one only",
                "name another EKS cluster, or add the groups to that HyperPod cluster's own environment",
            )
    yield Note(settings.name)


@check("PRE065")
def in_the_way(ask: Ask) -> Answers:
    """Add-ons and operators of an existing cluster that clash with what is to be installed."""
    settings = _existing(ask)
    if settings is None or (result := _described(ask, settings)) is None:
        return
    names = ask.aws.pages("eks", "list_addons", "addons", clusterName=settings.name)
    groups: list[str] = []
    try:
        groups = ask.api_groups(result)
    except Unseen as error:
        yield Skip(str(error))
    engine = ask.environment.governance.engine
    ours = stack(ask, "governance") is not None
    if engine in ("hyperpod", "kueue") and _KUEUE in groups and _GOVERNANCE not in names and not ours:
        yield Problem(
            "governance",
            f"{settings.name} already has Kueue ({_KUEUE}); engine {engine} installs another, and both would "
            "write the same objects",
            f"remove Kueue and its custom resource definitions before teams get quotas, or let {_GOVERNANCE} take over",
        )
    if engine not in (None, "hyperpod") and _GOVERNANCE in names:
        yield Problem(
            ("governance", "engine"),
            f"{settings.name} has task governance ({_GOVERNANCE}), which holds jobs back until its own Kueue admits "
            f"them; with engine {engine} two would keep quotas of the same jobs",
            "delete that add-on, or use engine hyperpod",
        )
    if not settings.dependencies_installed and _DEPENDENCIES in groups and stack(ask, "eks") is None:
        yield Problem(
            (*_EXISTING, "dependencies_installed"),
            f"{settings.name} has training operators already ({_DEPENDENCIES}); Helm does not take over what another "
            "release owns",
            "write dependencies_installed: true when it is HyperPod's chart; else remove those operators",
        )
    missing = [name for name in NODE_ADDONS if name not in names]
    if missing:
        # Its owner may run them another way than as EKS add-ons, which only Kubernetes shows.
        yield Note(f"nodes need {listed(missing, 'and')}, which it does not have as add-ons")
    yield Note(f"{len(names)} add-ons")


@check("PRE066")
def name_taken(ask: Ask) -> Answers:
    """A HyperPod cluster of the name that no stack of the environment made."""
    name = ask.environment.cluster.name
    if (result := cluster(ask)) and stack(ask, "cluster") is None:
        yield Problem(
            ("cluster", "name"),
            f"there is a HyperPod cluster {name} already ({result['ClusterStatus']}), which no stack of "
            f"{ask.environment.name} made",
            "choose another name, or delete that cluster",
        )
    else:
        yield Note(f"{name} is {'ours' if result else 'free'}")


@check("PRE067")
def quotas_there(ask: Ask) -> Answers:
    """A policy or quotas of the HyperPod cluster that no stack of the environment made."""
    governance = ask.environment.governance
    if governance.engine != "hyperpod":
        return
    yield Note(f"{len(governance.teams)} teams")
    if (result := cluster(ask)) is None or stack(ask, "governance") is not None:
        return
    arn = result["ClusterArn"]
    for item in ask.aws.pages(
        "sagemaker", "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", ClusterArn=arn
    ):
        yield Problem(
            "governance",
            f"{result['ClusterName']} has the policy {item['Name']} already, which no stack of {ask.environment.name} "
            "made; a cluster takes one",
            f"`aws sagemaker delete-cluster-scheduler-config --cluster-scheduler-config-id "
            f"{item['ClusterSchedulerConfigId']}`, or take it into the stack with `cdk import`",
        )
    for item in ask.aws.pages("sagemaker", "list_compute_quotas", "ComputeQuotaSummaries", ClusterArn=arn):
        if (team := item["ComputeQuotaTarget"]["TeamName"]) in governance.teams:
            yield Problem(
                ("governance", "teams", team),
                f"{result['ClusterName']} has the quota {item['Name']} of {team} already, which no stack of "
                f"{ask.environment.name} made; a team takes one",
                f"`aws sagemaker delete-compute-quota --compute-quota-id {item['ComputeQuotaId']}`, or take it into "
                "the stack with `cdk import`",
            )


@check("PRE068")
def step(ask: Ask) -> Answers:
    """The deployed Kubernetes version against that of the file: EKS goes one minor version at a time, and not back."""
    present = cluster(ask)
    arn = present.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn") if present else None
    if (desired := _new_version(ask)) is None or not arn:
        return
    name = arn.rpartition("/")[2]
    answer = ask.aws.find("eks", "describe_cluster", {"ResourceNotFoundException"}, name=name)
    deployed = answer["cluster"]["version"] if answer else desired
    if problem := step_problem(deployed, desired):
        yield Problem(("cluster", "eks", "version"), *problem)
    elif desired != deployed:
        yield Note(f"{name} goes from Kubernetes {deployed} to {desired}")
    else:
        yield Note(f"Kubernetes {deployed}")


@check("PRE076")
def network_policies(ask: Ask) -> Answers:
    """Whether the network plugin of an existing cluster obeys network policies, as the isolation of teams needs."""
    settings = _existing(ask)
    if settings is None or not isolates_networks(ask.environment.governance):
        return
    absent = {"ResourceNotFoundException"}
    answer = ask.aws.find("eks", "describe_addon", absent, clusterName=settings.name, addonName="vpc-cni")
    values = json.loads((answer["addon"].get("configurationValues") or "{}") if answer else "{}")
    if str(values.get("enableNetworkPolicy", "")).lower() == "true":
        yield Note(f"{settings.name} obeys network policies")
        return
    yield Problem(
        _EXISTING,
        f"the VPC CNI of {settings.name} "
        + (
            "does not enforce network policies"
            if answer
            else "is no add-on, so it is unknown whether it enforces network policies"
        )
        + ": pods of teams reach the metadata of their nodes, and with it the role of these",
        'set enableNetworkPolicy: "true" in the configuration of its VPC CNI add-on',
    )


def _new_version(ask: Ask) -> str | None:
    """The Kubernetes version of a control plane of ours; None where there is none."""
    settings = ask.environment.cluster
    return settings.eks.version if settings.orchestrator == "eks" and settings.eks.existing is None else None


def _existing(ask: Ask) -> AdoptedEks | None:
    return ask.environment.cluster.eks.existing if ask.environment.cluster.orchestrator == "eks" else None


def _described(ask: Ask, settings: AdoptedEks) -> dict[str, Any] | None:
    answer = ask.aws.find("eks", "describe_cluster", {"ResourceNotFoundException"}, name=settings.name)
    return answer["cluster"] if answer else None


def _versions(ask: Ask) -> dict[str, dict[str, Any]]:
    rows = ask.aws.pages("eks", "describe_cluster_versions", "clusterVersions", includeAll=True)
    return {row["clusterVersion"]: row for row in rows}


def _addon_versions(ask: Ask, name: str) -> list[str]:
    """The versions of an add-on for the cluster's Kubernetes version, as EKS lists them."""
    version = ask.environment.cluster.eks.version
    rows = ask.aws.pages("eks", "describe_addon_versions", "addons", addonName=name, kubernetesVersion=version)
    return [row["addonVersion"] for each in rows for row in each["addonVersions"]]


def _against_schema(text: str, configuration: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where a configuration breaks a JSON Schema, and why."""
    schema = json.loads(text)
    for error in validator_for(schema)(schema).iter_errors(configuration):
        yield error.json_path, error.message
