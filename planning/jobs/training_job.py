"""Training jobs in the words of SageMaker and of AWS Batch.

Source: botocore 1.44.5, CreateTrainingJob and SubmitServiceJob; AWS Batch User Guide, "Service jobs", 2026-11.
"""

import json
from typing import Any, Final

from ...config.settings.environment import Environment
from ...config.settings.jobs.patch import patch_of
from ...config.settings.jobs.training import TrainingJob

SERVICE: Final = "SAGEMAKER_TRAINING"
"""What Batch calls queues of training jobs, and the jobs in them."""
# Batch gives work without a priority this one, the lowest.
_LOWEST: Final = 0


def queue_name(environment: str, queue: str) -> str:
    """Name of a queue in the account."""
    return f"{environment}-{queue}"


def role_path(team: str) -> str:
    """Path of the deployed value that is the execution role of a team's training jobs."""
    return f"training_roles.{team}"


def training_job_request(name: str, job: TrainingJob, *, run: str, role: str, bucket: str) -> dict[str, Any]:
    """The members of CreateTrainingJob.

    Args:
        name: The job's name in the file.
        job: The job.
        run: Name of this run, which no other training job of account and region has.
        role: ARN of its execution role.
        bucket: The environment's bucket for checkpoints.
    """
    algorithm: dict[str, Any] = {"TrainingImage": job.image, "TrainingInputMode": "File"}
    if job.command:
        algorithm["ContainerEntrypoint"] = list(job.command)
    own = f"s3://{bucket}/{job.team}"
    request: dict[str, Any] = {
        "TrainingJobName": run,
        "RoleArn": role,
        "AlgorithmSpecification": algorithm,
        "ResourceConfig": {
            "InstanceType": job.instance_type,
            "InstanceCount": job.nodes,
            "VolumeSizeInGB": job.volume_gib,
        },
        "OutputDataConfig": {"S3OutputPath": job.output or f"{own}/training-jobs/"},
        "CheckpointConfig": {"S3Uri": job.checkpoints or f"{own}/checkpoints/{name}/"},
        "StoppingCondition": {"MaxRuntimeInSeconds": int(job.max_hours * 3600)},
    }
    if job.inputs:
        request["InputDataConfig"] = [
            {"ChannelName": channel, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}
            for channel, uri in job.inputs.items()
        ]
    if job.env:
        request["Environment"] = dict(job.env)
    return request | (patch_of(job.request) if job.request else {})


def service_job(environment: Environment, name: str, request: dict[str, Any]) -> dict[str, Any]:
    """The members of SubmitServiceJob for a training job of the file."""
    job = environment.training_jobs[name]
    priority = environment.governance.priorities[job.priority] if job.priority else _LOWEST
    return {
        "jobName": name,
        "jobQueue": queue_name(environment.name, job.queue),
        "serviceJobType": SERVICE,
        "quotaShareName": job.team,
        "schedulingPriority": priority,
        "serviceRequestPayload": json.dumps(request),
        "retryStrategy": {"attempts": job.attempts},
        "tags": {"podwright:environment": environment.name, "podwright:team": job.team},
    }
