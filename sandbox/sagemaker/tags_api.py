# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Tags of the resources of podwright's services: clusters, extensions, quotas, policies, and training plans."""

from typing import Any, ClassVar

from moto.core.responses import ActionResult
from moto.sagemaker.exceptions import SagemakerClientError
from moto.sagemaker.responses import SageMakerResponse

from ..protocol.json_objects import tags_of
from ..protocol.service import refuse
from .service import HyperPod


class TagOperations(SageMakerResponse):
    """SageMaker's API with tags of these resources, and moto's for other resources."""

    service: ClassVar[HyperPod]

    def add_tags(self) -> Any:
        tags = self._tags()
        if tags is None:
            return super().add_tags()
        tags |= tags_of(dict(self.params))
        return _answer(tags)

    def list_tags(self) -> Any:
        tags = self._tags()
        return super().list_tags() if tags is None else _answer(tags)

    def delete_tags(self) -> Any:
        tags = self._tags()
        if tags is None:
            return super().delete_tags()
        for key in self._get_param("TagKeys"):
            tags.pop(key, None)
        return ActionResult({})

    def _tags(self) -> dict[str, str] | None:
        """Return the changeable tags of a resource; None for moto's resources. Refuses an unknown ARN."""
        arn = self._get_param("ResourceArn")
        for tags in self._tagged().get(arn), self._of_plan(arn):
            if tags is not None:
                return tags
        try:
            if self.sagemaker_backend._get_resource_from_arn(arn) is not None:
                return None
        except (AttributeError, ValueError, SagemakerClientError):
            # An unknown type, an invalid ARN, or an unknown name.
            pass
        raise refuse("ValidationException", f"{arn} does not exist, or its tags are not kept (sandbox)")

    def _tagged(self) -> dict[str, dict[str, str]]:
        """Return the tags of all resources of the region, by ARN."""
        clusters, schedulers = self.service.all(self.region), self.service.schedulers
        extensions = [item for cluster in clusters for item in cluster.extensions.items()]
        policies = schedulers.all("ComputeQuota", self.region) + schedulers.all("ClusterSchedulerConfig", self.region)
        return {
            **{cluster.arn: cluster.tags for cluster in clusters},
            **{arn: item["tags"] for arn, item in extensions},
            **{item.arn: item.tags for item in policies},
        }

    def _of_plan(self, arn: str) -> dict[str, str] | None:
        plan = self.service.plans.region(self.region).find(arn)
        return plan.tags if plan else None


def _answer(tags: dict[str, str]) -> ActionResult:
    return ActionResult({"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]})
