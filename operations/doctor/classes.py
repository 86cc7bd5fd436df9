"""The classes of causes that doctor tells apart, each with the question that decides whether a cause belongs to it."""

from typing import Final

CLASSES: Final = {
    "capacity": "AWS has no free instance of the type in the zone, or reclaimed a Spot instance",
    "zone": "the zone does not offer the type, or group, plan and subnet are in different zones",
    "quota": "a limit of Service Quotas, or of the number of resources in the account, is reached",
    "subnet": "a subnet has no free addresses left, is missing, or is one that nodes cannot use (public, wrong VPC)",
    "iam": "a role, policy, trust, organization policy or key policy does not allow a call",
    "lifecycle": "a step of the lifecycle scripts, or the scripts' own files, failed for no other listed reason",
    "efa": "EFA does not work: security group without rules to itself, failed check, provider or plugin not in use",
    "image": "a container image or a machine image cannot be found, pulled or started on this kind of node",
    "training_plan": "a training plan has not begun, has ended, was not paid, or does not fit the group",
    "quota_engine": "teams' quotas: Kueue, task governance or another scheduler refuses, holds or stops the job",
    "storage": "a file system or volume is full, or cannot be created, mounted or written",
    "network": "a name does not resolve, or an endpoint, proxy, route or port is not reachable",
    "node_health": "a node's hardware is faulty: GPU, memory, NVLink, thermal, network card, failed deep health check",
    "kubernetes": "the Kubernetes side lacks or refuses something: add-on, chart, webhook, RBAC, taint, device plugin",
    "cost_guard": "a cost limit stopped it: a plan above its limit, purchase not allowed, a budget's action",
    "slurm": "Slurm's daemons, configuration or accounting do not work",
    "job": "the training job's own code or settings: an exception, its memory request, a collective that timed out",
    "software": "versions on a node or in an image do not fit: driver, CUDA, NCCL, kernel module, Python package",
    "configuration": "a request or a template is invalid: an invalid value, a forbidden change",
    "stack": "CloudFormation cannot continue: a name or export in use, a deletion refused, its own time-out",
    "service": "a fault of AWS: an internal failure, or throttling",
}
"""By name: what belongs to it. The more exact class wins: an unreadable bucket that fails a lifecycle step is `iam`."""
