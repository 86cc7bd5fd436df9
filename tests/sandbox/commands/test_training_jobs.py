"""Training jobs from the file to their queue and out of it, by the commands that people type."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cloudformation_cdk import podwright
from podwright.config.catalog.sandbox_account import access_key
from podwright.operations.aws import sandbox_server as server

NAME = "training-jobs-queue"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("queues") / "project"
    podwright(folder.parent, "init", str(folder))
    shutil.copy(ROOT / f"environments/{NAME}.yaml", folder / "environments")
    server.start(folder, port=0, time_scale=0.25)
    run(folder, "deploy", NAME, "--sandbox", "--yes")
    yield folder
    server.stop(folder)


def run(project: Path, *arguments: str, code: int = 0) -> str:
    answer = podwright(project, *arguments, code=code)
    return answer.output if code == 0 else answer.output + answer.errors


def jobs(project: Path, *arguments: str) -> list[dict[str, Any]]:
    return json.loads(run(project, "jobs", NAME, "--sandbox", "--json", *arguments))["jobs"]


@pytest.fixture(scope="module")
def batch(project: Path) -> Any:
    running = server.status(project)
    assert running
    session = boto3.Session(access_key("111122223333"), "sandbox", region_name="us-east-1")
    return session.client("batch", endpoint_url=running.endpoint)


def test_a_training_job_waits_in_the_share_of_its_team_until_it_is_stopped(project: Path, batch: Any) -> None:
    assert jobs(project) == []
    submitted = json.loads(run(project, "submit", NAME, "tune", "--sandbox", "--json"))
    assert submitted["queue"] == f"{NAME}-batch"
    (row,) = jobs(project)
    assert (row["name"], row["team"], row["state"], row["id"]) == ("tune", "search", "waiting", submitted["id"])
    job = batch.describe_service_job(jobId=submitted["id"])
    assert (job["quotaShareName"], job["schedulingPriority"]) == ("search", 80)
    request = json.loads(job["serviceRequestPayload"])
    # The role is the one that the deployment made, and not somebody's.
    assert "Rolesearch" in request["RoleArn"]
    assert request["OutputDataConfig"]["S3OutputPath"].endswith("/search/training-jobs/")
    assert "tune" in run(project, "jobs", NAME, "--sandbox")
    assert "Stopped tune" in run(project, "stop", NAME, "tune", "--sandbox")
    assert jobs(project) == []
    assert [row["state"] for row in jobs(project, "--all")] == ["stopped"]
    assert "no training job tune" in run(project, "stop", NAME, "tune", "--sandbox", code=1)


def test_a_dry_run_prints_the_request_and_submits_nothing(project: Path) -> None:
    request = json.loads(run(project, "submit", NAME, "tune", "--sandbox", "--dry-run"))
    call = json.loads(run(project, "submit", NAME, "tune", "--sandbox", "--dry-run", "--json"))
    names = ("TrainingJobName", "RoleArn", "OutputDataConfig")
    assert {*names} <= request.keys()
    assert (call["quotaShareName"], call["serviceRequestPayload"].keys()) == ("search", request.keys())
    assert jobs(project) == []


def test_what_the_file_does_not_have_is_refused(project: Path) -> None:
    assert "known: tune" in run(project, "submit", NAME, "other", "--sandbox", code=2)
    assert "as the file has them" in run(project, "submit", NAME, "tune", "--set", "nodes=4", "--sandbox", code=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobQueue": "other"}, "Job queue other does not exist"),
        ({"quotaShareName": "fraud2"}, "no quota share fraud2"),
        ({"serviceRequestPayload": "{"}, "not JSON"),
        ({"serviceRequestPayload": "{}"}, "TrainingJobName"),
    ],
)
def test_batch_refuses_what_it_cannot_run(batch: Any, change: dict[str, str], message: str) -> None:
    call = {
        "jobName": "a",
        "jobQueue": f"{NAME}-batch",
        "serviceJobType": "SAGEMAKER_TRAINING",
        "quotaShareName": "search",
        "serviceRequestPayload": "{}",
    }
    with pytest.raises(ClientError, match=message):
        batch.submit_service_job(**call | change)
