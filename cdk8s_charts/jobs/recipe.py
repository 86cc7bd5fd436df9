"""The launcher of sagemaker-hyperpod-recipes 2.0.0, started for a group and a team.

Its k8s cluster type takes the settings of `recipes_collection/cluster/k8s.yaml` of that release. An elastic job may
have all the sizes that `scale_config` names, so the recipe's own is cut to those of the job.
"""

import shlex

from ...config.settings.jobs.pytorch import RecipeJob
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.queue import PRIORITY_LABEL, QUEUE_LABEL

LAUNCHER = "SAGEMAKER_TRAINING_LAUNCHER_DIR"
"""Variable that says where the collection is checked out."""
# Hydra reads keys of a mapping as numbers where they are none in quotes, as the recipe has them.
_SCALES = """\
scales=$(python3 - "${launcher}/recipes_collection/recipes/{path}.yaml" {sizes} <<'PYTHON'
import json
import sys

import yaml

recipe, *sizes = sys.argv[1:]
with open(recipe) as file:
    known = yaml.safe_load(file).get("scale_config") or {{}}
absent = [size for size in sizes if int(size) not in known]
if absent:
    there = ", ".join(map(str, known)) or "none"
    sys.exit(f"{{recipe}} has no settings for {{', '.join(absent)}} nodes; it has them for: {{there}}")


def text(value):
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{{" + ",".join(f"{{key}}:{{text(item)}}" for key, item in value.items()) + "}}"


print(text({{int(size): known[int(size)] for size in sizes}}))
PYTHON
)
"""


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
        }
        specified |= {f"++recipes.elastic_policy.{key}": value for key, value in policy.items()}
        # A training folder for each start otherwise, without the checkpoint of the one before.
        specified["++recipes.training_config.training_args.override_training_dir"] = "true"
    return [f"{key}={value}" for key, value in (specified | job.overrides).items()]


def script(plan: JobPlan) -> str:
    """A shell script that starts the launcher from a checkout of the recipes. Its arguments are further overrides."""
    job: RecipeJob = plan.job
    lines = [f"  {shlex.quote(argument)}" for argument in arguments(plan)]
    scales = ""
    if job.elastic:
        sizes = " ".join(map(str, job.sizes))
        scales = _SCALES.format(launcher=LAUNCHER, path=job.path, sizes=sizes)
        lines += ["  '~recipes.scale_config'", '  "+recipes.scale_config=$scales"']
    return (
        "#!/usr/bin/env bash\n"
        f"# {LAUNCHER}: a checkout of sagemaker-hyperpod-recipes with its requirements installed.\n"
        "set -euo pipefail\n"
        f': "${{{LAUNCHER}:?}}"\n'
        f"{scales}"
        f'HYDRA_FULL_ERROR=1 python3 "${LAUNCHER}/main.py" \\\n'
        # The launcher looks for the recipe in the first of them.
        + " \\\n".join([*lines, f'  base_results_dir="${LAUNCHER}/results"', '  "$@"'])
        + "\n"
    )
