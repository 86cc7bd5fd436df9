"""The stacks of an environment as CloudFormation has them: resources, what is retained, who imports from whom."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ..aws.account import Account
from ..aws.stacks import Stack, exports, imported_by, stack_events, stack_resources, template

# What the CDK's RETAIN_ON_UPDATE_OR_DELETE becomes in a template is RetainExceptOnCreate.
_RETAINED: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
# What of these is kept costs nothing and holds nothing by itself; the rest of what is retained is named one by one.
_PARTS: Final = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")


OUR_STACKS: Final = (
    *("network", "storage", "eks", "capacity", "cluster", "platform", "access", "governance"),
    *("observability", "grafana", "training-jobs"),
)
"""What the stacks of an environment are called, behind its name. Others that begin with it are somebody else's."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack."""

    stack: str
    logical_id: str
    type: str
    name: str
    """Physical id."""
    status: str
    reason: str
    policy: str
    """DeletionPolicy of the deployed template."""

    @property
    def retained(self) -> bool:
        """Whether it survives its stack."""
        return self.policy in _RETAINED and self.type not in _PARTS


def resources_of(account: Account, stacks: list[Stack]) -> dict[str, list[Resource]]:
    """The resources of each stack that exist, with the deletion policies of the deployed templates."""
    results = {}
    for stack in stacks:
        # Processed: with transforms expanded, so that logical ids are those of the resources.
        made = template(account, stack.name, "Processed").get("Resources", {})
        policies = {key: item.get("DeletionPolicy", "") for key, item in made.items()}
        results[stack.name] = [
            Resource(
                stack.name,
                item.logical_id,
                item.type,
                item.name,
                item.status,
                item.reason,
                policies.get(item.logical_id, ""),
            )
            for item in stack_resources(account, stack.name)
            # Without a physical id nothing was made.
            if item.name and item.status != "DELETE_COMPLETE"
        ]
    return results


def parents(result: Mapping[str, list[Resource]]) -> dict[str, str]:
    """The stack that each nested one belongs to, by the nested one's name."""
    return {
        # The physical id of a nested stack is its ARN, in which the name comes after `:stack/`.
        item.name.rpartition(":stack/")[2].partition("/")[0]: stack
        for stack, items in result.items()
        for item in items
        if item.type == "AWS::CloudFormation::Stack"
    }


def importers(account: Account, stacks: list[Stack], parents: Mapping[str, str]) -> dict[str, dict[str, set[str]]]:
    """By stack and export: the other stacks that import it, of this environment or of anybody.

    A nested stack goes by the name of the one it belongs to, with which it is deleted.
    """
    names = {stack.id: stack.name for stack in stacks}
    result: dict[str, dict[str, set[str]]] = defaultdict(dict)
    # Listing exports takes as many calls as the region has pages of them, for nothing where no stack is left.
    for export in exports(account) if names else ():
        if stack := names.get(export["ExportingStackId"]):
            others = {parents.get(name, name) for name in imported_by(account, export["Name"])}
            result[stack][export["Name"]] = others - {stack}
    return result


def imports(users: Mapping[str, Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """By stack: those whose exports it imports."""
    result: dict[str, set[str]] = defaultdict(set)
    for stack, exported in users.items():
        for name in (name for names in exported.values() for name in names):
            result[name].add(stack)
    return result


def failed(resources: list[Resource], shown: Callable[[Resource], str] | None = None) -> tuple[str, ...]:
    """Why resources of a stack could not be deleted."""
    name = shown or (lambda item: f"{item.logical_id} ({item.type}, {item.name})")
    return tuple(f"{name(item)}: {item.reason}" for item in resources if item.status == "DELETE_FAILED")


def creation_minutes(account: Account, stack: Stack) -> float | None:
    """How long a stack took to be created; None where its history no longer says."""
    for event in stack_events(account, stack.name):
        if event.of_stack and event.status == "CREATE_COMPLETE":
            return (event.at - stack.created).total_seconds() / 60
    return None
