"""The gate `quotas`: what the file grants every team is in force, with the same numbers, whoever keeps the quotas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.artifacts import read_artifacts
from ...config.settings.governance.task_governance import NAMESPACE as _GOVERNED
from ...planning.helm.mirrors import mirror_of
from ...planning.node.slurm_facts import team_limits
from ...planning.quota.amounts import number_of
from ...planning.quota.compute_quotas import compute_quotas, scheduler_config
from ...planning.quota.policy import environment_policy
from ...planning.quota.team_names import cluster_queue, local_queue, team_namespace
from ..aws.calls import get, pages
from ..aws.clusters import existing_cluster
from ..kubernetes.filled import filled, stack_values
from ..kubernetes.kubectl import Refused
from .gate import Context, Observation, Result
from .slurm import Slurm

Object = dict[str, Any]
_IN_FORCE: Final = ("Created", "Updated")
_KUEUE: Final = ("hyperpod", "kueue")
_SWITCHED: Final = {"Enabled": "on", "Disabled": "off"}
# What each engine counts with; everything else of its objects is no quota.
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "kueue": ("ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue"),
    "kai": ("Queue",),
    "yunikorn": ("ConfigMap",),
}
_PLURAL: Final = {
    "ResourceFlavor": "resourceflavors.kueue.x-k8s.io",
    "Cohort": "cohorts.kueue.x-k8s.io",
    "ClusterQueue": "clusterqueues.kueue.x-k8s.io",
    "LocalQueue": "localqueues.kueue.x-k8s.io",
    "Queue": "queues.scheduling.run.ai",
    "ConfigMap": "configmaps",
}


def run(context: Context) -> Result:
    """Wait until all of them are in force."""
    if context.environment.cluster.orchestrator == "slurm":
        slurm = Slurm(context)
        return context.wait(lambda: _accounts(context, slurm))
    expected = list(_expected(context))
    result = context.wait(lambda: _observe(context, expected))
    # A store has the objects, and nobody who would say that their queues admit.
    unproved = context.without_scheduler if result.passed and context.environment.governance.engine in _KUEUE else None
    return unproved or result


def _observe(context: Context, expected: Sequence[Object]) -> Observation:
    """The quotas that the file grants, in the service and in the cluster."""
    engine = context.environment.governance.engine or ""
    observation = Observation(
        next_step=f"`podwright quotas {context.environment.name}` prints what the file grants; deploy it again"
    )
    if engine == "hyperpod":
        _service(context, observation)
    # Each look into a private API takes a run inside the VPC, so SageMaker's side comes first.
    if observation.final or observation.missing:
        return observation
    kinds = {item["kind"] for item in expected}
    results = {kind: _items(context, kind) for kind in kinds}
    for item in expected:
        _object(item, results[item["kind"]], observation)
    if engine in _KUEUE and not context.without_scheduler:
        _conditions(context, engine, observation)
    return observation


def _service(context: Context, observation: Observation) -> None:
    """Compute quotas and the scheduler configuration, as SageMaker has them."""
    account, environment = context.account, context.environment
    policy = environment_policy(environment, context.types)
    arn = existing_cluster(account, environment.cluster.name).arn
    quotas = pages(account, "sagemaker", "list_compute_quotas", "ComputeQuotaSummaries", ClusterArn=arn)
    by_team = {item["ComputeQuotaTarget"]["TeamName"]: item for item in quotas}
    observation.answers["compute quotas"] = [
        {"team": team, "status": item["Status"], "config": item.get("ComputeQuotaConfig", {})}
        for team, item in sorted(by_team.items())
    ]
    for team, desired in compute_quotas(environment.governance, policy).items():
        quota = by_team.get(team)
        if quota is None:
            # Not there yet: CloudFormation may still be making it, so the gate keeps waiting.
            observation.check(f"quota of {team}", "Created", "is not there", False)
            continue
        messages = _status(
            quota,
            observation,
            lambda id: get(account, "sagemaker", "describe_compute_quota", ComputeQuotaId=id),
            "ComputeQuotaId",
        )
        if messages is None:
            messages = _difference(desired["ComputeQuotaConfig"], quota.get("ComputeQuotaConfig", {}))
        # A quota that is switched off keeps its numbers and grants nothing.
        state = quota.get("ActivationState", "Enabled")
        differs = state != desired.get("ActivationState", "Enabled")
        messages = messages or (f"is switched {_SWITCHED[state]} (ActivationState)" if differs else None)
        observation.check(f"quota of {team}", "in force as in the file", messages or quota["Status"], messages is None)
    # A team that left the file would keep its guarantee.
    for team in sorted(by_team.keys() - environment.governance.teams.keys()):
        observation.check(f"quota of {team}", "not there: the file has no such team", by_team[team]["Status"], False)
    desired = scheduler_config(environment.governance, policy)
    key = "ClusterSchedulerConfigSummaries"
    configs = pages(account, "sagemaker", "list_cluster_scheduler_configs", key, ClusterArn=arn)
    for item in configs or [{"Status": "is not there"}]:
        id, messages = item.get("ClusterSchedulerConfigId", ""), None
        described = (
            get(account, "sagemaker", "describe_cluster_scheduler_config", ClusterSchedulerConfigId=id) if id else {}
        )
        messages = _status(item, observation, lambda _, result=described: result, "ClusterSchedulerConfigId")
        messages = messages or _difference(desired, described.get("SchedulerConfig", {}))
        observation.check(
            "scheduler configuration", "in force as in the file", messages or item["Status"], messages is None
        )


def _status(item: Object, observation: Observation, describe: Any, key: str) -> str | None:
    """Why something is not in force by its status; None where it is. A failure is final."""
    status = item["Status"]
    if status in _IN_FORCE:
        return None
    if not status.endswith("Failed"):
        return status
    reason = describe(item[key]).get("FailureReason", "SageMaker gives no reason")
    observation.final = f"{item.get('Name', 'it')} is {status}: {reason}"
    return f"{status}: {reason}"


def _expected(context: Context) -> Iterator[Object]:
    """The engine's objects that hold quotas, as a deployment makes them."""
    environment = context.environment
    kinds = _KINDS.get(environment.governance.engine or "", ())
    if not kinds:
        return
    specified = stack_values(context.account, environment, context.project)
    objects, _ = filled(environment, specified, mirror_of(environment, read_artifacts(context.project)))
    for item in objects:
        # Of YuniKorn's ConfigMaps the one with queues.
        if item["kind"] in kinds and (item["kind"] != "ConfigMap" or "queues.yaml" in item.get("data", {})):
            yield item


def _items(context: Context, kind: str) -> list[Object]:
    try:
        return context.kubectl.items(_PLURAL[kind], "--all-namespaces")
    except Refused as refused:
        raise CommandError(
            f"Kubernetes does not show {_PLURAL[kind]}: {refused}", "deploy the quota engine, or get an access entry"
        ) from None


def _object(desired: Object, result: Sequence[Object], observation: Observation) -> None:
    """Check that the cluster has an object of the file with the same spec, or data of a ConfigMap."""
    name, namespace = desired["metadata"]["name"], desired["metadata"].get("namespace")
    about = f"{desired['kind']} {name}"
    existing = next(
        (
            item
            for item in result
            # Objects of the cluster have no namespace.
            if item["metadata"]["name"] == name and namespace in (None, item["metadata"].get("namespace"))
        ),
        None,
    )
    if existing is None:
        observation.check(about, "as in the file", "is not there", False)
        return
    part = "data" if desired["kind"] == "ConfigMap" else "spec"
    messages = _difference(desired.get(part, {}), existing.get(part, {}))
    observation.check(about, "as in the file", messages or "as in the file", messages is None)


def _conditions(context: Context, engine: Any, observation: Observation) -> None:
    """Kueue's own word on every queue: an inactive one admits nothing, whatever its numbers are."""
    queues = {item["metadata"]["name"]: item for item in _items(context, "ClusterQueue")}
    local = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in _items(context, "LocalQueue")}
    for team in sorted(context.environment.governance.teams):
        pairs = (
            (f"ClusterQueue of {team}", queues.get(cluster_queue(engine, team))),
            (f"LocalQueue of {team}", local.get((team_namespace(engine, team), local_queue(engine, team)))),
        )
        for about, item in pairs:
            conditions = (item or {}).get("status", {}).get("conditions", ())
            # Kueue writes the condition some seconds after the object.
            active = next((entry for entry in conditions if entry["type"] == "Active"), None)
            if item is None:
                observation.check(about, "Active", "is not there", False)
            elif active is None:
                observation.check(about, "Active", "says nothing yet", False)
            else:
                ok = active["status"] == "True"
                messages = "Active" if ok else f"not Active, {active.get('reason', '')}: {active.get('message', '')}"
                observation.check(about, "Active", messages, ok)
    if observation.missing:
        where = _GOVERNED if engine == "hyperpod" else "its namespace"
        observation.next_step = f"Kueue's manager in {where} says why in its log; then {observation.next_step}"


def _accounts(context: Context, slurm: Any) -> Observation:
    """Teams are accounts of Slurm, limited to what they are guaranteed."""
    observation = Observation(
        next_step=f"`podwright doctor {context.environment.name}`; the controller's set-up log says what failed"
    )
    rows = slurm.run("sacctmgr --noheader --parsable2 show associations format=Account,User,GrpTRES").splitlines()
    # Rows with a user are people's own; the account's row has none.
    shown = {row.split("|")[0]: row.split("|")[2] for row in rows if row.count("|") == 2 and not row.split("|")[1]}
    observation.answers["associations"] = shown
    groups = context.environment.instance_groups
    for team, limits in team_limits(context.environment.governance, groups, context.types).items():
        if not limits:
            continue
        observed = dict(part.partition("=")[::2] for part in shown.get(team, "").split(",") if part)
        same = {key: int(value) for key, value in observed.items() if value.isdigit()} == limits
        desired = ",".join(f"{key}={count}" for key, count in sorted(limits.items()))
        observation.check(f"account {team}", desired, shown.get(team, "is not there") or "no limits", same)
    return observation


def _difference(desired: Any, result: Any, path: str = "") -> str | None:
    """Where something that is wanted is otherwise; None where all is there. What is there besides does not count."""
    if isinstance(desired, dict):
        if not isinstance(result, dict):
            return f"{path or 'it'} is {result!r}"
        parts = (
            _difference(value, result.get(key), f"{path}.{key}" if path else str(key)) for key, value in desired.items()
        )
        return next((part for part in parts if part), None)
    if isinstance(desired, list):
        if not isinstance(result, list) or len(result) != len(desired):
            return (
                f"{path} has {len(result) if isinstance(result, list) else 'no'} entries, and {len(desired)} are wanted"
            )
        pairs = zip(_sorted(desired), _sorted(result), strict=True)
        parts = (_difference(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(pairs))
        return next((part for part in parts if part), None)
    # Numbers before texts, so that 1 and "1" and 1000m are the same.
    if number_of(desired) is not None and number_of(desired) == number_of(result):
        return None
    return None if desired == result else f"{path} is {result!r}, and {desired!r} is wanted"


def _sorted(items: list[Any]) -> list[Any]:
    """Entries of services come in an order of their own; those that have a name are compared by it."""
    keys = ("InstanceType", "Name", "name", "nodeLabel")
    if all(isinstance(item, dict) and not item.keys().isdisjoint(keys) for item in items):
        return sorted(items, key=lambda item: [str(item.get(key, "")) for key in keys])
    return items
