"""Rules on jobs against what their team has: quotas, ceilings, claims, and the operators that run them."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import WaitForPods
from ....config.settings.jobs.jobs import AnyJob
from ...jobs.plan import JobPlan
from ...quota.amounts import CPU, EFA, MEMORY, in_words
from ...quota.policy import QuotaPolicy, Share
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..quota.quotas import policy
from .jobs import plans, size_field

_ELASTIC_GATE: Final = "ElasticJobsViaWorkloadSlices"
# What runs a kind, and the part of `platform` that brings it.
_OPERATORS: Final = {
    "hyperpod_pytorch": ("training_operator", "HyperPod's training operator"),
    "recipe": ("training_operator", "HyperPod's training operator"),
    "pytorch": ("pytorch_jobs", "Kubeflow's training operator"),
    "ray": ("kuberay", "KubeRay"),
    "ray_cluster": ("kuberay", "KubeRay"),
    "jobset": ("kubeflow_trainer", "the controller of JobSet, which Kubeflow Trainer installs,"),
    "leader_worker_set": ("leader_worker_set", "LeaderWorkerSet's controller"),
    "nccl_test": ("mpi_jobs", "the MPI operator"),
    "mpi": ("mpi_jobs", "the MPI operator"),
    "train": ("kubeflow_trainer", "Kubeflow Trainer"),
    "inference": ("inference", "HyperPod's inference operator"),
    "jumpstart": ("inference", "HyperPod's inference operator"),
    "space": ("spaces", "SageMaker Spaces"),
}

# The setting of the most pods, of kinds that have none called elastic.
_GROWS: Final = {
    "ray": ("max_nodes",),
    "ray_cluster": ("max_nodes",),
    "inference": ("autoscaling", "max_replicas"),
    "jumpstart": ("autoscaling", "max_replicas"),
}


class _Asked(NamedTuple):
    """A job with the flavor that it takes."""

    name: str
    job: Any
    plan: JobPlan
    policy: QuotaPolicy
    flavor: str
    shares: dict[str, Share]
    """What its team has of the flavor, by resource."""


def _asked(environment: Environment, types: Catalog) -> Iterator[_Asked]:
    """The jobs of teams under quotas, each with the flavor that it takes and its team's part of that."""
    quota_policy = policy(environment, types)
    for name, job, plan in plans(environment, types):
        if job.team is None or job.team not in quota_policy.teams:
            continue
        # A group that no quota names is its own flavor, of which the team has nothing.
        flavor = next((each.name for each in quota_policy.flavors.values() if job.group in each.groups), job.group)
        shares = quota_policy.teams[job.team].shares.get(flavor, {})
        yield _Asked(name, job, plan, quota_policy, flavor, shares)


def _most(quota_policy: QuotaPolicy, team: str | None, flavor: str, resource: str) -> int:
    return quota_policy.most(team, flavor, resource) if team and flavor in quota_policy.flavors else 0


@rule("JOB015", ERROR, on=Environment, source="kueue-api hyperpod-governance")
def can_ever_run(environment: Environment, types: Catalog) -> Problems:
    """Job that its team's quota never admits."""
    for name, job, plan, result, flavor, shares in _asked(environment, types):
        for resource, each in plan.pod.resources.items():
            asked, most = each * plan.gang + plan.head.get(resource, 0), _most(result, job.team, flavor, resource)
            if asked > most:
                nominal = shares[resource].nominal if resource in shares else 0
                fits = max(most - plan.head.get(resource, 0), 0) // each
                pods = "pod" if fits == 1 else "pods"
                smaller = f"run at most {fits} {pods} of this size" if fits else "ask for less"
                asking = "pod asks" if plan.gang == 1 else "pods ask"
                yield Problem(
                    ("jobs", name, *size_field(job)),
                    f"its {plan.gang} {asking} for {in_words(resource, asked)} at once; team {job.team} has "
                    f"{in_words(resource, nominal)} of {flavor} and can hold {in_words(resource, most)} with all that "
                    "it may borrow, so it would wait forever",
                    f"{smaller}, or raise the quota or borrow limit of {job.team}",
                )
                # One resource is enough to say that it never runs.
                break


@rule("JOB016", ERROR, on=Environment, source="hyperpod-elastic")
def minimum_is_guaranteed(environment: Environment, types: Catalog) -> Problems:
    """Elastic job's minimum exceeds its team's guarantee."""
    for name, job, plan, result, flavor, shares in _asked(environment, types):
        if not getattr(job, "elastic", None):
            continue
        least, resources = job.sizes[0], plan.pod.resources
        if any(each * least > _most(result, job.team, flavor, resource) for resource, each in resources.items()):
            # JOB015 says that it never runs at all.
            continue
        for resource, each in resources.items():
            nominal = shares[resource].nominal if resource in shares else 0
            if nominal < each * least:
                yield Problem(
                    ("jobs", name, "elastic", "min_replicas"),
                    f"its {least} replicas at least ask for {in_words(resource, each * least)}; team {job.team} is "
                    f"guaranteed {in_words(resource, nominal)} of {flavor}, and lenders of the rest may reclaim it "
                    "and stop the whole job",
                    f"set min_replicas to {nominal // each}"
                    if nominal >= each
                    else "give the team a quota, or accept that the job stops then",
                )
                break


@rule("JOB017", WARNING, on=Environment, source="hyperpod-elastic")
def can_grow(environment: Environment, types: Catalog) -> Problems:
    """Elastic job can never reach its maximum size."""
    for name, job, plan, result, flavor, _ in _asked(environment, types):
        if len(getattr(job, "sizes", (1,))) == 1:
            continue
        ceilings = _ceilings(environment, job)
        fits = min(
            (
                # A ceiling of the namespace may end before the quota does.
                min(most := _most(result, job.team, flavor, resource), ceilings.get(resource, most)) // each
                for resource, each in plan.pod.resources.items()
                if each
            ),
            default=job.sizes[-1],
        )
        if job.sizes[0] <= fits < job.sizes[-1]:
            # Elastic jobs have certain sizes only.
            reached = max(size for size in job.sizes if size <= fits)
            field = _GROWS.get(job.kind, ("elastic", "max_replicas"))
            yield Problem(
                ("jobs", name, *field),
                f"{field[-1]} is {job.sizes[-1]}; quota, borrow limit and ceilings of team {job.team} end at "
                f"{fits} pods, so it grows to {reached}",
                f"raise them, or set {field[-1]} to {reached}",
            )


def _ceilings(environment: Environment, job: AnyJob) -> dict[str, int]:
    """What the namespace of a job's team may hold at most, by resource."""
    access = environment.governance.teams[job.team].access if job.team else None
    caps = access.caps if access else None
    if caps is None:
        return {}
    results: dict[str, float | None] = {
        CPU: caps.vcpu and caps.vcpu * 1000,
        MEMORY: caps.memory_gib and caps.memory_gib * 1024,
        EFA: caps.efa,
        "nvidia.com/gpu": caps.accelerators,
        "aws.amazon.com/neurondevice": caps.accelerators,
    }
    # Quotas of Kubernetes name requests, such as requests.nvidia.com/gpu.
    others = {key.removeprefix("requests."): most for key, most in caps.others.items() if "/" in key}
    return {resource: int(most) for resource, most in {**results, **others}.items() if most is not None}


@rule("JOB018", ERROR, on=Environment, source="kubernetes")
def below_ceilings(environment: Environment, types: Catalog) -> Problems:
    """Job above its namespace's resource caps."""
    for name, job, plan in plans(environment, types):
        for resource, most in _ceilings(environment, job).items():
            each = plan.pod.resources.get(resource, 0)
            if each * plan.gang > most:
                yield Problem(
                    ("jobs", name, *size_field(job)),
                    f"its {plan.gang} pods ask for {in_words(resource, each * plan.gang)}; the ceiling of team "
                    f"{job.team} is {in_words(resource, most)}, beyond which Kubernetes makes no pod",
                    f"raise governance.teams.{job.team}.access.caps, or run {most // each} pods",
                )
                break


@rule("JOB019", ERROR, on=Environment, source="training-operator kuberay-chart kubeflow-trainer-chart lws-chart")
def operator_is_there(environment: Environment) -> Problems:
    """Job kind that no operator on the cluster runs."""
    for name, job in environment.jobs.items():
        part, what = _OPERATORS.get(job.kind, ("", ""))
        if part and getattr(environment.platform, part) in (None, False):
            specified = "true" if isinstance(getattr(environment.platform, part), bool) else "{}"
            yield Problem(
                ("jobs", name, "kind"),
                f"kind is {job.kind}, which {what} runs, and that is off",
                f"add `{part}: {specified}` under platform, or take another kind",
            )


@rule("JOB020", ERROR, on=Environment, source="hyperpod-labels")
def resumes_in_managed_namespace(environment: Environment, types: Catalog) -> Problems:
    """Auto-resume in a namespace that HyperPod does not watch."""
    for name, job, plan in plans(environment, types):
        namespace = plan.placement.namespace
        watched = namespace == "kubeflow" or namespace.startswith("hyperpod-")
        if job.kind == "pytorch" and job.auto_resume and not watched:
            yield Problem(
                ("jobs", name, "auto_resume"),
                f"the job runs in {namespace}; HyperPod resumes jobs in kubeflow and in namespaces that begin with "
                "hyperpod-",
                "use engine hyperpod, or kind hyperpod_pytorch, whose operator restarts in every namespace",
            )


@rule("JOB021", ERROR, on=Environment, source="")
def finds_what_it_mounts(environment: Environment) -> Problems:
    """Unknown claim or service account."""
    for name, job in environment.jobs.items():
        team = environment.governance.teams.get(job.team) if job.team else None
        namespace = job.namespace or "default"
        of_teams = team.access.storage if team and team.access else {}
        free = {claim for _, claim, settings in environment.storage.claims if settings.namespace == namespace}
        known = of_teams.keys() if team else free
        where = f"governance.teams.{job.team}.access.storage" if team else f"`claims` of Lustre in {namespace}"
        for path, mount in job.mounts.items() if job.kind != "sbatch" else ():
            if mount.claim not in known:
                yield Problem(
                    ("jobs", name, "mounts", path),
                    f"claim {mount.claim} is not under {where}; known are {listed(sorted(known), 'and')}",
                    "correct the name, or add the claim; if it is made by other means, accept this with that as the "
                    "reason",
                )
        if team is None or team.access is None:
            continue
        if job.service_account and job.service_account not in team.access.service_accounts:
            yield Problem(
                ("jobs", name, "service_account"),
                f"{job.service_account} is not under governance.teams.{job.team}.access.service_accounts; known are "
                f"{listed(team.access.service_accounts, 'and')}",
                "correct the name, or add the service account",
            )


@rule("JOB022", ERROR, on=Environment, source="")
def keeps_its_checkpoints(environment: Environment) -> Problems:
    """Checkpoints in ephemeral storage."""
    for name, job in environment.jobs.items():
        checkpoints = getattr(job, "checkpoints", None)
        path = checkpoints.path if checkpoints else None
        if path and not any(path == mount or path.startswith(f"{mount}/") for mount in job.mounts):
            yield Problem(
                ("jobs", name, "checkpoints", "path"),
                f"{path} is in none of the job's mounts, {listed(job.mounts, 'and')}, so it is deleted with the pod",
                "mount a claim there, or at a folder above it",
            )


@rule("JOB023", ERROR, on=Environment, source="training-operator")
def spares_need_kueue(environment: Environment, types: Catalog) -> Problems:
    """Spare pods, or two priorities, without Kueue."""
    for name, job, plan in plans(environment, types):
        if job.kind != "hyperpod_pytorch" or (plan.engine in ("hyperpod", "kueue") and job.team):
            continue
        fields = {
            ("spares",): job.spares > 0,
            ("elastic", "extra_priority"): job.elastic and job.elastic.extra_priority,
        }
        for field, specified in fields.items():
            if specified:
                yield Problem(
                    ("jobs", name, *field),
                    f"{field[-1]} is {specified}; the training operator asks Kueue for it, and the job is "
                    f"in no queue of "
                    "Kueue",
                    "give the job a team under engine hyperpod or kueue, or remove it",
                )


@rule("JOB025", ERROR, on=Environment, source="kai-docs")
def shares_gpus(environment: Environment, types: Catalog) -> Problems:
    """GPU fractions without GPU sharing."""
    for name, job, plan in plans(environment, types):
        kai = environment.governance.kai
        if job.kind == "job" and job.gpu_share and not (plan.engine == "kai" and kai.gpu_sharing):
            yield Problem(
                ("jobs", name, "gpu_share"),
                f"engine is {plan.engine}, and gpu_sharing of KAI is off; nothing else gives pods parts of a GPU",
                "use engine kai with `kai: {gpu_sharing: true}`, or a partition of a group with nvidia.com/mig.config",
            )


@rule("JOB026", ERROR, on=Environment, source="eks-ultraserver")
def claims_a_channel(environment: Environment, types: Catalog) -> Problems:
    """Job across an NVLink domain without a ComputeDomain."""
    for name, job, plan in plans(environment, types):
        if plan.pod.nvlink:
            yield Problem(
                ("jobs", name, "group"),
                f"its pods claim a channel of the NVLink domain of {job.group}, which NVIDIA's DRA driver hands out "
                "and podwright does not install: they would wait forever",
                "install the chart nvidia-dra-driver-gpu with computeDomains on, and accept this with that as the "
                "reason",
            )


@rule("JOB024", WARNING, on=Environment, source="kai-scheduling")
def starts_together(environment: Environment, types: Catalog) -> Problems:
    """Job kind without gang scheduling."""
    for name, job, plan in plans(environment, types):
        if job.kind == "hyperpod_pytorch" and plan.engine == "kai" and plan.gang > 1:
            yield Problem(
                ("jobs", name, "kind"),
                f"KAI does not know HyperPodPyTorchJob, so it places its {plan.gang} pods one by one: "
                "two such jobs can each hold a part of what both need",
                "use kind pytorch, which it places together, or engine hyperpod or kueue",
            )


@rule("JOB039", WARNING, on=Environment, source="kueue-elastic")
def groups_fit_too(environment: Environment, types: Catalog) -> Problems:
    """Pod groups that never run together."""
    for name, job, plan, result, flavor, _ in _asked(environment, types):
        if job.kind != "leader_worker_set":
            continue
        amounts = {resource: each * plan.gang for resource, each in plan.pod.resources.items() if each}
        fits = min(_most(result, job.team, flavor, resource) // amount for resource, amount in amounts.items())
        if 0 < fits < job.replicas:
            yield Problem(
                ("jobs", name, "replicas"),
                f"replicas is {job.replicas}, groups of {plan.gang} pods; quota and borrow limit of {job.team} end at "
                f"{fits}, and the others wait forever",
                f"raise them, or set replicas to {fits}",
            )


@rule("JOB040", ERROR, on=Environment, source="kueue-elastic", final=True)
def may_grow_in_a_queue(environment: Environment, types: Catalog) -> Problems:
    """Ray autoscaling where Kueue may not admit new pods."""
    off = environment.governance.kueue.feature_gates.get(_ELASTIC_GATE) is False
    for name, job, plan in plans(environment, types):
        if off and plan.engine == "kueue" and job.team and job.kind in ("ray", "ray_cluster") and len(job.sizes) > 1:
            yield Problem(
                ("jobs", name, "max_nodes"),
                f"max_nodes is {job.max_nodes}, and {_ELASTIC_GATE} is off: Kueue refuses a cluster that grows by "
                "itself",
                "remove max_nodes, or the feature gate from governance.kueue.feature_gates",
            )


@rule("JOB052", INFO, on=Environment, source="kueue-config")
def image_before_the_job(environment: Environment) -> Problems:
    """Gang scheduling timeout that includes the image pull."""
    governance = environment.governance
    if governance.engine != "kueue":
        return
    seconds = (governance.wait_for_pods or WaitForPods()).timeout_seconds
    for name, job in environment.jobs.items():
        group = environment.instance_groups.get(job.group)
        pulled = group.pull_images if group else ()
        # Whoever lists images of a group means to leave none out.
        if pulled and job.image not in pulled:
            yield Problem(
                ("jobs", name, "image"),
                f"{job.image} is not under pull_images of {job.group}: on a new node its pull is a part of the "
                f"{seconds} s in which all pods have to be ready",
                f"add it to instance_groups.{job.group}.pull_images",
            )


@rule("JOB054", WARNING, on=Environment, source="eks-image-cache eks-fast-pull kueue-config")
def image_slower_than_the_gang(environment: Environment) -> Problems:
    """Image pull longer than the gang scheduling timeout."""
    governance, rate = environment.governance, limits().kueue.image_pull_mb_per_second
    if governance.engine != "kueue":
        return
    ready = (governance.wait_for_pods or WaitForPods()).timeout_seconds
    for name, job in environment.jobs.items():
        group = environment.instance_groups.get(job.group)
        estimated = (job.image_gb or 0) * 1000 / rate
        if estimated > ready and not (group and job.image in group.pull_images):
            yield Problem(
                ("jobs", name, "image_gb"),
                f"{job.image_gb:g} GB take some {estimated:.0f} s on a new node, at the {rate} MB/s published of one; "
                f"Kueue takes the place of a job whose pods are not all ready in {ready} s",
                f"add the image to instance_groups.{job.group}.pull_images, or raise "
                f"governance.wait_for_pods.timeout_seconds; `podwright why` measures a pull that was",
            )


@rule("JOB053", WARNING, on=Environment, source="")
def pulls_without_kubernetes(environment: Environment) -> Problems:
    """pull_images without Kubernetes."""
    for name, group in environment.instance_groups.items():
        if group.pull_images and environment.cluster.orchestrator != "eks":
            yield Problem(
                ("instance_groups", name, "pull_images"),
                "pull_images has no effect: Kubernetes pulls them, and the orchestrator is "
                f"{environment.cluster.orchestrator}",
                "remove it; with Slurm import images to a shared file system with enroot",
            )
