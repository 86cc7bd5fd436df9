"""One observation at a live cluster, made of few calls at once; what nobody lets us see is named."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...cdk8s_charts.benchmark_labels.handler.benchmark_labeller import DEGRADED
from ...config.catalog.drills import FAULT_LABELS, HEALTH_LABEL
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.quota.amounts import CPU, amount_of
from ...planning.quota.team_names import cluster_queue
from ..aws.account import Account
from ..aws.calls import CallCount
from ..aws.clusters import Cluster, Node, newest_events, nodes_by_group
from ..aws.clusters import cluster as find_cluster
from ..aws.plans import Plan, plan
from ..aws.quarantines import quarantines
from ..aws.questions import ask_all
from ..aws.unseen import Unseen, attempt, noted
from ..kubernetes.kubectl import Kubectl, Refused, way
from .quota_table import quota_rows, quotas_beyond

Report = dict[str, Any]
EVENTS: Final = 10
"""How many of the newest events are shown."""
_SECONDS_PER_DAY: Final = 86400


class Live:
    """Looks at one cluster again and again."""

    def __init__(self, environment: Environment, account: Account, project: Path) -> None:
        """Looks at the cluster of `environment`. A way to Kubernetes is looked for once."""
        self._environment, self._cluster = environment, environment.cluster.name
        self._account, self._calls = account, CallCount(account, "sagemaker")
        self._kubectl, self._no_way = self._find_way(account, project)

    def read(self) -> Report:
        """The state of things now, in the form that `--json` prints. A cluster that is not there is None."""
        started = time.monotonic()
        self._calls.clear()
        unseen: dict[str, str] = {}
        cluster = noted("cluster", lambda: find_cluster(self._account, self._cluster), unseen)
        parts: dict[str, Any] = {}
        if cluster:
            questions: dict[str, Callable[[], Any]] = {
                "nodes": lambda: nodes_by_group(self._account, cluster),
                "events": lambda: self._events(cluster),
                "quotas": lambda: self._quotas(cluster),
                "training plans": lambda: self._plans(cluster),
                "node health": self._health,
                "set-ups of nodes": self._degraded,
                "quarantines": lambda: quarantines(self._environment, self._account),
                "queues": self._queues,
            }
            asked = {name: partial(noted, name, question, unseen, Refused) for name, question in questions.items()}
            parts.update(ask_all(asked))
        known, health = parts.get("nodes"), parts.get("node health") or {}
        out = {id: str(item) for id, item in (parts.get("quarantines") or {}).items()}
        working = _working(known or [], {*health, *out})
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": self._environment.name,
            "sandbox": self._account.endpoint,
            "cluster": cluster and {"name": self._cluster, "status": cluster.status, "message": cluster.message},
            "groups": self._groups(cluster, parts.get("nodes") or []) if cluster else [],
            "unhealthy": _unhealthy(known or [], health, parts.get("set-ups of nodes") or {}, out),
            "events": parts.get("events") or [],
            # Without the nodes nobody knows what takes work.
            "quotas_beyond": [] if known is None else quotas_beyond(self._environment, working),
            "teams": _teams(self._environment, parts.get("quotas") or [], parts.get("queues") or {}),
            "plans": parts.get("training plans") or [],
            "unseen": dict(sorted(unseen.items())),
            "cost": {
                "calls": sum(self._calls.by_operation.values()),
                "operations": self._calls.by_operation,
                "seconds": round(time.monotonic() - started, 2),
            },
        }

    def _find_way(self, account: Account, project: Path) -> tuple[Kubectl | None, str]:
        """The way to Kubernetes, or why there is none."""
        environment = self._environment
        if environment.cluster.orchestrator != "eks":
            return None, ""
        result = attempt(lambda: way(project, environment, account))
        if isinstance(result, Unseen):
            # Its words say more than that the question failed: which file, or which context is missing.
            return None, str(result.__cause__)
        return result, "" if result else f"no way to it from here; `podwright connect {environment.name}` opens one"

    def _groups(self, cluster: Cluster, nodes: list[Node]) -> list[Report]:
        """The groups in the order of the file, each with its counts by status."""
        order = list(self._environment.groups)
        return [
            {
                "name": row.name,
                "types": list(group.types) if (group := self._environment.groups.get(row.name)) else [],
                "current": row.current,
                "target": row.target,
                "status": row.status,
                "statuses": _statuses(nodes, row.name),
                "plan": row.plan.rpartition("/")[2],
            }
            for row in sorted(cluster.groups, key=lambda row: (*order, row.name).index(row.name))
        ]

    def _events(self, cluster: Cluster) -> list[Report]:
        if not cluster.continuous:
            raise CommandError("HyperPod keeps events of clusters with continuous provisioning only")
        return [
            {
                "at": event.at.astimezone(UTC).isoformat(timespec="seconds"),
                "level": event.level,
                "about": event.node_or_group or self._cluster,
                "text": event.text,
            }
            for event in newest_events(self._account, self._cluster, EVENTS)
        ]

    def _quotas(self, cluster: Cluster) -> list[Report]:
        rows = quota_rows(self._environment, self._account, cluster.arn)
        # A row without a team says that SageMaker refused; raised, it stands among what was not seen.
        if rows and not rows[0]["team"]:
            raise CommandError(f"{rows[0]['message']} on ListComputeQuotas")
        return rows

    def _plans(self, cluster: Cluster) -> list[Report]:
        arns = sorted({group.plan for group in cluster.groups if group.plan})
        return [_plan(plan(self._account, arn)) for arn in arns]

    def _kubernetes(self) -> Kubectl | None:
        """The way to Kubernetes; None on Slurm. Raises CommandError where the way is missing."""
        if self._no_way:
            raise CommandError(f"Kubernetes: {self._no_way}")
        return self._kubectl

    def _health(self) -> dict[str, Report]:
        """The nodes that HyperPod does not call healthy, by instance id: their label and what it says of the fault."""
        kubectl = self._kubernetes()
        # Only what is not well: all nodes of a large cluster would be many megabytes.
        result = kubectl.items("nodes", f"--selector={HEALTH_LABEL}!=Schedulable") if kubectl else []
        return {
            item["metadata"]["name"].removeprefix("hyperpod-"): {
                "health": labels[HEALTH_LABEL],
                "fault": _fault(labels),
            }
            for item in result
            if HEALTH_LABEL in (labels := item["metadata"].get("labels", {}))
        }

    def _degraded(self) -> dict[str, str]:
        """The failed steps of nodes that joined all the same, by instance id."""
        kubectl = self._kubernetes()
        result = kubectl.items("nodes", f"--selector={DEGRADED}") if kubectl else []
        return {
            item["metadata"]["name"].removeprefix("hyperpod-"): item["metadata"]["labels"][DEGRADED] for item in result
        }

    def _queues(self) -> dict[str, Report]:
        """The ClusterQueues by name, where Kueue keeps the quotas."""
        if self._environment.governance.engine not in ("hyperpod", "kueue"):
            return {}
        kubectl = self._kubernetes()
        queues = kubectl.items("clusterqueues.kueue.x-k8s.io") if kubectl else []
        return {queue["metadata"]["name"]: queue for queue in queues}


def _statuses(nodes: list[Node], group: str) -> dict[str, int]:
    """How many nodes of a group have each status."""
    return dict(sorted(Counter(node.status for node in nodes if node.group == group).items()))


def _fault(labels: dict[str, str]) -> str:
    """What HyperPod says of a node's fault, in labels of its own."""
    return ", ".join(value for key, value in sorted(labels.items()) if key.startswith(FAULT_LABELS))


def _unhealthy(
    nodes: list[Node], health: dict[str, Report], degraded: dict[str, str], out: dict[str, str]
) -> list[Report]:
    """Nodes that do not run, that HyperPod does not call healthy, whose set-up failed in part, or in quarantine."""
    none = {"health": "", "fault": ""}
    return [
        {"id": node.id, "group": node.group, "status": node.status, "message": node.message}
        | health.get(node.id, none)
        | {"degraded": degraded.get(node.id, ""), "quarantine": out.get(node.id, "")}
        for node in sorted(nodes, key=lambda node: (node.group, node.id))
        if node.status != "Running" or {node.id} & {*health, *degraded, *out}
    ]


def _working(nodes: list[Node], idle: Collection[str]) -> Counter[str]:
    """How many nodes of each group take work; those that run and take none are `idle`."""
    return Counter(node.group for node in nodes if node.status == "Running" and node.id not in idle)


def _teams(environment: Environment, quotas: list[Report], queues: dict[str, Report]) -> list[Report]:
    """Each team's quota with what it holds, has borrowed and waits for."""
    engine, by_team = environment.governance.engine, {row["team"]: row for row in quotas}
    if engine not in ("hyperpod", "kueue"):
        return []
    rows: list[Report] = []
    for team in sorted({*environment.governance.teams, *by_team} - {""}):
        queue = queues.get(cluster_queue(engine, team))
        state = (queue or {}).get("status", {})
        usage = [part for flavor in state.get("flavorsUsage") or () for part in flavor.get("resources") or ()]
        groups = (queue or {}).get("spec", {}).get("resourceGroups") or ()
        flavors = [flavor for group in groups for flavor in group["flavors"]]
        nominal = [part for flavor in flavors for part in flavor["resources"]]
        rows.append(
            {
                "team": team,
                "quota": by_team.get(team),
                "guaranteed": _sums(nominal, "nominalQuota") if queue is not None else None,
                "used": _sums(usage, "total") if queue is not None else None,
                "borrowed": _sums(usage, "borrowed") if queue is not None else None,
                "running": state.get("admittedWorkloads", 0) if queue is not None else None,
                "waiting": state.get("pendingWorkloads", 0) if queue is not None else None,
            }
        )
    return rows


def _sums(parts: list[Report], key: str) -> dict[str, float]:
    """vCPUs, accelerators and other devices by resource. Memory follows them, and is left out."""
    sums: Counter[str] = Counter()
    for part in parts:
        # Extended resources have a domain in their name; cpu and memory have none.
        if part["name"] == CPU or "/" in part["name"]:
            sums[part["name"]] += amount_of(part["name"], part.get(key) or 0)
    # In vCPUs, as Kubernetes shows them; devices are whole numbers.
    return {name: amount / 1000 if name == CPU else amount for name, amount in sorted(sums.items()) if amount}


def _plan(plan: Plan) -> Report:
    left = plan.until - datetime.now(UTC) if plan.until else None
    return {
        "name": plan.name,
        "status": plan.status,
        "from": plan.starts.astimezone(UTC).isoformat(timespec="minutes") if plan.starts else "",
        "until": plan.until.astimezone(UTC).isoformat(timespec="minutes") if plan.until else "",
        "days_left": round(left.total_seconds() / _SECONDS_PER_DAY, 1) if left is not None else None,
        "total": plan.total,
        "in_use": plan.in_use,
        "available": plan.available,
        "unhealthy": plan.unhealthy,
    }
