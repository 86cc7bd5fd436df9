"""What people call a setting that has another name here."""

from typing import Final

from ..settings.cluster import AUTOSCALING_EXAMPLE

BESIDE: Final = {
    "gpu": ("accelerators",),
    "gpus": ("accelerators",),
    "num_gpus": ("accelerators",),
    "cpu": ("vcpu",),
    "cpus": ("vcpu",),
    "memory": ("memory_gib", "size_gib"),
    "nodes": ("count",),
    "replicas": ("nodes", "count"),
    "instances": ("count", "instance_groups"),
    "size": ("capacity_gib", "count", "size_gib"),
    "type": ("instance_type", "kind"),
    "az": ("zone", "zones"),
    "azs": ("zones",),
    "availability_zone": ("zone", "zones"),
    "availability_zones": ("zones",),
    "queue": ("team",),
    "user": ("team",),
    "args": ("command",),
    "entrypoint": ("command",),
    "volumes": ("mounts",),
    "environment": ("env",),
    "priority_class": ("priority",),
    "mig": ("partition",),
    "groups": ("instance_groups",),
    "fsx": ("lustre", "storage"),
    "teams": ("governance",),
    "subnets": ("zones", "nodes"),
}
"""By what somebody wrote: what it may be called at the same place, the likeliest first."""

ELSEWHERE: Final = {
    "slack": ("observability.alerts.chat.slack", "{workspace: T07EA123LEP, channel: C0123456789}"),
    "gpu": ("instance_groups.NAME.instance_type", "ml.p5.48xlarge"),
    "gpus": ("instance_groups.NAME.instance_type", "ml.p5.48xlarge"),
    "email": ("observability.alerts.emails", "[ml-platform@example.com]"),
    "emails": ("observability.alerts.emails", "[ml-platform@example.com]"),
    "karpenter": ("cluster.autoscaling", AUTOSCALING_EXAMPLE),
    "autoscaling": ("cluster.autoscaling", AUTOSCALING_EXAMPLE),
    "mig": ("instance_groups.NAME.labels", "{nvidia.com/mig.config: all-1g.18gb}"),
    "partition": ("instance_groups.NAME.slurm", "{node_type: compute, partition: h200}"),
    "kueue": ("governance.engine", "kueue"),
    "budget": ("observability.budget_usd_per_month", "100000"),
    "kubernetes_version": ("cluster.eks.version", '"1.34"'),
    "eks": ("cluster.eks", "{}"),
    "slurm": ("cluster.orchestrator", "slurm"),
    "lustre": ("storage.lustre", "{throughput: 1000}"),
    "training_plan": ("instance_groups.NAME.capacity", "{training_plan: prod-q1}"),
    "spot": ("instance_groups.NAME.capacity", "spot"),
    "quota": ("governance.teams.NAME.quota", "{NAME: {accelerators: 8}}"),
}
"""Where there is a setting of that meaning: its path and a value."""
