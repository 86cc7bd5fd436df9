"""Rules on HyperPod task governance, the engine that comes as an EKS add-on."""

from collections.abc import Iterator

from ....config.catalog.limits import limits
from ....config.catalog.regions import UnknownRegion, region
from ....config.catalog.software_matrix import number
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.task_governance import ADDON, NAMED_REGIONS, ComputeQuota
from ...kubernetes.addons import addon_pins, addon_version
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

_GOVERNANCE = ("governance",)
_SETTINGS = ("governance", "task_governance")
# The first version that stores every kind in a version that later ones know.
_IN_PLACE_FROM = (1, 5)


@rule("GOV040", WARNING, on=Environment, source="cfn-compute-quota cfn-scheduler")
def types_in_the_region(environment: Environment) -> Problems:
    """Region may lack the CloudFormation types of quotas."""
    governance = environment.governance
    if governance.engine != "hyperpod" or len(set(governance.task_governance.fallback)) == 2:
        return
    try:
        known = region(environment.region)
    except UnknownRegion:
        return
    # The lists of the two types contradict each other: a region in either has task governance.
    if not (known.compute_quota or known.scheduler_config or known.name in NAMED_REGIONS):
        yield Problem(
            (*_SETTINGS, "fallback"),
            f"CloudFormation's lists name {environment.region} for neither AWS::SageMaker::ComputeQuota nor "
            "AWS::SageMaker::ClusterSchedulerConfig; if the region lacks them, the deployment fails at the quotas, "
            "after everything else",
            "set fallback: [compute_quota, scheduler_config], or accept this when `podwright preflight` finds them",
        )


@rule("GOV041", WARNING, on=Environment, source="hyperpod-gang")
def gangs_by_hand(environment: Environment) -> Problems:
    """Gang scheduling settings that task governance ignores."""
    if environment.governance.engine == "hyperpod" and environment.governance.wait_for_pods:
        yield Problem(
            (*_GOVERNANCE, "wait_for_pods"),
            "wait_for_pods has no effect: task governance keeps it in the configuration of its Kueue, which only the "
            "console or an edit in the cluster changes",
            "turn it on under Policies in the SageMaker console, or use engine kueue",
        )


@rule("GOV042", ERROR, on=Environment, source="task-governance", final=True)
def kubernetes_for_task_governance(environment: Environment) -> Problems:
    """Kubernetes version too old for task governance."""
    version, needed = environment.cluster.eks.version, limits().eks.task_governance_from
    if environment.governance.engine == "hyperpod" and number(version) < number(needed):
        yield Problem(
            ("cluster", "eks", "version"),
            f"Kubernetes is {version}; task governance needs {needed} or newer",
            f"use {needed} or newer, or another engine",
        )


@rule("GOV043", WARNING, on=Environment, source="task-governance-upgrade")
def step_that_is_not_in_place(environment: Environment) -> Problems:
    """Task governance version without an in-place upgrade."""
    specified = environment.cluster.eks.addons.get(ADDON)
    if specified and number(specified[1:])[:2] < _IN_PLACE_FROM:
        yield Problem(
            ("cluster", "eks", "addons", ADDON),
            f"task governance is {specified}; an update to v1.5 or newer fails, because it no longer has "
            f"the version in "
            "which this one stores cohorts",
            "leave it out on a new cluster; on this one upgrade by the console, then take it out",
        )


@rule("GOV044", WARNING, on=Environment, source="")
def task_governance_elsewhere(environment: Environment) -> Problems:
    """Task governance settings with another engine."""
    engine = environment.governance.engine
    if engine == "hyperpod":
        return
    specified = [_SETTINGS] if "task_governance" in environment.governance.model_fields_set else []
    specified += [("cluster", "eks", "addons", ADDON)] if ADDON in environment.cluster.eks.addons else []
    specified += [path for path, _ in _compute_quotas(environment)]
    for path in specified:
        yield Problem(
            path,
            f"{path[-1]} has no effect: {f'the engine is {engine}' if engine else 'there is no quota engine'}",
            "remove it, or use engine hyperpod",
        )


@rule("GOV045", WARNING, on=Environment, source="task-governance-upgrade")
def pinned_task_governance(environment: Environment) -> Problems:
    """Task governance version not pinned."""
    eks = environment.cluster.eks
    runs = number(eks.version) >= number(limits().eks.task_governance_from)
    if environment.governance.engine == "hyperpod" and runs and addon_version(ADDON, eks) is None:
        pinned = [pin.kubernetes for pin in addon_pins() if pin.addon == ADDON]
        yield Problem(
            ("cluster", "eks", "addons"),
            f"podwright pins no version of {ADDON} for Kubernetes {eks.version}, so EKS chooses one on the day of the "
            "deployment, if it has one",
            f"pin one here, or use Kubernetes {pinned[-1]}",
        )


@rule("GOV046", ERROR, on=Environment, source="cfn-compute-quota", final=True)
def quota_names(environment: Environment) -> Problems:
    """Two compute quotas with the same name."""
    teams: dict[str, str] = {}
    for team, settings in environment.governance.teams.items():
        named = settings.compute_quota.name if settings.compute_quota else None
        name = named or team
        if environment.governance.engine == "hyperpod" and name in teams:
            # Said at the one that the file names: the other may be called by its team.
            stated, other = (team, teams[name]) if named else (teams[name], team)
            yield Problem(
                (*_GOVERNANCE, "teams", stated, "compute_quota", "name"),
                f"name is {name}, and so is the quota of {other}; a cluster takes no two quotas of a name",
                "choose another name, or leave it out",
            )
        teams.setdefault(name, team)


@rule("GOV047", WARNING, on=Environment, source="sagemaker-api")
def jobs_of_a_quota_that_is_off(environment: Environment) -> Problems:
    """Jobs of a team with a disabled quota."""
    for path, quota in _compute_quotas(environment):
        jobs = [name for name, job in environment.jobs.items() if job.team == path[2] and quota.state == "disabled"]
        if jobs:
            yield Problem(
                (*path, "state"),
                f"state is disabled, and {listed(jobs, 'and')} of {path[2]} waits in its queue: a quota that is off "
                "admits nothing",
                "set `state: enabled` before they are submitted",
            )


def _compute_quotas(environment: Environment) -> Iterator[tuple[Path, ComputeQuota]]:
    """What the file says of the compute quotas of teams, with where it says it."""
    for team, settings in environment.governance.teams.items():
        if settings.compute_quota:
            yield (*_GOVERNANCE, "teams", team, "compute_quota"), settings.compute_quota
