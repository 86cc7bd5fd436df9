# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The SageMaker operations on compute quotas and scheduler configurations."""

from typing import ClassVar

from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from ..protocol.clock import now
from .schedulers import Kind
from .service import HyperPod


class SchedulerOperations(SageMakerResponse):
    """SageMaker's API with the sandbox's quotas and scheduler configurations."""

    service: ClassVar[HyperPod]

    def create_compute_quota(self) -> ActionResult:
        return self._created("ComputeQuota")

    def describe_compute_quota(self) -> ActionResult:
        return self._described("ComputeQuota")

    def update_compute_quota(self) -> ActionResult:
        return self._updated("ComputeQuota")

    def delete_compute_quota(self) -> ActionResult:
        return self._deleted("ComputeQuota")

    def list_compute_quotas(self) -> ActionResult:
        return self._listed("ComputeQuota")

    def create_cluster_scheduler_config(self) -> ActionResult:
        return self._created("ClusterSchedulerConfig")

    def describe_cluster_scheduler_config(self) -> ActionResult:
        return self._described("ClusterSchedulerConfig")

    def update_cluster_scheduler_config(self) -> ActionResult:
        return self._updated("ClusterSchedulerConfig")

    def delete_cluster_scheduler_config(self) -> ActionResult:
        return self._deleted("ClusterSchedulerConfig")

    def list_cluster_scheduler_configs(self) -> ActionResult:
        return self._listed("ClusterSchedulerConfig")

    def _created(self, kind: Kind) -> ActionResult:
        made = self.service.schedulers.create(kind, self.region, dict(self.params))
        return ActionResult({f"{kind}Arn": made.arn, f"{kind}Id": made.identifier})

    def _described(self, kind: Kind) -> ActionResult:
        item = self.service.schedulers.find(kind, self.region, self._get_param(f"{kind}Id"))
        return ActionResult(item.answer(now()))

    def _updated(self, kind: Kind) -> ActionResult:
        changed = self.service.schedulers.update(kind, self.region, dict(self.params))
        return ActionResult({f"{kind}Arn": changed.arn, f"{kind}Version": changed.version})

    def _deleted(self, kind: Kind) -> ActionResult:
        self.service.schedulers.delete(kind, self.region, self._get_param(f"{kind}Id"))
        return ActionResult({})

    def _listed(self, kind: Kind) -> ActionResult:
        cluster, part = self._get_param("ClusterArn"), self._get_param("NameContains") or ""
        matches = [
            item.answer(now())
            for item in self.service.schedulers.all(kind, self.region)
            if cluster in (None, item.cluster_arn) and part in item.name
        ]
        size, start = int(self._get_param("MaxResults") or 100), int(self._get_param("NextToken") or 0)
        more = {"NextToken": str(start + size)} if len(matches) > start + size else {}
        return ActionResult({f"{kind}Summaries": matches[start : start + size], **more})
