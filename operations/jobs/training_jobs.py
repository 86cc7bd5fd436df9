"""Training jobs of SageMaker in queues of AWS Batch: submitted, listed and stopped."""

import argparse
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

from botocore.exceptions import ClientError

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.jobs.training_job import queue_name, role_path, service_job, training_job_request
from ...planning.kubernetes.deployed_values import known_values
from ..arguments import account_for
from ..aws.account import Account
from ..aws.calls import change, pages_by_token
from ..environments.checked import stop_on_errors
from ..kubernetes.filled import stack_values
from ..output.console import write_json, write_line
from .reach import command_for
from .table import write_jobs

# Batch lists one status at a time.
_ACTIVE: Final = ("SUBMITTED", "PENDING", "RUNNABLE", "SCHEDULED", "STARTING", "RUNNING")
_ENDED: Final = ("SUCCEEDED", "FAILED")
_STATES: Final = {
    "SUBMITTED": "waiting",
    "PENDING": "waiting",
    "RUNNABLE": "waiting",
    "SCHEDULED": "starting",
    "STARTING": "starting",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
}
_SIMULATED: Final = "The sandbox keeps training jobs in their queue and runs none."


def is_training_job(environment: Environment, job: str) -> bool:
    """Whether a name means a training job: one of the file, or any where there is no cluster."""
    return job in environment.training_jobs or not environment.has_cluster


def submit_training_job(args: argparse.Namespace, loaded: LoadedEnvironment) -> int:
    """Hand a training job to its queue, with the role that the deployment made for its team.

    Raises:
        CommandError: there is no such job, its role is not deployed, or Batch refuses it.
    """
    environment, name = loaded.environment, args.job
    if name not in environment.training_jobs:
        known = ", ".join(environment.training_jobs) or "none"
        raise CommandError(f"{environment.name} has no training job {name}", f"known: {known}", 2)
    if args.settings or args.name:
        raise CommandError("training jobs run as the file has them", "change it in the file", 2)
    stop_on_errors(loaded)
    job, account = environment.training_jobs[name], account_for(args, environment)
    values = stack_values(account, environment, args.project) | known_values(environment, "")
    role, bucket = job.role or values.get(role_path(job.team)), values.get("checkpoint_bucket")
    if role is None or bucket is None:
        raise CommandError(
            f"the queues of {environment.name} are not deployed", f"`podwright deploy {environment.name}` first"
        )
    # Batch keeps no name from being used twice, and SageMaker does.
    run = f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    request = training_job_request(name, job, run=run, role=role, bucket=bucket)
    call = service_job(environment, name, request)
    if args.dry_run:
        write_json(call | {"serviceRequestPayload": request} if args.json else request)
        return 0
    try:
        answer = change(account, "batch", "submit_service_job", **call)
    except ClientError as error:
        message = error.response["Error"].get("Message", "")
        raise CommandError(f"AWS Batch refuses {name}: {message}", "`podwright check` looks at the file") from None
    following = _list_command(args, environment)
    if args.json:
        write_json({"job": name, "id": answer["jobId"], "queue": call["jobQueue"], "run": run, "next": [following]})
        return 0
    write_line(f"{name} waits in {call['jobQueue']} as {answer['jobId']}, in the share of {job.team}.")
    write_line(_SIMULATED if account.endpoint else f"Where it stands:  {following}")
    return 0


def list_training_jobs(args: argparse.Namespace, environment: Environment) -> int:
    """Print the jobs of all queues."""
    rows = _rows(account_for(args, environment), environment, (*_ACTIVE, *(_ENDED if args.all else ())))
    rows = [row for row in rows if args.team in (None, row["team"])]
    if args.json:
        write_json({"environment": environment.name, "jobs": rows, "not_readable": []})
        return 0
    if rows:
        write_jobs(rows, f"Training jobs of {environment.name}", datetime.now(UTC))
    else:
        write_line(f"No training jobs wait or run in the queues of {environment.name}.")
    return 0


def stop_training_job(args: argparse.Namespace, environment: Environment) -> int:
    """Terminate the runs of a job that wait or run, by its name or the id of one. Raises CommandError without any."""
    account = account_for(args, environment)
    rows = [row for row in _rows(account, environment, _ACTIVE) if args.job in (row["name"], row["id"])]
    rows = [row for row in rows if args.team in (None, row["team"])]
    if not rows:
        raise CommandError(
            f"no training job {args.job} waits or runs in the queues of {environment.name}",
            f"`{_list_command(args, environment)} --all` lists those that are there",
        )
    for row in rows:
        change(account, "batch", "terminate_service_job", jobId=row["id"], reason="stopped by podwright")
    if args.json:
        write_json({"job": args.job, "stopped": [row["id"] for row in rows]})
        return 0
    for row in rows:
        write_line(f"Stopped {row['name']} ({row['id']}), which was {row['state']}.")
    return 0


def _list_command(args: argparse.Namespace, environment: Environment) -> str:
    """What lists them."""
    options = ["--training-jobs"] if environment.has_cluster else []
    return command_for(args, "jobs", environment.name, *options)


def _rows(account: Account, environment: Environment, statuses: tuple[str, ...]) -> list[dict[str, Any]]:
    """The jobs of all queues with one of these statuses, newest first, as tables of jobs have them."""
    rows = list[dict[str, Any]]()
    for queue, status in product(environment.training_job_queues, statuses):
        name = queue_name(environment.name, queue)
        try:
            summaries = pages_by_token(
                *(account, "batch", "list_service_jobs", "jobSummaryList", "nextToken"), jobQueue=name, jobStatus=status
            )
        except ClientError as error:
            message = error.response["Error"].get("Message", "")
            hint = f"`podwright deploy {environment.name}` makes it"
            raise CommandError(f"AWS Batch shows no queue {name}: {message}", hint) from None
        rows += [_row(queue, summary) for summary in summaries]
    return sorted(rows, key=lambda row: row["created"] or "", reverse=True)


def _row(queue: str, summary: dict[str, Any]) -> dict[str, Any]:
    created = summary.get("createdAt")
    state = "stopped" if summary.get("isTerminated") else _STATES[summary["status"]]
    return {
        "team": summary.get("quotaShareName", ""),
        "name": summary["jobName"],
        "id": summary["jobId"],
        "kind": f"training job in {queue}",
        "state": state,
        "position": None,
        "accelerators": 0,
        "created": datetime.fromtimestamp(created / 1000, UTC).isoformat() if created else None,
        "reason": summary.get("statusReason", ""),
    }
