"""What is deployed: stacks, groups, nodes, quotas and Kubernetes objects as AWS shows them, for people and machines."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from ...config.catalog.sandbox_account import RECORDED_TYPES
from ...config.findings import listed
from ...config.settings.cluster import Karpenter
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.cost.scaled import limit_words
from ...planning.quota.budgets import budgets
from ..aws.account import Account
from ..aws.clusters import Cluster, Group, newest_events, nodes_by_group
from ..aws.clusters import cluster as find_cluster
from ..aws.deployed import eks_cluster, is_store, stand_in_version
from ..aws.plans import plan
from ..aws.quarantines import quarantines
from ..aws.questions import ask_all_or_fail
from ..aws.sandbox_clusters import real_nodes
from ..aws.stacks import stack_resources
from ..aws.unseen import Unseen, attempt, noted
from ..cdk.deployment import deployed_stacks
from ..dashboards.sources import workspace
from ..jobs.slurm_jobs import is_slurm
from ..kubernetes.applied_objects import APPLIED, applied_objects, object_rows
from ..output.console import write_line
from ..output.tables import coloured, new_table
from ..spend.team_budgets import budget_blocks, budget_report
from .quota_table import quota_cells, quota_rows, quotas_beyond

_SHOWN: Final = 20
_AT_ONCE: Final = 4
"""Concurrent calls of one kind, beside those that list nodes."""
_SIMULATED: Final = (
    "Simulated: a stand-in for AWS on this machine answered the real CDK CLI. No instance runs, nothing costs money; "
    "nodes boot in seconds; "
)
_SIMULATED_ORCHESTRATOR: Final = {
    "real": "Kubernetes is upstream's control plane, which queues, schedules and controls; {}.",
    "store": "Kubernetes is a store of checked manifests, which cannot show what is queued, preempted or placed. "
    "`podwright sandbox kubernetes install` gets the next cluster a real control plane.",
    "": "no script and no daemon runs on them, Slurm's excepted where Debian's Slurm is installed; no container does.",
}
"""By what the cluster's Kubernetes is; empty without one."""
_NO_KARPENTER: Final = (
    "Karpenter is HyperPod's own and does not run here: the cluster keeps its node class and node pool, and no node "
    "comes because a pod waits."
)
_OTHER_MINOR: Final = (
    "Its control plane is Kubernetes {}, another minor version than the cluster's. `podwright sandbox kubernetes "
    "status` says which others can be installed; a cluster takes its own when the sandbox is stopped and started again."
)
Report = dict[str, Any]


def report(environment: Environment, account: Account, project: Path) -> Report:
    """Stacks, cluster, groups, nodes, quotas and objects of an environment, in the form that `--json` prints."""
    questions: dict[str, Callable[[], Report]] = {
        "stacks": lambda: _stacks(environment, account, project),
        "cluster": lambda: _cluster(environment, account),
        "budgets": lambda: _budgets(environment, account),
    }
    parts = ask_all_or_fail(questions)
    return {
        "environment": environment.name,
        "account": account.id,
        "region": account.region,
        "sandbox": account.endpoint,
        **parts["stacks"],
        **parts["cluster"],
        **parts["budgets"],
        "karpenter": karpenter.model_dump(mode="json") if (karpenter := environment.cluster.karpenter) else None,
    }


def _stacks(environment: Environment, account: Account, project: Path) -> Report:
    """Stacks, the Kubernetes objects that they apply, and what the sandbox has behind both."""
    stacks = deployed_stacks(account, environment.name, project, nested=True)
    resources = ask_all_or_fail(
        {stack.name: partial(stack_resources, account, stack.name) for stack in stacks}, at_once=_AT_ONCE
    )
    types = {name: Counter(map(attrgetter("type"), rows)) for name, rows in resources.items()}
    objects = applied_objects(account, [name for name, kinds in types.items() if kinds[APPLIED]])
    return {
        "stacks": [
            {"name": stack.name, "status": stack.status, "resources": types[stack.name].total()} for stack in stacks
        ],
        "objects": objects,
        **_sandbox_kubernetes(environment, account, bool(objects)),
        "recorded_only": _recorded_only(account, sum(types.values(), Counter())),
    }


def _budgets(environment: Environment, account: Account) -> Report:
    """Budgets of teams, where the file has some, and why they cannot be seen where they cannot."""
    if not budgets(environment.governance.teams):
        return {}
    unseen: dict[str, str] = {}
    settings = environment.observability or Observability()
    server = None
    if not is_slurm(environment):
        server = noted("team_budgets", lambda: workspace(environment, settings, account), unseen)
    rows = budget_report(environment, account, server, datetime.now(UTC), unseen)
    return {"team_budgets": rows, "team_budgets_unseen": unseen.get("team_budgets", "")}


def _sandbox_kubernetes(environment: Environment, account: Account, is_there: bool) -> Report:
    """The sandbox's Kubernetes, `real` or `store`, its version if the cluster has another minor, and its real nodes."""
    if not account.endpoint or not is_there:
        return {"sandbox_kubernetes": "", "sandbox_kubernetes_version": "", "sandbox_nodes": ""}
    cluster = eks_cluster(account, environment)
    kind, version = "store" if is_store(cluster) else "real", stand_in_version(cluster)
    nodes = real_nodes(cluster["name"], account) if kind == "real" else ""
    return {"sandbox_kubernetes": kind, "sandbox_kubernetes_version": version, "sandbox_nodes": nodes}


def _cluster(environment: Environment, account: Account) -> Report:
    """Cluster, groups in the order of the file, nodes and quotas; None and empty lists where it does not exist."""
    name = environment.cluster.name
    cluster = find_cluster(account, name)
    if cluster is None:
        return {"cluster": None, "groups": [], "nodes": [], "quotas": [], "quotas_beyond": []}
    order = list(environment.groups)
    groups = sorted(cluster.groups, key=lambda group: (*order, group.name).index(group.name))
    questions: dict[str, Callable[[], Any]] = {
        "nodes": lambda: nodes_by_group(account, cluster),
        "quarantines": lambda: _quarantines(environment, account),
        "quotas": lambda: quota_rows(environment, account, cluster.arn),
        "groups": lambda: ask_all_or_fail(
            {group.name: partial(_group, group, cluster, environment, account) for group in groups}, at_once=_AT_ONCE
        ),
    }
    answers = ask_all_or_fail(questions)
    known, out = answers["nodes"], answers["quarantines"]
    return {
        "cluster": {"name": name, "arn": cluster.arn, "status": cluster.status, "message": cluster.message},
        "groups": list(answers["groups"].values()),
        "nodes": [
            {"id": node.id, "group": node.group, "type": node.type, "status": node.status, "message": node.message}
            | {"quarantine": out.get(node.id, "")}
            for node in known
        ],
        "quotas": answers["quotas"],
        "quotas_beyond": quotas_beyond(environment, Counter(node.group for node in known if node.status == "Running")),
    }


def _quarantines(environment: Environment, account: Account) -> dict[str, str]:
    """Why nodes are in quarantine, by instance id."""
    result = attempt(lambda: quarantines(environment, account))
    if isinstance(result, Unseen):
        # Whoever may look at clusters may not always read their bucket.
        return {}
    return {id: str(item) for id, item in result.items()}


def _group(group: Group, cluster: Cluster, environment: Environment, account: Account) -> Report:
    settings = environment.groups.get(group.name)
    return {
        "name": group.name,
        "types": list(settings.types) if settings else [group.type],
        "zones": list(settings.zone_ids) if settings else [],
        "current": group.current,
        "target": group.target,
        "status": group.status,
        "plan": _plan(group, account),
        "message": _newest_event(account, cluster, group),
    }


def _plan(group: Group, account: Account) -> Report | None:
    """The training plan of a group: its name, its status, and when its instances come or go next, if that is known."""
    if not group.plan:
        return None
    result = attempt(lambda: plan(account, group.plan))
    if isinstance(result, Unseen):
        # Whoever may look at clusters may not always look at plans.
        return {
            "name": group.plan.rpartition("/")[2],
            "status": group.plan_status,
            "message": result.code or result.why,
        }
    times = {key: f"{at:%Y-%m-%d %H:%M} UTC" for key, at in (("until", result.until), ("from", result.starts)) if at}
    return {"name": result.name, "status": result.status} | times


def _newest_event(account: Account, cluster: Cluster, group: Group) -> str:
    """What HyperPod last said about a group that is not full. Only continuous provisioning has events."""
    if group.current >= group.target or not cluster.continuous:
        return ""
    events = newest_events(account, cluster.name, 1, InstanceGroupName=group.name, ResourceType="InstanceGroup")
    return events[0].text if events else ""


def _recorded_only(account: Account, types: Counter[str]) -> dict[str, int]:
    """Resource types that the sandbox keeps as records, with nothing behind them; empty for AWS."""
    if account.endpoint is None:
        return {}
    query = urlencode({"type": sorted(types)}, doseq=True)
    # No proxy: the sandbox is on this machine.
    with build_opener(ProxyHandler({})).open(f"{account.endpoint}{RECORDED_TYPES}?{query}") as answer:
        return {name: types[name] for name in json.load(answer)}


def write_report(result: Report) -> None:
    """Print a report as tables."""
    stacks = ((stack["name"], str(stack["resources"]), coloured(stack["status"])) for stack in result["stacks"])
    tables = [new_table("Stacks", ("stack", "resources", "status"), stacks)]
    if result["cluster"]:
        tables.append(_group_table(result))
    if result["nodes"]:
        tables.append(_node_table(result["nodes"]))
    if result["quotas"]:
        tables.append(_quota_table(result["quotas"]))
    if result["objects"]:
        title = "Kubernetes objects that the deployment applied"
        objects = object_rows(result["objects"])
        tables.append(new_table(title, ("namespace", "kind", "names"), objects[:_SHOWN]))
        if len(objects) > _SHOWN:
            tables[-1].add_row(f"and {len(objects) - _SHOWN} more kinds")
    for table in tables:
        write_line(table)
        write_line()
    cluster = [result["cluster"]] if result["cluster"] else []
    if message := [f"{item['name']}: {item['message']}" for item in (*cluster, *result["groups"]) if item["message"]]:
        write_line("\n".join(message))
        write_line()
    karpenter = Karpenter.model_validate(result["karpenter"]) if result["karpenter"] and result["cluster"] else None
    if karpenter:
        groups, limits = listed(karpenter.groups, "and"), limit_words(karpenter)
        write_line(f"Karpenter scales {groups} while pods wait, up to {limits} together.")
    for quota in result["quotas_beyond"]:
        write_line(f"Quotas above what takes work now: {quota['words']}.")
    if rows := result.get("team_budgets"):
        for block in budget_blocks(rows):
            write_line(block)
    elif message := result.get("team_budgets_unseen"):
        write_line(f"Budgets of teams cannot be seen: {message}")
    if not result["cluster"]:
        write_line("There is no HyperPod cluster.")
    if result["sandbox"]:
        orchestrator = _SIMULATED_ORCHESTRATOR[result["sandbox_kubernetes"]].format(result["sandbox_nodes"])
        write_line(_SIMULATED + orchestrator)
        if version := result["sandbox_kubernetes_version"]:
            write_line(_OTHER_MINOR.format(version))
        if karpenter:
            write_line(_NO_KARPENTER)
        if recorded := ", ".join(f"{name} ({count})" for name, count in result["recorded_only"].items()):
            write_line(f"Only recorded, with nothing behind them: {recorded}.")


def _group_table(result: Report) -> Any:
    """Groups with their counts, and with training plans where a group has one."""
    cluster = result["cluster"]
    title = f"Cluster {cluster['name']}: {cluster['status']}"
    planned = any(group["plan"] for group in result["groups"])
    columns = ("group", "type", "zone", "current", "target", "status", "training plan")
    table = new_table(title, columns if planned else columns[:-1], optional=("zone",))
    for group in result["groups"]:
        counts, plan = (str(group["current"]), str(group["target"])), group["plan"]
        state = coloured(group["status"])
        if plan and plan["status"] == "Scheduled":
            # It lacks nodes because their time has not come.
            state.style = "yellow"
        words = [f"{plan['name']}: {plan['status']}", *(_turn(plan))] if plan else []
        table.add_row(
            group["name"],
            ", ".join(group["types"]),
            ", ".join(group["zones"]),
            *counts,
            state,
            *([" ".join(words)] if planned else []),
        )
    return table


def _quota_table(quotas: list[Report]) -> Any:
    rows = ((*quota_cells(row), _with_message(row)) for row in quotas)
    return new_table("Quotas", ("team", "guaranteed", "shares", "weight", "status"), rows)


def _with_message(row: Report) -> Any:
    """The status of a quota or a node, and what is said of it."""
    words = "; ".join(filter(None, (row["message"], row.get("quarantine"))))
    return coloured(row["status"]).append(f" {words}".rstrip(), "default")


def _turn(plan: Report) -> list[str]:
    """When a plan's instances go, or else when they come."""
    return [f"{key} {plan[key]}" for key in ("until", "from") if key in plan][:1]


def _node_table(nodes: list[Report]) -> Any:
    """Every node of a small cluster; of a large one those that failed or are in quarantine, and the others counted."""
    few = len(nodes) <= _SHOWN
    shown = [node for node in nodes if few or node["status"] == "Failure" or node["quarantine"]][:_SHOWN]
    ordered = sorted(shown, key=lambda node: (node["group"], node["id"]))
    rows = ((node["id"], node["group"], _with_message(node)) for node in ordered)
    table = new_table("Nodes", ("node", "group", "status"), rows)
    if not few:
        counts = Counter((node["group"], node["status"]) for node in nodes)
        for (group, status), count in sorted(counts.items()):
            table.add_row(f"{count:,} nodes", group, coloured(status))
    return table
