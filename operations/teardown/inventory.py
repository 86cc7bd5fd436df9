"""Looking at an account for the plan of a teardown. Nothing is changed."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from ...config.catalog.names import cluster_log_group, lifecycle_bucket_name
from ...config.settings.environment import Environment
from ...planning.cost.costs import by_stack, costs
from ..aws.account import Account
from ..aws.calls import get
from ..aws.clusters import nodes
from ..aws.stacks import Stack
from ..aws.unseen import Unseen, permitted
from .contents import bucket_content, content, log_groups, plan_end, volumes
from .data import COSTING
from .network import network_blockers
from .plan import Blocker, Kept, StackPlan, Teardown, deletion_order, staying
from .stacks import OUR_STACKS, Resource, creation_minutes, failed, importers, imports, parents, resources_of
from .work import running_work

_PLAN: Final = "Custom::PodwrightTrainingPlan"
T = TypeVar("T")


@dataclass(slots=True)
class Inventory:
    """What was seen: the plan, and what carrying it out needs beside it."""

    plan: Teardown
    resources: dict[str, list[Resource]]
    network: tuple[str, str] | None
    """The stack and the VPC that it deletes, where one does."""

    def of_type(self, kind: str, stacks: Collection[str] | None = None) -> list[Resource]:
        """Resources of a type in some stacks, or in all."""
        result = self.resources if stacks is None else {name: self.resources[name] for name in stacks}
        return [item for items in result.values() for item in items if item.type == kind]


def take_inventory(
    environment: Environment,
    account: Account,
    project: Path,
    stacks: list[Stack],
    *,
    unprotect: Collection[str] = (),
    empty: Collection[str] = (),
    leave_blocked: bool = False,
) -> Inventory:
    """See what a teardown of `stacks` would do.

    The termination protection of those in `unprotect` is lifted, and the buckets in `empty` are emptied first.
    With `leave_blocked` stacks that somebody else has to free stay, and so do those that they need.
    """
    plan = Teardown(environment.name, account.id, account.region)
    # Other environments' stacks may begin with this one's name.
    ours = {f"{environment.name}-{name}" for name in OUR_STACKS}
    others = [stack.name for stack in stacks if stack.name not in ours]
    stays = dict.fromkeys(others, "it is no part of this environment")
    mine = [stack for stack in stacks if stack.name in ours]
    names = [stack.name for stack in mine]
    guarded = [stack.name for stack in mine if stack.protected and stack.name not in unprotect]
    stays |= dict.fromkeys(guarded, "termination protection")
    resources = resources_of(account, mine)
    users = importers(account, mine, parents(resources))
    needs, observed = imports(users), Inventory(plan, resources, None)
    going = [name for name in names if name not in stays]
    _blockers(observed, account, environment, going, users, empty)
    if leave_blocked:
        # Only what a person has to free; the rest podwright frees on the way.
        blocked = {item.stack for item in plan.blockers if item.by == "you"}
        # A stack that stays imports from others, which have to stay too.
        stays |= dict.fromkeys(sorted(staying(blocked, needs) - stays.keys()), "something else has to go first")
        going = [name for name in going if name not in stays]
        plan.blockers = [item for item in plan.blockers if item.by == "podwright" and item.stack in going]
        observed.network = observed.network if observed.network and observed.network[0] in going else None
    order = deletion_order(going, needs)
    today = datetime.now(UTC).date()
    # Prices are read only where something stays and keeps costing.
    prices = {str(name): sums.monthly for name, sums in by_stack(costs(environment, today)).items()} if stays else {}
    for stack in stacks:
        name, action = stack.name, "retry" if stack.status == "DELETE_FAILED" else "delete"
        if name in stays:
            usd = prices.get(name.removeprefix(f"{environment.name}-"))
            plan.stacks.append(StackPlan(name, stack.status, "keep", stays[name], monthly_usd=usd))
            continue
        plan.stacks.append(
            StackPlan(
                name,
                stack.status,
                action,
                order=order.index(name) + 1,
                # What is retained is not deleted with its stack.
                resources=sum(not item.retained for item in resources[name]),
                minutes=creation_minutes(account, stack),
                reasons=failed(resources[name]),
            )
        )
    plan.kept += _kept(observed, account, environment, going)
    _ended(observed, account, environment, project, going)
    return observed


def _seen(plan: Teardown, what: str, ask: Callable[[], T], otherwise: T) -> T:
    """What `ask` gives; where whoever looks may not, that is noted and `otherwise` stands for it."""
    answer = permitted(ask)
    if isinstance(answer, Unseen):
        plan.unseen.append(f"{what}: {answer.why}")
        return otherwise
    return answer


def _blockers(
    inventory: Inventory,
    account: Account,
    environment: Environment,
    going: list[str],
    users: dict[str, dict[str, set[str]]],
    empty: Collection[str],
) -> None:
    """Add to the plan what AWS refuses to delete while something else holds it."""
    plan = inventory.plan
    for stack in going:
        for export, names in users.get(stack, {}).items():
            for other in sorted(names - set(going)):
                why = f"{other} imports {export}, so CloudFormation does not delete {stack}"
                how = f"destroy {other} first, or with it"
                plan.blockers.append(Blocker(stack, "export", export, why, "you", how))
    for item in inventory.of_type("AWS::EKS::Cluster", going):
        cluster = get(account, "eks", "describe_cluster", name=item.name)["cluster"]
        if cluster.get("deletionProtection"):
            why = f"the EKS cluster {item.name} has deletion protection"
            how = "deploy once with `cluster.eks.deletion_protection: false`, or `protection: destroy` for everything"
            plan.blockers.append(Blocker(item.stack, "deletion protection", item.name, why, "you", how))
    for item in inventory.of_type("AWS::RDS::DBCluster", going):
        if item.retained:
            continue
        clusters = get(account, "rds", "describe_db_clusters", DBClusterIdentifier=item.name)["DBClusters"]
        if clusters[0].get("DeletionProtection"):
            why = f"the database {item.name} has deletion protection"
            how = "deploy once with `protection: destroy`"
            plan.blockers.append(Blocker(item.stack, "deletion protection", item.name, why, "you", how))
    # What nodes ran from it, its own stack takes out of it.
    emptied = lifecycle_bucket_name(environment.name, account.id, account.region)
    for item in inventory.of_type("AWS::S3::Bucket", going):
        if item.retained or item.name == emptied:
            continue
        held = _seen(plan, f"bucket {item.name}", lambda item=item: bucket_content(account, item.name), "")
        if held:
            why = f"the bucket {item.name} is not empty: {held}"
            named = item.name in empty
            how = (
                "emptied first" if named else f"`--empty-bucket {item.name}` deletes all versions of all objects in it"
            )
            plan.blockers.append(Blocker(item.stack, "bucket", item.name, why, "podwright" if named else "you", how))
    for item in inventory.of_type("AWS::EC2::VPC", going):
        if item.retained:
            continue
        inventory.network = item.stack, item.name
        plan.blockers += _seen(plan, "the network", lambda: still_there(inventory, account), [])


def still_there(inventory: Inventory, account: Account) -> list[Blocker]:
    """What is in the way of the network now."""
    if inventory.network is None:
        return []
    # Interfaces of what goes with stacks vanish by themselves.
    ours = {item.name for items in inventory.resources.values() for item in items if not item.retained}
    return network_blockers(account, *inventory.network, ours=ours)


def _kept(inventory: Inventory, account: Account, environment: Environment, going: list[str]) -> Iterator[Kept]:
    """What stays after the teardown, with the reason and the command that deletes it."""
    plan, region = inventory.plan, account.region
    for stack in going:
        for item in inventory.resources[stack]:
            # A failed purchase has an id of the runtime's own, and no plan.
            if item.type == _PLAN and ":training-plan/" in item.name:
                held = _seen(plan, item.name, lambda item=item: plan_end(account, item.name), "")
                why = "stays and is paid for until its end: nothing cancels a training plan"
                yield Kept(item.name, item.type, stack, why, held, costs=True)
            elif item.retained:
                held = _seen(plan, item.name, lambda item=item: content(account, item), "")
                command = f"podwright destroy {environment.name} --delete-data {item.name}"
                why = f"DeletionPolicy {item.policy}"
                yield Kept(item.name, item.type, stack, why, held, item.type in COSTING, command)
    # Log groups that services make when they write first; no stack knows them.
    prefixes = [
        *(f"/aws/eks/{item.name}/cluster" for item in inventory.of_type("AWS::EKS::Cluster", going)),
        *(
            cluster_log_group(environment.cluster.name, item.name.rpartition("/")[2])
            for item in inventory.of_type("AWS::SageMaker::Cluster", going)
        ),
    ]
    for name, size in _seen(plan, "log groups", lambda: list(log_groups(account, prefixes)), []):
        command = f"aws logs delete-log-group --log-group-name {name} --region {region}"
        yield Kept(name, "AWS::Logs::LogGroup", "", "a service made it, and no stack", size, True, command)
    for item in inventory.of_type("AWS::EKS::Cluster", going):
        # The driver of EBS makes volumes for claims, and their cluster's end does not delete them.
        for name, held in _seen(plan, "volumes", lambda item=item: list(volumes(account, item.name)), []):
            command = f"aws ec2 delete-volume --volume-id {name} --region {region}"
            yield Kept(name, "AWS::EC2::Volume", "", "a claim in the cluster made it", held, True, command)


def _ended(inventory: Inventory, account: Account, environment: Environment, project: Path, going: list[str]) -> None:
    """Nodes and work that go."""
    clusters = inventory.of_type("AWS::SageMaker::Cluster", going)
    for item in clusters:
        existing = _seen(inventory.plan, "nodes", lambda item=item: nodes(account, item.name), [])
        inventory.plan.nodes = dict(sorted(Counter(node.group for node in existing).items()))
    if clusters:
        work, unseen = running_work(project, environment, account)
        inventory.plan.running, inventory.plan.unseen = work, inventory.plan.unseen + unseen
