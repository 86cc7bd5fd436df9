"""Values of deployed templates, as far as CloudFormation's own lists resolve them."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..aws.account import Account
from ..aws.stacks import exports, stack_resources
from ..effects.compare import is_intrinsic
from ..effects.templates import Template


class Unknown:
    """A value that only the deployment knew, such as an attribute of a resource."""

    def __init__(self, value: Any) -> None:
        self.value = value
        """What stands in the template."""


class Resolver:
    """Puts physical ids, exported values and the account into the values of templates."""

    def __init__(self, account: Account, templates: Mapping[str, Template]) -> None:
        self._account, self._templates = account, templates
        self._ids: dict[str, dict[str, str]] = {}

    def physical_ids(self, stack: str) -> dict[str, str]:
        """The physical id of each resource of a stack by its logical id."""
        if stack not in self._ids:
            held = stack_resources(self._account, stack)
            self._ids[stack] = {item.logical_id: item.name for item in held if item.name}
        return self._ids[stack]

    @cached_property
    def _exports(self) -> dict[str, str]:
        return {item["Name"]: item["Value"] for item in exports(self._account)}

    def value(self, value: Any, stack: str) -> Any:
        """A value with everything filled in that can be; the rest is `Unknown`."""
        if is_intrinsic(value):
            return self._filled(value, stack)
        if isinstance(value, Mapping):
            # CloudFormation leaves such a property out.
            return {key: self.value(item, stack) for key, item in value.items() if item != {"Ref": "AWS::NoValue"}}
        if isinstance(value, list):
            return [self.value(item, stack) for item in value]
        return value

    @cached_property
    def _pseudo(self) -> dict[str, str]:
        partition = self._account.session().get_partition_for_region(self._account.region)
        return {"AWS::Region": self._account.region, "AWS::AccountId": self._account.id, "AWS::Partition": partition}

    def _filled(self, value: Mapping[str, Any], stack: str) -> Any:
        """What a function of CloudFormation comes to; Unknown where its lists of resources and exports do not tell."""
        match value:
            case {"Ref": "AWS::StackName"}:
                return stack
            case {"Ref": str() as name}:
                # The physical id is what Ref gives for the types that are compared.
                return self._pseudo.get(name) or self.physical_ids(stack).get(name) or Unknown(value)
            case {"Fn::GetAtt": [str() as name, "GroupId"]}:
                # The physical id of a security group is what this attribute gives.
                return self.physical_ids(stack).get(name) or Unknown(value)
            case {"Fn::ImportValue": str() as name}:
                return self._exports.get(name) or Unknown(value)
            case {"Fn::Join": [str() as between, list() as parts]}:
                filled = [self.value(part, stack) for part in parts]
                # A part that is not known makes the whole unknown.
                return between.join(filled) if all(isinstance(part, str) for part in filled) else Unknown(value)
            case _:
                return Unknown(value)
