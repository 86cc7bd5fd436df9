"""The launcher of sagemaker-hyperpod-recipes 2.0.0, started for a group and a team.

Its k8s cluster type takes the settings of `recipes_collection/cluster/k8s.yaml` of that release.
"""

import shlex

from ...config.settings.jobs.pytorch import RecipeJob
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.queue import PRIORITY_LABEL, QUEUE_LABEL

_LAUNCHER = "SAGEMAKER_TRAINING_LAUNCHER_DIR"


def arguments(plan: JobPlan) -> list[str]:
    """Hydra's overrides: what follows from the plan, then those of the job, which win."""
    job: RecipeJob = plan.job
    specified: dict[str, str] = {
        "recipes": job.path,
        "recipes.run.name": plan.name,
        "recipes.trainer.num_nodes": str(job.start),
        "container": job.image,
        "instance_type": plan.instance_types[0].removeprefix("ml."),
        "cluster": "k8s",
        "cluster_type": "k8s",
        "cluster.use_hyperpod_pytorch_job": "true",
        "cluster.namespace": plan.placement.namespace,
    }
    optional = {
        "cluster.queue_name": plan.placement.labels.get(QUEUE_LABEL),
        "cluster.priority_class_name": plan.placement.labels.get(PRIORITY_LABEL),
        "cluster.service_account_name": job.service_account,
    }
    specified |= {key: value for key, value in optional.items() if value}
    for index, (path, mount) in enumerate(job.mounts.items()):
        specified[f"+cluster.persistent_volume_claims.{index}.claimName"] = mount.claim
        specified[f"+cluster.persistent_volume_claims.{index}.mountPath"] = path
    specified |= {f"+env_vars.{name}": value for name, value in plan.pod.env.items() if name in job.env}
    if job.elastic:
        policy = {
            "is_elastic": "true",
            "min_nodes": str(job.elastic.min_replicas),
            "max_nodes": str(job.elastic.max_replicas),
            "scaling_timeout": str(job.elastic.scaling_timeout_seconds),
            "graceful_shutdown_timeout": str(job.elastic.graceful_shutdown_timeout_seconds),
            "faulty_timeout": str(job.elastic.faulty_scale_down_timeout_seconds),
        } | ({"replica_increment_step": str(job.elastic.step)} if job.elastic.step else {})
        specified |= {f"++recipes.elastic_policy.{key}": value for key, value in policy.items()}
    return [f"{key}={value}" for key, value in (specified | job.overrides).items()]


def script(plan: JobPlan) -> str:
    """A shell script that starts the launcher from a checkout of the recipes."""
    lines = " \\\n".join(f"  {shlex.quote(argument)}" for argument in arguments(plan))
    return (
        "#!/usr/bin/env bash\n"
        f"# {_LAUNCHER}: a checkout of sagemaker-hyperpod-recipes with its requirements installed.\n"
        "set -euo pipefail\n"
        f'HYDRA_FULL_ERROR=1 python3 "${{{_LAUNCHER}:?}}/main.py" \\\n'
        f'  base_results_dir="${_LAUNCHER}/results" \\\n{lines}\n'
    )
