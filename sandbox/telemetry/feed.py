"""The metrics of the clusters that are there, as the page that a workspace's Prometheus scrapes.

It is what `metrics.snapshot` makes up, drawn on the nodes that really are in the sandbox. A cluster sends to the
workspace that its collector is configured with: the add-on on EKS, the extension on Slurm.
"""

import json
from datetime import datetime
from typing import Final

from ...config.catalog.instance_types import catalog
from ...config.catalog.metrics import metrics
from ...planning.monitoring.synthetic.cluster import Node, SyntheticCluster, teams_and_jobs
from ...planning.monitoring.synthetic.metrics import snapshot
from ..hyperpod.cluster import Cluster
from ..protocol.clock import now
from ..sagemaker.service import HyperPod

PATH: Final = "/podwright/metrics/"
"""Below it, the page of each workspace."""
CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_DEVICES: Final = 2
_NODES_IN_FULL: Final = 16
"""Further nodes show one device of each kind: a page grows with the nodes, and is read four times a minute."""


def page(hyperpod: HyperPod, workspace: str) -> str:
    """What all clusters that send to a workspace show now; exporters that are silent show nothing."""
    timestamp, lines = now(), dict[str, list[str]]()
    silent = hyperpod.faults["exporters"]
    for cluster in [item for region in _regions(hyperpod) for item in hyperpod.all(region)]:
        if not _sends(hyperpod, cluster, workspace):
            continue
        for line in snapshot(_synthetic_cluster(hyperpod, cluster, timestamp), timestamp.timestamp()).splitlines():
            # A family has its lines together, of whatever cluster they are.
            name = line.split(" ")[2] if line.startswith("# ") and line != "# EOF" else line.partition("{")[0]
            lines.setdefault(name.removesuffix("_total"), []).append(line)
    loud = [
        line
        for family, group in lines.items()
        for line in dict.fromkeys(group)
        if line != "# EOF" and _exporter(family) not in silent
    ]
    return "\n".join([*loud, "# EOF", ""])


def _regions(hyperpod: HyperPod) -> list[str]:
    return sorted({region for region, _ in hyperpod.clusters})


def _exporter(family: str) -> str:
    metric = metrics().get(family) or metrics().get(f"{family}_total")
    return metric.exporter if metric else ""


def _sends(hyperpod: HyperPod, cluster: Cluster, workspace: str) -> bool:
    """Whether a cluster's collector is configured with a workspace."""
    arn = cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
    eks = hyperpod.eks.by_arn(arn)
    settings = [addon.get("configurationValues", "") for addon in eks.addons.values()] if eks else []
    settings += [json.dumps(item.get("ConfigurationValues", "")) for item in cluster.extensions.values()]
    return any(workspace in (text or "") for text in settings)


def _synthetic_cluster(hyperpod: HyperPod, cluster: Cluster, timestamp: datetime) -> SyntheticCluster:
    """A synthetic cluster with the nodes, jobs and plans of a simulated one, so that metrics agree with its API."""
    types, nodes = catalog(), list[Node]()
    running = [node for node in cluster.nodes if node.status(timestamp) == "Running"]
    for number, node in enumerate(running):
        devices = _DEVICES if number < _NODES_IN_FULL else 1
        row = types.find(node.instance_type)
        nvidia = bool(row and row.accelerator_vendor == "nvidia")
        nodes.append(
            Node(
                name=f"hyperpod-{node.instance_id}",
                instance_id=node.instance_id,
                logical_id=node.logical_id,
                group=node.group,
                instance_type=node.instance_type,
                zone_id=node.zone_id,
                address=node.address,
                gpus=min(row.accelerator_count, devices) if row and nvidia else 0,
                gpu_model=f"NVIDIA {row.accelerator_name}" if row else "",
                gpu_mib=row.accelerator_memory_mib if row else 0,
                efa=min(row.efa_interfaces, devices) if row else 0,
                neuron=min(row.neuron_cores, devices) if row else 0,
                memory_gib=row.memory_gib if row else 64.0,
            )
        )
    start = cluster.created.timestamp()
    quotas = [
        item.settings["ComputeQuotaTarget"]["TeamName"]
        for item in hyperpod.schedulers.all("ComputeQuota", cluster.region)
        if item.cluster_arn == cluster.arn
    ]
    teams, jobs = teams_and_jobs(quotas or ["research"], [node for node in nodes if node.gpus], start)
    return SyntheticCluster(
        cluster=cluster.name,
        orchestrator="eks" if "Eks" in cluster.request.get("Orchestrator", {}) else "slurm",
        region=cluster.region,
        account=hyperpod.clients.account,
        start=start,
        end=timestamp.timestamp() + 1,
        nodes=nodes,
        teams=teams,
        jobs=jobs,
    )
