"""Rules on what runs beside the work: prerequisites of operators, partitions of GPUs, queues of training jobs."""

from collections.abc import Iterator

from ....config.catalog.images import gpu_operator_registry
from ....config.catalog.instance_types import Catalog
from ....config.catalog.mig import MIG_LABEL, chart_layouts, common_profiles, partitions
from ....config.catalog.names import CERTIFICATE_BUCKETS
from ....config.catalog.software_matrix import number
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ....config.settings.platform import InferenceOperator, Platform
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import known
from .slurm import on_slurm

_TRAINER_KUBERNETES = (1, 31)


@rule("PLF001", ERROR, on=Environment, source="", final=True)
def needs_eks(environment: Environment) -> Problems:
    """EKS platform parts on a Slurm cluster."""
    orchestrator = environment.cluster.orchestrator
    if orchestrator != "eks" and environment.platform != Platform():
        specified = sorted(environment.platform.model_fields_set)
        yield Problem(
            "platform",
            f"{listed(specified, 'and')} run on Kubernetes, and orchestrator is {orchestrator}",
            "remove platform",
        )


@rule("PLF002", ERROR, on=Environment, source="training-operator hyperpod-inference")
def needs_certificates(environment: Environment) -> Problems:
    """Operator without cert-manager."""
    platform = environment.platform
    # Whoever brings a cluster may bring cert-manager along.
    if platform.cert_manager is not None or environment.cluster.eks.existing:
        return
    for part in ("training_operator", "inference"):
        if getattr(platform, part) is not None:
            yield Problem(
                ("platform", part),
                f"{part} needs cert-manager for its webhooks, and its pods do not start without",
                "add `cert_manager: {}` under platform",
            )


@rule("PLF003", ERROR, on=Environment, source="hyperpod-mig")
def needs_the_gpu_operator(environment: Environment) -> Problems:
    """Partitioned GPUs without a MIG manager."""
    if on_slurm(environment) or environment.platform.gpu_operator is not None:
        return
    for name, group in _labelled(environment):
        if group.labels[MIG_LABEL] != "all-disabled":
            yield Problem(
                ("instance_groups", name, "labels", MIG_LABEL),
                f"{MIG_LABEL} is {group.labels[MIG_LABEL]}, and nothing on the cluster acts on it: the GPUs stay whole",
                "add `gpu_operator: {}` under platform, or remove the label",
            )


@rule("PLF004", ERROR, on=Environment, source="hyperpod-gpu-operator-layouts hyperpod-mig")
def layout_is_known(environment: Environment, types: Catalog) -> Problems:
    """Unknown MIG layout."""
    for name, group in _labelled(environment):
        layout, rows = group.labels[MIG_LABEL], known(group, types)
        profiles = common_profiles(rows)
        fitting = [each for each in chart_layouts() if partitions({MIG_LABEL: each}, profiles)]
        if layout not in chart_layouts() or (layout != "all-disabled" and layout not in fitting):
            yield Problem(
                ("instance_groups", name, "labels", MIG_LABEL),
                f"{layout} is not a layout of HyperPod's chart for GPUs of {listed(group.types)}; it has "
                f"{listed(fitting, 'and') if fitting else 'none for them'}, and the MIG manager would mark the node as "
                "failed",
                "use one of those, or accept this when you replace the chart's default-mig-config",
            )


@rule("PLF005", ERROR, on=Environment, source="hyperpod-gpu-operator")
def operator_has_images(environment: Environment) -> Problems:
    """GPU operator in a region without its images."""
    operator = environment.platform.gpu_operator
    if operator and operator.registry is None and gpu_operator_registry(environment.region) is None:
        yield Problem(
            ("platform", "gpu_operator"),
            f"AWS names no registry of its images in {environment.region}, and the chart's names of images are none "
            "outside of AWS's registries",
            "copy the images of a region that has them, and name your registry under gpu_operator.registry",
        )


@rule("PLF006", WARNING, on=Environment, source="hyperpod-mig")
def operator_has_gpus(environment: Environment) -> Problems:
    """GPU operator without GPUs to partition."""
    if environment.platform.gpu_operator is None:
        return
    if not any(group.labels[MIG_LABEL] != "all-disabled" for _, group in _labelled(environment)):
        yield Problem(
            ("platform", "gpu_operator"),
            f"no group has the label {MIG_LABEL}, so the operator does what the chart's device plugin did",
            "label a group, or remove gpu_operator",
        )


@rule("PLF007", ERROR, on=Environment, source="kubeflow-trainer-chart")
def trainer_needs_kubernetes(environment: Environment) -> Problems:
    """Kubernetes version too old for Kubeflow Trainer."""
    version = environment.cluster.eks.version
    if environment.platform.kubeflow_trainer and number(version) < _TRAINER_KUBERNETES:
        yield Problem(
            ("platform", "kubeflow_trainer"),
            f"Kubeflow Trainer runs on Kubernetes 1.31 and newer, and cluster.eks.version is {version}",
            "raise cluster.eks.version, or remove kubeflow_trainer",
        )


@rule("PLF008", WARNING, on=InferenceOperator, source="hyperpod-inference")
def bucket_of_the_policy(operator: InferenceOperator) -> Problems:
    """Bucket outside the inference operator's AWS policy."""
    if operator.tls_bucket and not operator.tls_bucket.startswith(CERTIFICATE_BUCKETS):
        yield Problem(
            "tls_bucket",
            f"tls_bucket is {operator.tls_bucket}; the managed policy AmazonSageMakerHyperPodInferenceAccess covers "
            "buckets whose names begin with hyperpod-tls",
            "rename it, or accept this when the execution role has a policy of your own",
        )


@rule("PLF009", ERROR, on=Environment, source="")
def parts_of_a_chart_of_yours(environment: Environment) -> Problems:
    """Chart setting for a HyperPod chart that you manage."""
    existing, platform = environment.cluster.eks.existing, environment.platform
    if existing is None or not existing.dependencies_installed:
        return
    specified = {"gpu_operator": platform.gpu_operator is not None}
    specified |= {part: not getattr(platform, part) for part in ("pytorch_jobs", "mpi_jobs")}
    for part, desired in specified.items():
        if desired:
            yield Problem(
                ("platform", part),
                f"{part} is a value of HyperPod's chart, and dependencies_installed says that the chart is yours: "
                "podwright changes nothing of it",
                "set it in your release of the chart, and accept this or remove it here",
            )


@rule("PLF010", ERROR, on=Environment, source="", final=True)
def cluster_or_none(environment: Environment) -> Problems:
    """Instance groups without a cluster, or a cluster without groups."""
    orchestrator, groups = environment.cluster.orchestrator, environment.groups
    if (orchestrator == "none") == bool(groups):
        yield Problem(
            ("cluster", "orchestrator"),
            f"orchestrator is {orchestrator}, and instance groups are {listed(groups, 'and')}",
            "remove the groups, or use eks or slurm" if groups else "use none, or add instance groups",
        )


@rule("PLF011", ERROR, on=Environment, source="hyperpod-inference", final=True)
def provider_of_an_existing_cluster(environment: Environment) -> Problems:
    """Inference operator without roles or an OIDC provider."""
    operator = environment.platform.inference
    if operator and operator.lacks_roles and not operator.oidc_provider and environment.cluster.eks.existing:
        yield Problem(
            ("platform", "inference"),
            "roles of the inference operator trust the OIDC provider of the EKS cluster, and which one an existing "
            "cluster has is not known here",
            "name it as oidc_provider, which `aws iam list-open-id-connect-providers` shows, or name all four roles",
        )


@rule("PLF012", ERROR, on=Environment, source="")
def runs_nobody_records(environment: Environment) -> Problems:
    """MLflow tracking without an app."""
    for name, team in environment.governance.teams.items():
        if team.access and team.access.mlflow and environment.platform.mlflow is None:
            yield Problem(
                ("governance", "teams", name, "access", "mlflow"),
                f"mlflow is true for {name}, and the environment has no MLflow app",
                "add `platform: {mlflow: {}}`, or set MLFLOW_TRACKING_URI under `env` of its jobs for one elsewhere",
            )


@rule("PLF013", WARNING, on=Environment, source="service-authorization")
def runs_without_permission(environment: Environment) -> Problems:
    """Job without permission to record its runs."""
    for name, job in environment.jobs.items():
        team = environment.governance.teams.get(job.team) if job.team else None
        if job.kind == "sbatch" or not (team and team.access and team.access.mlflow):
            continue
        account = team.access.service_accounts.get(job.service_account or "")
        if account is None or account.role:
            why = f"{job.service_account} has a role of yours" if account else "its pods have no role"
            yield Problem(
                ("jobs", name, "service_account"),
                f"{name} finds the MLflow app, and {why}: calls need sagemaker:CallMlflowAppApi",
                f"name a service account of {job.team} whose role podwright makes, or give your role that permission "
                "and accept this",
            )


@rule("PLF020", ERROR, on=Environment, source="batch-quota-share", final=True)
def shares_of_teams(environment: Environment) -> Problems:
    """Queue share for an unknown team."""
    for name, queue in environment.training_job_queues.items():
        for team in queue.quota:
            if team not in environment.governance.teams:
                yield Problem(
                    ("training_job_queues", name, "quota", team),
                    f"{team} is not under governance.teams; teams are {listed(environment.governance.teams, 'and')}",
                    "correct the name, or add the team",
                )


@rule("PLF021", ERROR, on=Environment, source="batch-quota-share batch-training-jobs")
def shares_of_capacity(environment: Environment) -> Problems:
    """Queue shares exceed the queue's capacity."""
    for name, queue in environment.training_job_queues.items():
        for type_name in sorted({each for quota in queue.quota.values() for each in quota}):
            parts = {team: quota[type_name] for team, quota in queue.quota.items() if type_name in quota}
            have, total = queue.capacity.get(type_name, 0), sum(parts.values())
            if total > have:
                sums = " + ".join(f"{count} of {team}" for team, count in parts.items())
                yield Problem(
                    ("training_job_queues", name, "quota"),
                    f"{sums} = {total} {type_name} are guaranteed, and the queue's capacity has {have}",
                    "lower the quotas, or raise capacity",
                )


@rule("PLF022", WARNING, on=Environment, source="batch-quota-share")
def what_batch_lacks(environment: Environment) -> Problems:
    """Team settings that a queue share does not support."""
    for name, queue in environment.training_job_queues.items():
        for team_name in queue.quota:
            team = environment.governance.teams.get(team_name)
            if team is None or team.share != "lend_and_borrow":
                continue
            if environment.governance.fair_share and "weight" in team.model_fields_set and len(queue.quota) > 1:
                yield Problem(
                    ("training_job_queues", name, "quota", team_name),
                    f"{team_name} has weight {team.weight}; AWS Batch has no weights and gives idle capacity to those "
                    "who wait longest",
                    "accept this, or keep them in separate queues",
                )


def _labelled(environment: Environment) -> Iterator[tuple[str, InstanceGroup]]:
    for name, group in environment.instance_groups.items():
        if MIG_LABEL in group.labels:
            yield name, group


@rule("PLF023", ERROR, on=Environment, source="batch-quota-share", final=True)
def training_jobs_of_queues(environment: Environment) -> Problems:
    """Training job with an unknown queue."""
    for name, job in environment.training_jobs.items():
        path, queue = ("training_jobs", name), environment.training_job_queues.get(job.queue)
        if name in environment.jobs:
            yield Problem(path, f"`jobs` has {name} too, and `podwright submit` takes one name", "rename one of them")
        if queue is None:
            known = listed(environment.training_job_queues, "and")
            yield Problem((*path, "queue"), f"{job.queue} is not a queue; queues are {known}", "correct the name")
            continue
        if job.team not in queue.quota:
            yield Problem(
                (*path, "team"),
                f"{job.team} has no share of {job.queue}; {listed(queue.quota, 'and')} have",
                f"give it one under training_job_queues.{job.queue}.quota, or choose another queue",
            )
        if job.priority and job.priority not in environment.governance.priorities:
            yield Problem(
                (*path, "priority"),
                f"{job.priority} is not under governance.priorities; known are "
                f"{listed(environment.governance.priorities, 'and')}",
                "correct the name, or add it",
            )
        most = queue.capacity.get(job.instance_type, 0)
        if job.nodes > most:
            yield Problem(
                (*path, "nodes" if most else "instance_type"),
                f"it asks for {job.nodes} {job.instance_type}, and {job.queue} has {most}: it would never start",
                f"ask for what the queue has: {listed(queue.capacity, 'and')}",
            )


@rule("PLF024", WARNING, on=Environment, source="batch-quota-share")
def training_jobs_of_shares(environment: Environment) -> Problems:
    """Training job larger than its team's share."""
    for name, job in environment.training_jobs.items():
        queue, team = environment.training_job_queues.get(job.queue), environment.governance.teams.get(job.team)
        if queue is None or team is None or job.team not in queue.quota:
            continue
        own = queue.quota[job.team].get(job.instance_type, 0)
        # One percentage of its own capacity holds for what it borrows of each type.
        borrowed = own * team.borrow_limit_percent // 100 if team.share == "lend_and_borrow" else 0
        if own + borrowed < job.nodes <= queue.capacity.get(job.instance_type, 0):
            yield Problem(
                ("training_jobs", name, "nodes"),
                f"it asks for {job.nodes} {job.instance_type}; {job.team} has {own} of {job.queue} and may borrow "
                f"{borrowed}",
                "ask for fewer, or raise the team's quota or borrow_limit_percent",
            )
