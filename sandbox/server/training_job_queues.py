"""Service jobs of AWS Batch: SageMaker training jobs in the queues of deployed stacks.

The sandbox has no instances for them, so a job stays RUNNABLE until a user terminates it. Submissions are checked as
Batch checks them. Source: botocore 1.44.5, service models of Batch and SageMaker; messages marked (sandbox) are
podwright's.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from botocore.session import Session
from botocore.validate import ParamValidator

from ..cloudformation.service import CloudFormation
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, picked
from ..protocol.service import refuse

_SUMMARY: Final = (
    *("jobArn", "jobId", "jobName", "serviceJobType", "quotaShareName", "status", "statusReason", "createdAt"),
    *("startedAt", "stoppedAt", "isTerminated"),
)
_STAYS: Final = "The sandbox has no instances for training jobs (sandbox)"


class TrainingJobQueues:
    """The service jobs of an account, by region and id."""

    def __init__(self, cloudformation: CloudFormation, account: str) -> None:
        self.cloudformation, self.account = cloudformation, account
        self.regions: dict[str, dict[str, JsonObject]] = defaultdict(dict)

    def submit_service_job(self, region: str, arguments: JsonObject) -> JsonObject:
        """Submit a job to a queue. Refuses an unknown queue or share, and a payload that SageMaker would refuse."""
        queue = self._queue(region, arguments["jobQueue"])
        shares = {
            item.properties["QuotaShareName"]: item
            for item in self._made(region, "AWS::Batch::QuotaShare")
            if item.properties["JobQueue"].endswith(f"/{queue.properties['JobQueueName']}")
        }
        share = arguments.get("quotaShareName")
        if share not in shares:
            raise refuse("ClientException", f"Job queue {arguments['jobQueue']} has no quota share {share} (sandbox)")
        if queue.properties.get("State") == "DISABLED":
            raise refuse("ClientException", f"Job queue {arguments['jobQueue']} is DISABLED (sandbox)")
        _check_payload(arguments["serviceRequestPayload"])
        identifier = str(uuid.uuid4())
        job: JsonObject = {
            **arguments,
            "jobId": identifier,
            "jobArn": f"arn:aws:batch:{region}:{self.account}:service-job/{identifier}",
            "jobQueue": queue.physical_id,
            "status": "RUNNABLE",
            "statusReason": _STAYS,
            "createdAt": int(now().timestamp() * 1000),
            "startedAt": 0,
        }
        self.regions[region][identifier] = job
        return picked(job, "jobArn", "jobId", "jobName")

    def describe_service_job(self, region: str, arguments: JsonObject) -> JsonObject:
        """Return a job."""
        return {key: value for key, value in self._job(region, arguments["jobId"]).items() if key != "clientToken"}

    def list_service_jobs(self, region: str, arguments: JsonObject) -> JsonObject:
        """Return the jobs of a queue with a status, by default RUNNING."""
        queue, status = self._queue(region, arguments["jobQueue"]), arguments.get("jobStatus", "RUNNING")
        jobs = [job for job in self.regions[region].values() if job["jobQueue"] == queue.physical_id]
        return {"jobSummaryList": [picked(job, *_SUMMARY) for job in jobs if job["status"] == status]}

    def terminate_service_job(self, region: str, arguments: JsonObject) -> JsonObject:
        """Terminate a job, unless it has ended."""
        job = self._job(region, arguments["jobId"])
        if job["status"] not in ("SUCCEEDED", "FAILED"):
            ended = int(now().timestamp() * 1000)
            job |= {"status": "FAILED", "statusReason": arguments["reason"], "isTerminated": True, "stoppedAt": ended}
        return {}

    def _job(self, region: str, identifier: str) -> JsonObject:
        if identifier not in self.regions[region]:
            raise refuse("ClientException", f"There is no service job {identifier} (sandbox)")
        return self.regions[region][identifier]

    def _queue(self, region: str, name: str) -> Any:
        for queue in self._made(region, "AWS::Batch::JobQueue"):
            if name in (queue.physical_id, queue.properties["JobQueueName"]):
                return queue
        raise refuse("ClientException", f"Job queue {name} does not exist (sandbox)")

    def _made(self, region: str, resource_type: str) -> Iterator[Any]:
        """Return the resources of a type in the stacks of a region."""
        for stack in list(self.cloudformation.region(region).stacks.values()):
            for item in stack.resources.values():
                if item.resource_type == resource_type and item.status.endswith("_COMPLETE"):
                    yield item


@cache
def _training_job() -> Any:
    return Session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def _check_payload(text: str) -> None:
    try:
        payload = json.loads(text)
    except ValueError:
        raise refuse("ClientException", "serviceRequestPayload is not JSON (sandbox)") from None
    report = ParamValidator().validate(payload, _training_job())
    if report.has_errors():
        raise refuse("ClientException", f"serviceRequestPayload: {report.generate_report()} (sandbox)")
