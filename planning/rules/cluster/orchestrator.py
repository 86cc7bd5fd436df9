"""Rules on settings that belong to the orchestrator that an environment does not use."""

from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ..capacity.zones import sections
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from .slurm import of_type, on_slurm


@rule("ORC001", WARNING, on=Environment, source="")
def eks_on_slurm(environment: Environment) -> Problems:
    """EKS settings on a Slurm cluster."""
    cluster = environment.cluster
    if not on_slurm(environment):
        return
    if "eks" in cluster.model_fields_set:
        yield Problem(("cluster", "eks"), "eks has no effect: orchestrator is slurm", "remove it")
    if cluster.system_group not in of_type(environment, "controller"):
        yield Problem(
            ("cluster", "system_group"),
            f"system_group is {cluster.system_group} and has no effect: a Slurm cluster is in service once its "
            "controller and a login node are",
            "remove it",
        )


@rule("ORC002", ERROR, on=Environment, source="hyperpod-karpenter hyperpod-tiered cfn-cluster", final=True)
def refused_on_slurm(environment: Environment) -> Problems:
    """EKS-only setting on a Slurm cluster."""
    if not on_slurm(environment):
        return
    for field in ("autoscaling", "tiered_checkpoints"):
        if getattr(environment.cluster, field):
            yield Problem(("cluster", field), f"HyperPod has {field} on EKS only", "remove it, or use orchestrator eks")
    for path, group in sections(environment):
        if isinstance(group, InstanceGroup):
            for field in ("labels", "taints", "image_release"):
                if getattr(group, field):
                    yield Problem(
                        (*path, field), f"HyperPod takes {field} of groups on EKS only", "remove it from this group"
                    )


@rule("ORC005", ERROR, on=Environment, source="hyperpod-update")
def batches_on_slurm(environment: Environment) -> Problems:
    """Batch updates on a Slurm cluster."""
    for path, group in sections(environment):
        for field in ("patching", "scheduled_update"):
            if on_slurm(environment) and getattr(group, field, None):
                yield Problem(
                    (*path, field),
                    f"{field} moves over a group in batches, which HyperPod documents for EKS only",
                    "remove it and call UpdateClusterSoftware when the cluster is idle",
                )


@rule("ORC003", WARNING, on=Environment, source="")
def slurm_on_eks(environment: Environment) -> Problems:
    """Slurm settings on an EKS cluster."""
    if on_slurm(environment):
        return
    specified = [("cluster", "slurm")] if "slurm" in environment.cluster.model_fields_set else []
    specified += [
        ("instance_groups", name, "slurm") for name, group in environment.instance_groups.items() if group.slurm
    ]
    specified += [(field,) for field in ("users", "user_groups") if getattr(environment, field)]
    for path in specified:
        yield Problem(path, f"{path[-1]} has no effect: orchestrator is eks", "remove it, or use orchestrator slurm")
