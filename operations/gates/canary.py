"""The gate `canary`: a job is admitted, placed, started and completed; an elastic one grows, and shrinks again."""

from contextlib import ExitStack
from typing import Any, Final

from ...config.catalog.images import Image
from ...config.catalog.mig import partitions
from ...config.errors import CommandError
from ...config.loading.artifacts import read_artifacts
from ...config.settings.jobs.kinds import BatchJob
from ...planning.helm.mirrors import mirror_of
from ...planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from ...planning.quota.policy import environment_policy
from ..kubernetes.kubectl import Refused
from .gate import Context, Observation, Result
from .jobs import Run, group_for, state_of, submitted, team_for
from .slurm import canary

# For an hour, should whoever runs the gate want to look at it.
_KEEP_SECONDS: Final = 3600
# Counts the device files that the container runtime has given it: NVIDIA's, or Neuron's.
_COUNT: Final = (
    "import glob,socket,sys\n"
    "found=[p for k in ('nvidia','neuron') for p in glob.glob('/dev/'+k+'[0-9]*')]\n"
    "print(socket.gethostname(),'sees',len(found),'devices, and',sys.argv[1],'are wanted')\n"
    "sys.exit(len(found)<int(sys.argv[1]))\n"
)


def run(context: Context) -> Result:
    """Let the job complete, and then the elastic one change its size."""
    if context.environment.cluster.orchestrator == "slurm":
        return canary(context)
    if skipped := context.without_scheduler:
        return skipped
    settings, environment = context.settings.canary, context.environment
    job: Any = environment.jobs[settings.job] if settings.job else own_job(context)
    # The evidence says what was asked for, so that a later reader needs no file of that day.
    context.asked |= {
        "runs": settings.job or "podwright's own",
        "team": job.team,
        "group": job.group,
        "nodes": job.start,
    }
    with submitted(context, "canary", job) as made:
        result = context.wait(made.ended)
    if not result.passed or settings.elastic is None:
        if result.passed and any(getattr(job, "elastic", None) for job in environment.jobs.values()):
            result.reason += "; no elastic job was tried (gates.canary.elastic names none)"
        return result
    elastic = _elastic(context)
    elastic.checks, elastic.reason = [*result.checks, *elastic.checks], f"{result.reason}; {elastic.reason}"
    elastic.answers = {"canary": result.answers, "elastic": elastic.answers}
    return elastic


def own_job(context: Context) -> BatchJob:
    """Podwright's own canary: pods with one accelerator each, which they count. The scheduler may put them together."""
    environment, settings = context.environment, context.settings.canary
    name = settings.group or group_for(environment, context.types)
    group = environment.instance_groups[name]
    team = settings.team or team_for(environment, context.types, name)
    rows = [context.types.get(instance_type) for instance_type in group.types]
    layout = partitions(group.labels, rows[0].mig_profiles) or {}
    profile = next(iter(layout), None)
    # Partitions are asked for by their profile below; a type without accelerators has nothing to ask for.
    count = 0 if profile or not all(row.accelerator_count for row in rows) else 1
    mirror = mirror_of(environment, read_artifacts(context.project))
    original = Image.parse(BENCHMARK_LABELS_IMAGE)
    # The image is one that the environment has anyway and mirrors with the others.
    return BatchJob.model_validate(
        {
            "kind": "job",
            "team": team,
            "group": name,
            "priority": settings.priority if team else None,
            "image": str(mirror.get(original.name, original)),
            "command": ["python3", "-c", _COUNT, str(1 if profile else count)],
            "nodes": min(settings.nodes, group.count),
            # One interface, so that its device plugin is proved too. Nothing is sent, so no huge pages.
            "efa": int(all(row.efa_interfaces for row in rows) and not profile),
            "huge_pages_mib": 0,
            "topology": "none",
            # A retry would hide what the gate looks for.
            "retries": 0,
            "keep_seconds": _KEEP_SECONDS,
            # Kubernetes ends it too, should nobody be left who does.
            "active_deadline_seconds": int(context.seconds) + 60,
            **({"partition": f"mig-{profile}"} if profile else {"accelerators": count}),
        }
    )


def _elastic(context: Context) -> Result:
    """Let a job grow over what is idle, and shrink because other work takes that, or because it is told to."""
    environment, name = context.environment, context.settings.canary.elastic or ""
    job: Any = environment.jobs[name]
    # It starts with its fewest replicas, so that growing is seen.
    job = job.model_copy(update={"nodes": job.sizes[0]})
    least, most = job.sizes[0], job.sizes[-1]
    context.asked |= {"elastic": name, "replicas": [least, most]}
    with ExitStack() as stack:
        made = stack.enter_context(submitted(context, "elastic", job))
        # Submitted with its fewest, it may have grown before the first read.
        steps = [context.wait(lambda: _sized(made, least, "starts with", or_more=True))]
        if steps[-1].passed:
            _told(made, most)
            steps.append(context.wait(lambda: _sized(made, most, "grows to")))
        if steps[-1].passed:
            if job.kind == "pytorch":
                _told(made, least)
            else:
                stack.enter_context(submitted(context, "elastic-work", _work(context, job)))
            steps.append(context.wait(lambda: _sized(made, least, "shrinks to")))
    last = steps[-1]
    return Result(
        last.passed,
        "; ".join(step.reason for step in steps),
        # The last step decides: it is the first that failed, or all passed.
        [check for step in steps for check in step.checks],
        last.next_step,
        last.answers,
    )


def _told(made: Run, replicas: int) -> None:
    """Kubeflow's jobs are scaled by their number of workers; HyperPod's operator decides by itself."""
    if made.job["kind"] != "PyTorchJob":
        return
    patch = f'{{"spec": {{"pytorchReplicaSpecs": {{"Worker": {{"replicas": {replicas}}}}}}}}}'
    try:
        made.kubectl.run(
            "patch",
            "PyTorchJob.v1.kubeflow.org",
            made.name,
            # A merge patch, so that the other replica types stay.
            f"--namespace={made.namespace}",
            "--type=merge",
            "-p",
            patch,
        )
    except Refused as refused:
        raise CommandError(
            f"{made.name} cannot be scaled to {replicas}: {refused}", "you need to be allowed to patch it"
        ) from None


def _sized(made: Run, replicas: int, verb: str, *, or_more: bool = False) -> Observation:
    """Whether as many of its pods run, and no more unless more will do."""
    observation = Observation()
    state, message = state_of(made.found())
    pods = made.pods()
    running = sum(item.get("status", {}).get("phase") == "Running" for item in pods)
    observation.check(
        f"{made.name} {verb}",
        f"{replicas} pods",
        f"{running} pods",
        running == replicas or (or_more and running > replicas),
    )
    observation.answers = {
        "state": state,
        "running": running,
        "phases": [item.get("status", {}).get("phase") for item in pods],
    }
    if state in ("succeeded", "failed", "absent"):
        observation.final = f"{made.name} has {state} with {running} pods before it {verb} {replicas}" + (
            message and f": {message}"
        )
        observation.next_step = "the elastic canary has to train for longer than it takes to grow and to shrink"
    elif running < replicas:
        observation.next_step = "something else holds what it would grow over: run this when the group is idle"
    elif running > replicas:
        observation.next_step = (
            "work of a higher priority does not take capacity back: see `podwright quotas` and priorities"
        )
    return observation


def _work(context: Context, job: Any) -> BatchJob:
    """Work that takes back what the elastic job grew over: of the same team, before its extra replicas in priority."""
    environment = context.environment
    weights = environment.governance.priorities
    extra = job.elastic.extra_priority or job.priority
    # Extra replicas of an elastic job may have a lower priority than the job itself, and those are to go.
    above = [name for name, weight in weights.items() if extra is None or weight > weights.get(extra, 0)]
    whole = environment.instance_groups[job.group].count
    reach = min(whole, _reach(context, job))
    return own_job(context).model_copy(
        update={
            "team": job.team,
            "group": job.group,
            "namespace": job.namespace,
            "accelerators": job.accelerators,
            "partition": job.partition,
            "priority": min(above, key=lambda name: weights[name]) if above and job.team else None,
            "nodes": max(reach - job.sizes[0], 1),
            # As long as the gate may wait, and a minute more: the job has to see it until it is deleted.
            "command": ("python3", "-c", f"import time; time.sleep({int(context.seconds) + 60})"),
        }
    )


def _reach(context: Context, job: Any) -> int:
    """Pods of the job that its team can hold at most."""
    if not job.team:
        return context.environment.instance_groups[job.group].count
    policy = environment_policy(context.environment, context.types)
    flavor = next(name for name, item in policy.flavors.items() if job.group in item.groups)
    one = policy.flavors[flavor].one
    resource = next((name for name in one if "/" in name and not name.startswith("vpc.") and one[name]), "cpu")
    each = job.accelerators or one[resource]
    return policy.most(job.team, flavor, resource) // each
