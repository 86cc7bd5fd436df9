"""What stands between a cluster and another Kubernetes version: the step itself, add-ons, nodes, objects, insights."""

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ...config.catalog.eks_versions import eks_versions
from ...config.errors import CommandError
from ...config.loading.artifacts import archive_file, read_artifacts
from ...config.loading.source import parse_source
from ...config.settings.environment import Environment
from ...planning.delivery.kubernetes_upgrades import minor, removed, skew_problem, step_problem
from ...planning.helm.mirrors import mirror_of
from ...planning.helm.wanted_charts import wanted_charts
from ...planning.kubernetes.addons import addon_version
from ...planning.kubernetes.deployed_values import known_values
from ..aws.account import Account
from ..aws.calls import get, pages
from ..kubernetes.filled import filled
from ..kubernetes.kubectl import Kubectl
from ..programs.helm import tool
from ..programs.node import use_bundled_node
from .observed import kubernetes_nodes
from .observed import minor as short

Level = Literal["error", "warning"]
_COMPARISON: Final = re.compile(r"(>=|<=|>|<|=)?\s*v?(\d+)\.(\d+)(?:\.\d+)?(?:-0)?")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that stops an upgrade (error), or that somebody should look at before (warning)."""

    level: Level
    what: str
    hint: str


@dataclass(frozen=True, slots=True)
class Addon:
    """An EKS add-on of the cluster."""

    name: str
    now: str
    then: str
    """Version after the deployment; the present one where nobody pins another."""
    offered: tuple[str, ...]
    """What EKS has for the new version, newest first."""

    @property
    def fits(self) -> bool:
        """Whether EKS has its version for the new Kubernetes."""
        return self.then in self.offered


@dataclass
class Readiness:
    """Everything that was looked at."""

    cluster: str
    deployed: str
    wanted: str
    addons: list[Addon] = field(default_factory=list)
    kubelets: dict[str, int] = field(default_factory=dict)
    """Nodes by the minor version of their kubelet; empty where nobody sees Kubernetes."""
    insights: list[dict[str, Any]] = field(default_factory=list)
    """EKS's upgrade insights about the new version."""
    support: dict[str, str] = field(default_factory=dict)
    """By version: when its standard support ends, as a date."""
    obstacles: list[Obstacle] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        """Whether nothing stops it."""
        return not any(item.level == "error" for item in self.obstacles)

    def to_json(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        return {
            "cluster": self.cluster,
            "deployed": self.deployed,
            "wanted": self.wanted,
            "ready": self.is_ready,
            "support": {version: self.support.get(version) for version in (self.deployed, self.wanted)},
            "addons": [
                {"name": addon.name, "now": addon.now, "then": addon.then, "fits": addon.fits} for addon in self.addons
            ],
            "kubelets": self.kubelets,
            "insights": [
                {
                    "name": item["name"],
                    "status": item["insightStatus"]["status"],
                    "reason": item["insightStatus"]["reason"],
                }
                for item in self.insights
            ],
            "obstacles": [{"level": item.level, "what": item.what, "hint": item.hint} for item in self.obstacles],
        }


def read_readiness(
    environment: Environment, account: Account, name: str, to: str | None, kubectl: Kubectl | None, project: Path
) -> Readiness:
    """Look at an EKS cluster called `name` for a move to version `to` (default: the next minor). Changes nothing."""
    deployed = get(account, "eks", "describe_cluster", name=name)["cluster"]["version"]
    # EKS goes up one minor version at a time.
    readiness = Readiness(name, deployed, to or f"1.{minor(deployed) + 1}")
    readiness.support = _support(account)
    readiness.obstacles += _step(readiness)
    # Everything that follows asks for a version that is not there.
    if readiness.wanted == deployed or any(item.level == "error" for item in readiness.obstacles):
        return readiness
    readiness.addons = list(_addons(account, environment, name, readiness.wanted))
    readiness.obstacles += _addon_obstacles(readiness.addons, readiness.wanted)
    readiness.kubelets = _kubelets(kubectl)
    readiness.obstacles += _skews(readiness)
    readiness.insights = _insights(account, name, readiness.wanted)
    readiness.obstacles += _insight_obstacles(readiness.insights)
    readiness.obstacles += removed_objects(environment, readiness.wanted, project)
    readiness.obstacles += chart_obstacles(environment, readiness.wanted, project)
    return readiness


def _support(account: Account) -> dict[str, str]:
    return {
        row["clusterVersion"]: f"{row['endOfStandardSupportDate']:%Y-%m-%d}"
        for row in pages(account, "eks", "describe_cluster_versions", "clusterVersions", includeAll=True)
        if "endOfStandardSupportDate" in row
    }


def _step(readiness: Readiness) -> Iterator[Obstacle]:
    """What stands against the version itself: EKS does not offer it, or HyperPod does not document it."""
    if problem := step_problem(readiness.deployed, readiness.wanted):
        yield Obstacle("error", *problem)
        return
    known = eks_versions().get(readiness.wanted)
    if readiness.wanted not in readiness.support and readiness.wanted != readiness.deployed:
        offered = ", ".join(sorted(readiness.support))
        yield Obstacle(
            "error", f"EKS offers no Kubernetes {readiness.wanted}; it offers {offered}", "wait until it does"
        )
    if known is None or known.hyperpod != "documented":
        yield Obstacle(
            "warning",
            f"HyperPod does not document Kubernetes {readiness.wanted}"
            + ("; AWS's own samples use it" if known and known.hyperpod == "seen" else ""),
            "try it in an environment that may break, and nodes above all: their image has to have its kubelet",
        )


def _addons(account: Account, environment: Environment, cluster: str, desired: str) -> Iterator[Addon]:
    """The cluster's add-ons, and what the deployment of the new version makes of each."""
    # As the environment would be after the change, so that versions that follow Kubernetes' own are those of then.
    settings = environment.cluster.eks.model_copy(update={"version": desired})
    for name in sorted(pages(account, "eks", "list_addons", "addons", clusterName=cluster)):
        answer = get(account, "eks", "describe_addon", clusterName=cluster, addonName=name)
        now = answer["addon"].get("addonVersion", "")
        asked = {"addonName": name, "kubernetesVersion": desired}
        offers = pages(account, "eks", "describe_addon_versions", "addons", **asked)
        offered = tuple(version["addonVersion"] for row in offers for version in row["addonVersions"])
        yield Addon(name, now, addon_version(name, settings) or now, offered)


def _addon_obstacles(addons: Sequence[Addon], desired: str) -> Iterator[Obstacle]:
    for addon in addons:
        if not addon.offered:
            yield Obstacle(
                "error", f"EKS has no {addon.name} for Kubernetes {desired}", "wait for it, or take it out of the file"
            )
        elif not addon.fits:
            retained = addon.then == addon.now
            yield Obstacle(
                "error",
                f"{addon.name} {'stays at' if retained else 'would get'} {addon.then}, which EKS does not have for "
                f"Kubernetes {desired}",
                f"write `addons: {{{addon.name}: {addon.offered[0]}}}` under cluster.eks; --write does",
            )


def _kubelets(kubectl: Kubectl | None) -> dict[str, int]:
    results: dict[str, int] = {}
    for node in kubernetes_nodes(kubectl).values():
        if node["kubelet"]:
            results[node["kubelet"]] = results.get(node["kubelet"], 0) + 1
    return results


def _skews(readiness: Readiness) -> Iterator[Obstacle]:
    for kubelet, count in sorted(readiness.kubelets.items()):
        # Nodes are renewed after the control plane, so it is the new control plane that old kubelets have to fit.
        if problem := skew_problem("kubelet", kubelet, readiness.wanted):
            yield Obstacle("error", f"{problem} ({count} nodes)", "`podwright upgrade ENV nodes` first")
    try:
        program = tool("kubectl")
    except CommandError as stop:
        yield Obstacle("warning", f"the version of kubectl is not compared: {stop}", stop.hint)
        return
    message = subprocess.run([program, "version", "--client", "--output=json"], capture_output=True, check=True)
    kubectl = short(json.loads(message.stdout)["clientVersion"]["gitVersion"])
    if problem := skew_problem("kubectl", kubectl, readiness.wanted):
        yield Obstacle("warning", f"{problem}: charts are applied with it", "upgrade podwright, which brings kubectl")


def _insights(account: Account, cluster: str, desired: str) -> list[dict[str, Any]]:
    # The list gives a status; details, such as which client uses an API, only the single insight has.
    """EKS's insights about a version; of those that do not pass, with everything that it says."""
    wish = {"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [desired]}
    return [
        item
        if item["insightStatus"]["status"] == "PASSING"
        else get(account, "eks", "describe_insight", clusterName=cluster, id=item["id"])["insight"]
        for item in pages(account, "eks", "list_insights", "insights", clusterName=cluster, filter=wish)
    ]


def _usage(row: Mapping[str, Any]) -> str:
    """Who used what a version drops: `/apis/… (by kubectl, argocd)`."""
    return f"{row['usage']} (by {', '.join(client['userAgent'] for client in row['clientStats'])})"


def _insight_obstacles(insights: Sequence[Mapping[str, Any]]) -> Iterator[Obstacle]:
    for item in insights:
        status = item["insightStatus"]["status"]
        if status in ("ERROR", "WARNING"):
            details = item.get("categorySpecificSummary", {}).get("deprecationDetails", ())
            used = (_usage(row) for row in details if row.get("clientStats"))
            reason = "; ".join([item["insightStatus"].get("reason", ""), *used])
            hint = item.get("recommendation") or "`aws eks describe-insight` says more"
            yield Obstacle("error" if status == "ERROR" else "warning", f"EKS: {item['name']}: {reason}", hint)


def removed_objects(environment: Environment, desired: str, project: Path) -> Iterator[Obstacle]:
    """Objects of the environment's own charts whose API the new version does not serve."""
    use_bundled_node()
    known = known_values(environment, "amazonaws.com")
    objects, _ = filled(environment, known, mirror_of(environment, read_artifacts(project)))
    for item in objects:
        if deleted := removed(item["apiVersion"], item["kind"], desired):
            yield Obstacle(
                "error",
                f"{item['kind']} {item['metadata']['name']} is of {deleted.api}, which Kubernetes "
                f"{deleted.version} removed",
                f"upgrade podwright; {deleted.use} takes its place",
            )


def chart_obstacles(environment: Environment, desired: str, project: Path) -> Iterator[Obstacle]:
    """Charts that say of themselves that they do not run on the new version, as far as they are locked and fetched."""
    locked = read_artifacts(project).charts
    for item in wanted_charts(environment):
        chart = item.chart
        file = archive_file(project, chart, locked[chart.name].sha256) if chart.name in locked else None
        if file is None or not file.is_file():
            continue
        with zipfile.ZipFile(file) as archive:
            text = archive.read("Chart.yaml").decode("utf-8")
        constraint = str(parse_source(text, "Chart.yaml").data.get("kubeVersion", ""))
        if constraint and not allows(constraint, desired):
            yield Obstacle(
                "error",
                f"chart {chart.name} {chart.version} asks for Kubernetes {constraint}",
                "upgrade podwright, which pins charts, and `podwright chart fetch --update`",
            )


def allows(constraint: str, version: str) -> bool:
    """Whether a chart's `kubeVersion` takes a minor version. What cannot be read counts as yes: Helm judges later."""
    mine = (1, minor(version))

    def holds(part: str) -> bool:
        for sign, major, least in _COMPARISON.findall(part):
            bound = (int(major), int(least))
            fits = {
                ">=": mine >= bound,
                "<=": mine <= bound,
                "<": mine < bound,
                ">": mine >= bound,  # a later patch of the same minor is newer
                "=": mine == bound,
                "": mine == bound,
            }
            if not fits[sign]:
                return False
        return True

    readable = not re.search(r"[~^*x]", constraint)
    return not readable or any(holds(part) for part in constraint.split("||"))
