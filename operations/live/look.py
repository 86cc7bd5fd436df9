"""One look at a live cluster, made of few calls at once; what nobody lets us see is named."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...config.catalog.drills import FAULT_LABELS, HEALTH_LABEL
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.quota.team_names import cluster_queue
from ..aws.account import Account
from ..kubernetes.kubectl import Kubectl, Refused, way
from ..nodes.members import Member, members
from .quota_table import quota_rows

Report = dict[str, Any]
EVENTS: Final = 10
"""How many of the newest events are shown."""
_SECONDS_PER_DAY: Final = 86400


class Live:
    """Looks at one cluster again and again."""

    def __init__(self, environment: Environment, account: Account, project: Path) -> None:
        """Looks at the cluster of `environment`. A way to Kubernetes is looked for once."""
        self._environment, self._cluster = environment, environment.cluster.name
        self._client, self._sandbox = account.client("sagemaker"), account.endpoint
        self._calls: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._client.meta.events.register("before-send.sagemaker", self._count)
        self._kubectl, self._no_way = self._find_way(account, project)

    def look(self) -> Report:
        """The state of things now, in the form that `--json` prints. A cluster that is not there is None."""
        begun = time.monotonic()
        with self._counting:
            self._calls.clear()
        unseen: dict[str, str] = {}
        cluster = self._ask("cluster", self._describe, unseen)
        parts: dict[str, Any] = {}
        if cluster:
            questions: dict[str, Callable[[], Any]] = {
                "nodes": lambda: members(self._client, self._cluster),
                "events": lambda: self._events(cluster),
                "quotas": lambda: self._quotas(cluster),
                "training plans": lambda: self._plans(cluster),
                "node health": self._health,
                "queues": self._queues,
            }
            with ThreadPoolExecutor(len(questions)) as pool:
                asked = {name: pool.submit(self._ask, name, question, unseen) for name, question in questions.items()}
            parts = {name: answer.result() for name, answer in asked.items()}
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": self._environment.name,
            "sandbox": self._sandbox,
            "cluster": cluster
            and {
                "name": self._cluster,
                "status": cluster["ClusterStatus"],
                "message": cluster.get("FailureMessage", ""),
            },
            "groups": self._groups(cluster or {}, parts.get("nodes") or []),
            "unwell": _unwell(parts.get("nodes") or [], parts.get("node health") or {}),
            "events": parts.get("events") or [],
            "teams": _teams(self._environment, parts.get("quotas") or [], parts.get("queues") or {}),
            "plans": parts.get("training plans") or [],
            "unseen": dict(sorted(unseen.items())),
            "cost": {
                "calls": self._calls.total(),
                "operations": dict(sorted(self._calls.items())),
                "seconds": round(time.monotonic() - begun, 2),
            },
        }

    def _count(self, event_name: str, **_: Any) -> None:
        with self._counting:
            self._calls[event_name.rpartition(".")[2]] += 1

    def _find_way(self, account: Account, project: Path) -> tuple[Kubectl | None, str]:
        """The way to Kubernetes, or why there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        environment = self._environment
        if environment.cluster.orchestrator != "eks":
            return None, ""
        try:
            found = way(project, environment, account)
        except (CommandError, BotoCoreError, ClientError) as error:
            return None, str(error)
        return found, "" if found else f"no way to it from here; `podwright connect {environment.name}` opens one"

    def _ask(self, name: str, question: Callable[[], Any], unseen: dict[str, str]) -> Any:
        """The answer; None, and the reason in `unseen`, where there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return question()
        except ClientError as error:
            unseen[name] = f"{error.response['Error']['Code']} on {error.operation_name}"
        except (BotoCoreError, Refused, CommandError) as error:
            unseen[name] = str(error)
        return None

    def _describe(self) -> Report | None:
        try:
            return self._client.describe_cluster(ClusterName=self._cluster)
        except self._client.exceptions.ResourceNotFound:
            return None

    def _groups(self, cluster: Report, nodes: list[Member]) -> list[Report]:
        counts = Counter((node.group, node.status) for node in nodes)
        rows = [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]
        order = list(self._environment.groups)
        return [
            {
                "name": (name := row["InstanceGroupName"]),
                "types": list(group.types) if (group := self._environment.groups.get(name)) else [],
                "current": row["CurrentCount"],
                "target": row["TargetCount"],
                "status": row.get("Status", ""),
                "statuses": {status: count for (of, status), count in sorted(counts.items()) if of == name},
                "plan": row.get("TrainingPlanArn", "").rpartition("/")[2],
            }
            for row in sorted(rows, key=lambda row: (*order, row["InstanceGroupName"]).index(row["InstanceGroupName"]))
        ]

    def _events(self, cluster: Report) -> list[Report]:
        if cluster.get("NodeProvisioningMode") != "Continuous":
            raise CommandError("HyperPod keeps events of clusters with continuous provisioning only")
        newest = self._client.list_cluster_events(
            ClusterName=self._cluster, SortBy="EventTime", SortOrder="Descending", MaxResults=EVENTS
        )["Events"]
        return [
            {
                "at": event["EventTime"].astimezone(UTC).isoformat(timespec="seconds"),
                "level": event.get("EventLevel", "Info"),
                "about": event.get("InstanceId") or event.get("InstanceGroupName") or self._cluster,
                "text": event.get("Description", ""),
            }
            for event in newest
        ]

    def _quotas(self, cluster: Report) -> list[Report]:
        rows = quota_rows(self._environment, self._client, cluster["ClusterArn"])
        if rows and not rows[0]["team"]:
            raise CommandError(f"{rows[0]['message']} on ListComputeQuotas")
        return rows

    def _plans(self, cluster: Report) -> list[Report]:
        groups = [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]
        arns = sorted({group["TrainingPlanArn"] for group in groups if group.get("TrainingPlanArn")})
        return [_plan(self._client.describe_training_plan(TrainingPlanName=arn)) for arn in arns]

    def _kubernetes(self) -> Kubectl | None:
        """The way to Kubernetes; None on Slurm. Raises CommandError where the way is missing."""
        if self._no_way:
            raise CommandError(f"Kubernetes: {self._no_way}")
        return self._kubectl

    def _health(self) -> dict[str, Report]:
        """The nodes that HyperPod does not call healthy, by instance id: their label and what it says of the fault."""
        kubectl = self._kubernetes()
        # Only what is not well: all nodes of a large cluster would be many megabytes.
        found = kubectl.items("nodes", f"--selector={HEALTH_LABEL}!=Schedulable") if kubectl else []
        return {
            item["metadata"]["name"].removeprefix("hyperpod-"): {
                "health": labels[HEALTH_LABEL],
                "fault": ", ".join(value for key, value in sorted(labels.items()) if key.startswith(FAULT_LABELS)),
            }
            for item in found
            if HEALTH_LABEL in (labels := item["metadata"].get("labels", {}))
        }

    def _queues(self) -> dict[str, Report]:
        """What teams hold and wait for, by queue, where Kueue keeps the quotas."""
        if self._environment.governance.engine not in ("hyperpod", "kueue"):
            return {}
        kubectl = self._kubernetes()
        queues = kubectl.items("clusterqueues.kueue.x-k8s.io") if kubectl else []
        return {queue["metadata"]["name"]: queue.get("status", {}) for queue in queues}


def _unwell(nodes: list[Member], health: dict[str, Report]) -> list[Report]:
    """Nodes that do not run, or that HyperPod does not call healthy."""
    none = {"health": "", "fault": ""}
    return [
        {"id": node.id, "group": node.group, "status": node.status, "message": node.message} | health.get(node.id, none)
        for node in sorted(nodes, key=lambda node: (node.group, node.id))
        if node.status != "Running" or node.id in health
    ]


def _teams(environment: Environment, quotas: list[Report], queues: dict[str, Report]) -> list[Report]:
    """Each team's quota with what it holds, has borrowed and waits for."""
    engine, by_team = environment.governance.engine, {row["team"]: row for row in quotas}
    if engine not in ("hyperpod", "kueue"):
        return []
    rows: list[Report] = []
    for team in sorted({*environment.governance.teams, *by_team} - {""}):
        queue = queues.get(cluster_queue(engine, team))
        usage = [part for flavor in (queue or {}).get("flavorsUsage", ()) for part in flavor.get("resources", ())]
        rows.append(
            {
                "team": team,
                "quota": by_team.get(team),
                "used": _sums(usage, "total") if queue is not None else None,
                "borrowed": _sums(usage, "borrowed") if queue is not None else None,
                "running": queue.get("admittedWorkloads", 0) if queue is not None else None,
                "waiting": queue.get("pendingWorkloads", 0) if queue is not None else None,
            }
        )
    return rows


def _sums(usage: list[Report], field: str) -> dict[str, int]:
    """Accelerators by resource. CPU and memory follow them, and are left out."""
    sums: Counter[str] = Counter()
    for part in usage:
        if "/" in part["name"] and (amount := int(part.get(field) or 0)):
            sums[part["name"]] += amount
    return dict(sums)


def _plan(plan: Report) -> Report:
    now = datetime.now(UTC)
    parts = sorted(plan.get("ReservedCapacitySummaries", ()), key=lambda part: part["StartTime"])
    active = [part for part in parts if part["Status"] == "Active"]
    coming = [part for part in parts if part["Status"] == "Scheduled"]
    until = active[0]["EndTime"] if active else None
    return {
        "name": plan["TrainingPlanName"],
        "status": plan["Status"],
        "from": coming[0]["StartTime"].astimezone(UTC).isoformat(timespec="minutes") if coming else "",
        "until": until.astimezone(UTC).isoformat(timespec="minutes") if until else "",
        "days_left": round((until - now).total_seconds() / _SECONDS_PER_DAY, 1) if until else None,
        "total": plan.get("TotalInstanceCount", 0),
        "in_use": plan.get("InUseInstanceCount", 0),
        "available": plan.get("AvailableInstanceCount", 0),
        "unhealthy": plan.get("UnhealthyInstanceCount", 0),
    }
