# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Cost allocation tags: the tags of deployed stacks and resources, which a user activates."""

import json
from typing import Any, ClassVar

from moto.ce.responses import CostExplorerResponse
from moto.core.responses import ActionResult

from ..cloudformation.service import CloudFormation


class CostTags:
    """The activated tags, and the sources of all tags."""

    def __init__(self, cloudformation: CloudFormation):
        self.cloudformation = cloudformation
        self.active = set[str]()

    def seen(self) -> set[str]:
        """Return the keys of all tags of stacks and of their resources."""
        stacks = [stack for region in list(self.cloudformation.regions.values()) for stack in region.stacks.values()]
        resources = [resource for stack in stacks for resource in list(stack.resources.values())]
        return {key for stack in stacks for key in stack.request.tags} | {
            key for resource in resources for key in _keys(resource.properties.get("Tags"))
        }


def _keys(tags: Any) -> list[str]:
    """Return the keys of a resource's tags, which are a list or a mapping."""
    return list(tags) if isinstance(tags, dict) else [tag["Key"] for tag in tags or []]


class CostTagsResponse(CostExplorerResponse):
    """The API of Cost Explorer, with podwright's operations for tags and moto's for the rest."""

    service: ClassVar[CostTags]

    def list_cost_allocation_tags(self) -> ActionResult:
        request = json.loads(self.body)
        requested = request.get("TagKeys")
        tags = [
            {"TagKey": key, "Type": "UserDefined", "Status": "Active" if key in self.service.active else "Inactive"}
            for key in sorted(self.service.seen() | self.service.active)
            if requested is None or key in requested
        ]
        status = request.get("Status")
        return ActionResult({"CostAllocationTags": [tag for tag in tags if status in (None, tag["Status"])]})

    def update_cost_allocation_tags_status(self) -> ActionResult:
        errors = []
        for change in json.loads(self.body)["CostAllocationTagsStatus"]:
            key = change["TagKey"]
            if key not in self.service.seen() | self.service.active:
                message = "Tag keys not found: billing has seen no such tag (sandbox)"
                errors.append({"TagKey": key, "Code": "TagKeysNotFoundException", "Message": message})
            elif change["Status"] == "Active":
                self.service.active.add(key)
            else:
                self.service.active.discard(key)
        return ActionResult({"Errors": errors})
