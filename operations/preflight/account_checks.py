"""Checks of the account itself: prepared, permitted, and without left-overs in the way."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ...config.catalog.facts import table
from ...config.catalog.limits import limits
from ...config.findings import Path, listed
from ...config.settings.environment import Environment
from ...planning.cost.cost_tags import ENVIRONMENT_TAG, cost_tag_keys
from ...planning.rules.capacity.zones import sections
from ...planning.rules.framework.rule import Problem
from .check import Answers, Ask, Note, Skip, check
from .shared import STACK_PARTS, own_groups, partition, stack

_STUCK: Final = {
    "UPDATE_ROLLBACK_FAILED": "fix what its events name, then `aws cloudformation continue-update-rollback "
    "--stack-name {name}`",
    "ROLLBACK_FAILED": "delete the stack, then deploy again",
    "CREATE_FAILED": "delete the stack, then deploy again",
    "DELETE_FAILED": "fix what its events name, delete it again, then deploy",
    "IMPORT_ROLLBACK_FAILED": "fix what its events name, then delete the import's change set",
}
_TRUSTS: Final = "sts:AssumeRole"


def qualifier(ask: Ask) -> str:
    """The qualifier of the CDK's bootstrap stack, as the project's `cdk.json` says."""
    file = ask.project / "cdk.json"
    context = json.loads(file.read_text(encoding="utf-8")).get("context", {}) if file.is_file() else {}
    return str(context.get("@aws-cdk/core:bootstrapQualifier", "hnb659fds"))


@check("PRE001")
def bootstrapped(ask: Ask) -> Answers:
    """The parameter that every version of the bootstrap stack writes."""
    environment = ask.environment
    name = f"/cdk-bootstrap/{qualifier(ask)}/version"
    result = ask.aws.find("ssm", "get_parameter", {"ParameterNotFound"}, Name=name)
    command = f"`cdk bootstrap aws://{ask.account}/{environment.region}`"
    if result is None:
        yield Problem(
            "account",
            f"account {ask.account} is not prepared for the CDK in {environment.region}: there is no parameter {name}",
            f"`podwright deploy {environment.name} --bootstrap` prepares it, or an administrator runs {command}",
        )
    elif (version := int(result["Parameter"]["Value"])) < (oldest := limits().cloudformation.bootstrap_version):
        yield Problem(
            "account", f"the CDK's bootstrap stack has version {version}; {oldest} is needed", f"run {command} again"
        )
    else:
        yield Note(f"bootstrap version {version}")


@check("PRE002")
def stacks(ask: Ask) -> Answers:
    """The state of each stack of the environment."""
    matches = [each for part in STACK_PARTS if (each := stack(ask, part))]
    for each in matches:
        name, state = each["StackName"], each["StackStatus"]
        if state in _STUCK:
            yield Problem("name", f"stack {name} is {state} and takes no update", _STUCK[state].format(name=name))
    yield Note(
        listed((f"{each['StackName']} {each['StackStatus']}" for each in matches), "and") if matches else "no stacks"
    )


@check("PRE003")
def principal(ask: Ask) -> Answers:
    """Whether who asks may take on the roles through which the CDK deploys."""
    environment, who = ask.environment, ask.aws.get("sts", "get_caller_identity")["Arn"]
    source = _principal(ask, who)
    if isinstance(source, Note | Skip):
        yield source
        return
    for kind in ("deploy", "file-publishing"):
        role = _cdk_role(ask, kind)
        if denied := _denied(ask, source, [_TRUSTS], role):
            yield Problem(
                "account",
                f"{who} may not {denied[0]} {role}, through which the CDK deploys",
                f"allow {_TRUSTS} on arn:{partition(environment.region)}:iam::{ask.account}:role/"
                f"cdk-{qualifier(ask)}-*, or use a principal that has it",
            )
    yield Note(f"as {source}")


@check("PRE004")
def cloudformation_role(ask: Ask) -> Answers:
    """Whether the role that CloudFormation works with may do what the templates ask for."""
    role = _cdk_role(ask, "cfn-exec")
    if ask.aws.find("iam", "get_role", {"NoSuchEntity"}, RoleName=role.rpartition("/")[2]) is None:
        yield Skip(f"there is no role {role}; PRE001 says whether the account is prepared")
        return
    actions = deployment_actions(ask.environment)
    if denied := _denied(ask, role, actions, "*"):
        yield Problem(
            "account",
            f"{role} may not {listed(denied, 'and')}, which a deployment needs",
            "`cdk bootstrap --cloudformation-execution-policies ARN` gives it other policies; the cause can be a "
            "permissions boundary or a service control policy, too",
        )
    yield Note(f"{len(actions)} actions")


def deployment_actions(environment: Environment) -> list[str]:
    """What CloudFormation does for the environment, by `config/catalog/data/deployment_actions.csv`."""
    network, storage, cluster = environment.network, environment.storage, environment.cluster
    created = [lustre for lustre in storage.lustres.values() if lustre.existing is None]
    eks = cluster.orchestrator == "eks"
    accounting = None if eks else cluster.slurm.accounting
    observed = environment.observability
    task_governance, fallback = (
        environment.governance.engine == "hyperpod",
        environment.governance.task_governance.fallback,
    )
    parts = {
        "always": True,
        "cluster": environment.has_cluster,
        "addons": bool(environment.platform.addons),
        "mlflow": environment.platform.mlflow is not None,
        "queues": bool(environment.training_job_queues),
        "key": storage.kms_key is None,
        "network": network.vpc is None,
        "nat": network.vpc is None and network.endpoints == "standard",
        "eks": eks,
        "control_plane": eks and cluster.eks.existing is None,
        "file_system": bool(created or (storage.home and storage.home.openzfs.existing is None)),
        "repository": any(lustre.repositories for lustre in created),
        "database": accounting is not None and accounting.existing is None,
        "plans": bool(environment.training_plans),
        "task_governance": task_governance,
        "compute_quota": task_governance and "compute_quota" not in fallback,
        "scheduler_config": task_governance and "scheduler_config" not in fallback,
        "metrics": bool(observed and observed.metrics != "off"),
        "alerts": bool(observed),
        "dashboards": bool(observed),
        "grafana": bool(observed and observed.managed_grafana),
        "alert_manager": bool(observed and observed.metrics != "off" and observed.workspace is None),
        "slack": bool(observed and observed.alerts.chat.slack),
        "microsoft_teams": bool(observed and observed.alerts.chat.teams),
        "budget": bool(observed and observed.budget_usd_per_month),
    }
    return list(dict.fromkeys(row["action"] for row in table("deployment_actions") if parts[row["part"]]))


@check("PRE005")
def roles(ask: Ask) -> Answers:
    """The roles and the policy that the file names: that they are there, and who may take the roles on."""
    environment, observed = ask.environment, 0
    for path, arn, service in named_roles(environment):
        account, name = arn.split(":")[4], arn.rpartition("/")[2]
        if account != ask.account:
            yield Skip(f"{arn} is of account {account}")
            continue
        result = ask.aws.find("iam", "get_role", {"NoSuchEntity"}, RoleName=name)
        if result is None or result["Role"]["Arn"] != arn:
            existing = f"; {result['Role']['Arn']} is" if result else ""
            yield Problem(path, f"role {arn} is not there{existing}", "correct the ARN, or leave the field out")
        elif service and not _trusts(result["Role"].get("AssumeRolePolicyDocument", {}), service):
            yield Problem(
                path,
                f"role {arn} cannot be taken on by {service}",
                f"let its trust policy allow {_TRUSTS} to the service {service}",
            )
        observed += 1
    boundary = environment.iam.permissions_boundary
    if boundary and ask.aws.find("iam", "get_policy", {"NoSuchEntity"}, PolicyArn=boundary) is None:
        yield Problem(
            ("iam", "permissions_boundary"),
            f"policy {boundary} does not exist",
            "correct the ARN, or create the policy; `podwright pipeline bootstrap` creates that of a pipeline",
        )
    if observed or boundary:
        yield Note(f"{observed} roles{' and a boundary' if boundary else ''}")


@check("PRE006")
def cost_tags(ask: Ask) -> Answers:
    """Whether billing tells costs apart by the tags of the environment."""
    keys = cost_tag_keys(ask.environment)
    cost_allocation_tags = ask.aws.get("ce", "list_cost_allocation_tags", TagKeys=list(keys))["CostAllocationTags"]
    states = {tag["TagKey"]: tag["Status"] for tag in cost_allocation_tags}
    inactive = [key for key in keys if states.get(key) == "Inactive"]
    budget = ask.environment.observability.budget_usd_per_month if ask.environment.observability else None
    counts = budget is None or ENVIRONMENT_TAG not in inactive
    if inactive:
        yield Problem(
            "tags",
            f"{listed(inactive, 'and')}: not active as cost allocation tag{'s' if len(inactive) > 1 else ''}, so no "
            "report tells this environment's costs apart"
            + ("" if counts else f", and its budget of ${budget:,} a month counts nothing"),
            "the account that pays: Billing, Cost allocation tags, Activate; costs count from then on",
        )
    unseen = [key for key in keys if key not in states]
    active = [key for key in keys if states.get(key) == "Active"]
    if active:
        yield Note(f"active: {', '.join(active)}")
    if unseen:
        yield Note(f"not seen by billing yet: {', '.join(unseen)}; activate a day after the first deployment")


@check("PRE007")
def alarms(ask: Ask) -> Answers:
    """The alarms that turn updates back."""
    rollouts = [
        ((*path, field, "rollback_alarms"), rollout)
        for path, group in own_groups(ask.environment)
        for field, rollout in (("patching", group.patching), ("scheduled_update", group.scheduled_update))
    ]
    named = {alarm: path for path, rollout in rollouts if rollout for alarm in rollout.rollback_alarms}
    if not named:
        return
    answer = ask.aws.get(
        "cloudwatch", "describe_alarms", AlarmNames=sorted(named), AlarmTypes=["MetricAlarm", "CompositeAlarm"]
    )
    existing = {alarm["AlarmName"] for kind in ("MetricAlarms", "CompositeAlarms") for alarm in answer.get(kind, [])}
    for alarm, path in named.items():
        if alarm not in existing:
            yield Problem(
                path,
                f"there is no alarm {alarm} in {ask.environment.region}",
                "create it first, or correct its name: HyperPod refuses an update with an alarm that it cannot read",
            )
    yield Note(f"{len(existing)} alarms")


def _cdk_role(ask: Ask, kind: str) -> str:
    account, region = ask.account, ask.environment.region
    return f"arn:{partition(region)}:iam::{account}:role/cdk-{qualifier(ask)}-{kind}-role-{account}-{region}"


def _principal(ask: Ask, arn: str) -> str | Note | Skip:
    """The user or role whose policies speak for the caller."""
    kind, _, name = arn.rpartition(":")[2].partition("/")
    if kind == "root":
        return Note("the root user may do everything")
    if kind == "user":
        return arn
    if kind == "assumed-role":
        # The session's ARN leaves out the role's path, which IAM Identity Center's roles have.
        return str(ask.aws.get("iam", "get_role", RoleName=name.partition("/")[0])["Role"]["Arn"])
    return Skip(f"IAM simulates users and roles, not {arn}")


def _denied(ask: Ask, source: str, actions: list[str], resource: str) -> list[str]:
    results = ask.aws.pages(
        "iam",
        "simulate_principal_policy",
        "EvaluationResults",
        PolicySourceArn=source,
        ActionNames=actions,
        ResourceArns=[resource],
    )
    return [result["EvalActionName"] for result in results if result["EvalDecision"] != "allowed"]


class NamedRole(NamedTuple):
    """An existing role that the file names."""

    path: Path
    arn: str
    service: str | None = None
    """Which takes it on."""


def named_roles(environment: Environment) -> Iterator[NamedRole]:
    """Every existing role of the file."""
    for path, group in sections(environment):
        if group.role:
            yield NamedRole((*path, "role"), group.role, "sagemaker.amazonaws.com")
    cluster = environment.cluster
    if cluster.autoscaling_role:
        path, service = ("cluster", "autoscaling_role"), "hyperpod.sagemaker.amazonaws.com"
        yield NamedRole(path, cluster.autoscaling_role, service)
    if cluster.orchestrator == "eks":
        for index, arn in enumerate(cluster.eks.admins):
            yield NamedRole(("cluster", "eks", "admins", index), arn)
        if cluster.eks.existing:
            path = ("cluster", "eks", "existing", "kubectl_role")
            yield NamedRole(path, cluster.eks.existing.kubectl_role, "lambda.amazonaws.com")
    if inference := environment.platform.inference:
        # Taken on through the OIDC provider of the cluster, which a role cannot trust before there is one.
        for name, value in inference:
            if name.endswith("_role") and value:
                yield NamedRole(("platform", "inference", name), value)


def _trusts(document: dict[str, Any], service: str) -> bool:
    statements = document.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if statement.get("Effect") == "Allow" and service in ([services] if isinstance(services, str) else services):
            return True
    return False
