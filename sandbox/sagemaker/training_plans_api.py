# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The training-plan operations of the SageMaker API."""

import json
from datetime import UTC, datetime
from typing import Any, ClassVar

from botocore.exceptions import ClientError
from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from ..protocol.json_objects import JsonObject
from .service import HyperPod

_TIMES = ("StartTimeAfter", "StartTimeBefore", "EndTimeBefore")
Answer = ActionResult | tuple[str, JsonObject]


class TrainingPlanOperations(SageMakerResponse):
    """SageMaker's API with the sandbox's training plans."""

    service: ClassVar[HyperPod]

    def arguments(self) -> JsonObject:
        """Return the request's members."""
        return {key: value for key, value in dict(self.params).items() if value is not None}

    def search_training_plan_offerings(self) -> Answer:
        return self._answer("search_training_plan_offerings")

    def create_training_plan(self) -> Answer:
        return self._answer("create_training_plan")

    def list_training_plans(self) -> Answer:
        return self._answer("list_training_plans")

    def describe_training_plan(self) -> Answer:
        return self._answer("describe_training_plan")

    def extend_training_plan(self) -> Answer:
        return self._answer("extend_training_plan")

    def describe_training_plan_extension_history(self) -> Answer:
        return self._answer("describe_training_plan_extension_history")

    def describe_reserved_capacity(self) -> Answer:
        return self._answer("describe_reserved_capacity")

    def list_ultra_servers_by_reserved_capacity(self) -> Answer:
        return self._answer("list_ultra_servers_by_reserved_capacity")

    def _answer(self, operation: str) -> Answer:
        # The current number of instances counts.
        self.service.all(self.region)
        try:
            return ActionResult(getattr(self.service.plans.region(self.region), operation)(**self._converted()))
        except ClientError as error:
            detail, status = error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
            body = json.dumps({"__type": detail["Code"], "message": detail["Message"]})
            return body, {"status": status, "x-amzn-ErrorType": detail["Code"]}

    def _converted(self) -> JsonObject:
        return {key: _time(value) if key in _TIMES else value for key, value in self.arguments().items()}


def _time(value: Any) -> datetime:
    """Return a timestamp of the request, which moto passes as seconds since 1970."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime.fromtimestamp(float(value), UTC)
