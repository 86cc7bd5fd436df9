"""Pods that start together under YuniKorn, which learns of a gang from its pods."""

import json
from typing import Any, Final

from ...config.settings.jobs.base import DistributedJob
from ...config.settings.jobs.kinds import RayCluster, RayJob
from ...planning.jobs.plan import JobPlan

_GROUP: Final = "pods"


def gang_annotations(plan: JobPlan, spec: dict[str, Any], asked: dict[str, str]) -> dict[str, str]:
    """Annotations of the pods of a job that YuniKorn starts together; none elsewhere, nor for a single pod.

    YuniKorn keeps a place for each of the fewest pods that the job can start with, and starts them when it has all.
    Where it cannot get all of them in 15 minutes from the first, it starts those that it has. KubeRay says all this for
    the pods of Ray itself.
    Source: YuniKorn documentation, gang scheduling, 2026-11.

    Args:
        plan: The job.
        spec: Spec of its pods, as which the places have to be.
        asked: What each of them asks for.
    """
    own = not isinstance(plan.job, DistributedJob) or isinstance(plan.job, RayJob | RayCluster)
    if plan.engine != "yunikorn" or plan.gang < 2 or own:
        return {}
    group = {"name": _GROUP, "minMember": plan.gang, "minResource": asked}
    group |= {name: spec[name] for name in ("nodeSelector", "tolerations", "affinity") if name in spec}
    return {"yunikorn.apache.org/task-group-name": _GROUP, "yunikorn.apache.org/task-groups": json.dumps([group])}
