"""Training jobs in the words of SageMaker and AWS Batch: judged by the services' own models."""

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from job_environment import with_jobs
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.planning.jobs.training_job import service_job, training_job_request
from podwright.planning.rules.run import findings

ROOT = Path(__file__).parents[3]
ROLE = "arn:aws:iam::111122223333:role/Tune"


def with_job(**job: Any) -> Environment:
    environment = Project.at(ROOT).load("training-jobs-queue").environment
    tune = environment.training_jobs["tune"].model_copy(update=job)
    return environment.model_copy(update={"training_jobs": {"tune": type(tune).model_validate(tune.model_dump())}})


def request_of(environment: Environment) -> dict[str, Any]:
    job = environment.training_jobs["tune"]
    return training_job_request("tune", job, run="tune-1", role=ROLE, bucket="acme")


def problems(service: str, operation: str, values: dict[str, Any]) -> str:
    model: Any = botocore.session.get_session().get_service_model(service)
    return ParamValidator().validate(values, model.operation_model(operation).input_shape).generate_report()


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"command": (), "env": {"LR": "1e-4"}, "inputs": {}, "priority": None, "attempts": 3},
        {"output": "s3://mine/models/", "checkpoints": "s3://mine/state/"},
        {"request": "VpcConfig: {SecurityGroupIds: [sg-1], Subnets: [subnet-1]}"},
    ],
)
def test_the_services_take_it(job: dict[str, Any]) -> None:
    environment = with_job(**job)
    request = request_of(environment)
    assert problems("sagemaker", "CreateTrainingJob", request) == ""
    assert problems("batch", "SubmitServiceJob", service_job(environment, "tune", request)) == ""


def test_a_job_is_what_the_file_says() -> None:
    environment = with_job(env={"LR": "1e-4"})
    request = request_of(environment)
    resources = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 100}
    assert request["ResourceConfig"] == resources
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 43200}
    assert request["CheckpointConfig"] == {"S3Uri": "s3://acme/search/checkpoints/tune/"}
    assert request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://acme-datasets/search/"
    assert (request["RoleArn"], request["Environment"]) == (ROLE, {"LR": "1e-4"})
    call = service_job(environment, "tune", request)
    assert (call["jobQueue"], call["quotaShareName"], call["schedulingPriority"]) == (
        "training-jobs-queue-batch",
        "search",
        80,
    )
    assert json.loads(call["serviceRequestPayload"]) == request


def test_what_the_file_says_of_the_request_wins() -> None:
    request = request_of(with_job(request="StoppingCondition: {MaxRuntimeInSeconds: 60}"))
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}


def test_a_name_is_of_one_job() -> None:
    """Commands take a name, and hand a training job to AWS Batch."""
    environment = with_job()
    job = with_jobs({"tune": {"kind": "job", "command": ["true"]}}).jobs["tune"]
    both = environment.model_copy(update={"jobs": {"tune": job}})
    (finding,) = (item for item in findings(both) if item.id == "PLF023")
    assert finding.path == "training_jobs.tune"
    assert "`jobs` has tune too" in finding.message
    assert "PLF023" not in {item.id for item in findings(environment)}
