"""Keeping evidence: one JSON file for each run of a gate, in S3 or in a folder, without secrets."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from ...config.catalog.names import lifecycle_bucket_name
from ...config.errors import CommandError
from ...config.redact import redact, redact_text
from ...config.settings.environment import Environment
from ...planning.delivery.gate_evidence import Evidence, Verdict
from ...planning.delivery.gate_table import gate_table, settings_of
from ..aws.account import Account
from ..aws.calls import get
from ..aws.objects import list_objects, read_text, write_json_text
from .gate import Context, Result

FOLDER: Final = ".podwright/evidence"
"""Where evidence is kept in the project when the environment has no bucket."""


def evidence_of(context: Context, verdict: Verdict, result: Result) -> Evidence:
    """The evidence of a run that has ended, secrets taken out."""
    environment = context.environment
    settings = getattr(context.settings, context.gate.name, None)
    answers, _ = redact({"answers.json": json.dumps(result.answers, default=_plain)})
    return Evidence(
        gate=context.gate.name,
        title=context.gate.title,
        environment=environment.name,
        cluster=environment.cluster.name,
        account=context.account.id,
        region=context.account.region,
        orchestrator=environment.cluster.orchestrator,
        simulated=context.account.endpoint is not None,
        podwright=version("podwright"),
        asked={**(settings.model_dump(mode="json") if settings else {}), **context.asked},
        begun=context.begun_at,
        seconds=round(context.elapsed, 1),
        timeout_seconds=context.seconds,
        verdict=verdict,
        reason=redact_text(result.reason, Counter()),
        next_step=result.next_step,
        checks=tuple(result.checks),
        answers=json.loads(answers["answers.json"]),
    )


class Keeper:
    """Knows where evidence goes, and puts it there."""

    def __init__(self, environment: Environment, account: Account, project: Path, path: str | None) -> None:
        """`path` is `s3://BUCKET/PREFIX` or a folder; None for what the file says, else the environment's own bucket.

        Raises:
            CommandError: the place is neither.
        """
        self._account, self._name = account, environment.name
        path = path or settings_of(environment).evidence or _own_bucket(environment, account)
        if path is None:
            self.base, self._folder = "", project / FOLDER
        elif path.startswith("s3://"):
            url = urlsplit(path)
            if not url.netloc:
                raise CommandError(f"--evidence {path} names no bucket", "write s3://BUCKET/PREFIX, or a folder", 2)
            self.base, self._folder = f"s3://{url.netloc}/{url.path.strip('/')}".rstrip("/"), None
        else:
            self.base, self._folder = "", Path(path)
            if self._folder.exists() and not self._folder.is_dir():
                raise CommandError(f"--evidence {path} is a file", "write s3://BUCKET/PREFIX, or a folder", 2)

    def keep(self, evidence: Evidence) -> str:
        """Write one file, and return where it is.

        Raises:
            CommandError: it cannot be written there.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        text = evidence.model_dump_json(indent=1) + "\n"
        name = f"{self._name}/{evidence.gate}/{evidence.begun:%Y%m%dT%H%M%S.%f}Z.json"
        if self._folder is not None:
            file = self._folder / name
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            except OSError as error:
                raise CommandError(
                    f"evidence cannot be written to {file}: {error.strerror}", "name another folder"
                ) from None
            return str(file)
        bucket, _, prefix = self.base.removeprefix("s3://").partition("/")
        key = "/".join(filter(None, (prefix, name)))
        try:
            write_json_text(self._account, bucket, key, text)
        except (BotoCoreError, ClientError) as error:
            raise CommandError(
                f"evidence of {evidence.gate} ({evidence.verdict}: {evidence.reason}) cannot be written to "
                f"s3://{bucket}/{key}: {error}",
                "you need s3:PutObject there and kms:GenerateDataKey on its key; `--evidence DIR` keeps it here",
            ) from None
        return f"s3://{bucket}/{key}"

    def latest(self) -> list[tuple[Evidence, str]]:
        """The last run of each gate that left evidence here, in the order of gates, and where that is.

        Raises:
            CommandError: a file there is no evidence.
        """
        if self._folder is not None:
            paths = [str(file) for file in (self._folder / self._name).glob("*/*.json")]
        else:
            bucket, _, prefix = self.base.removeprefix("s3://").partition("/")
            below = "/".join(filter(None, (prefix, self._name)))
            paths = [f"s3://{bucket}/{item['Key']}" for item in list_objects(self._account, bucket, f"{below}/")]
        # A file's name is the time of its run.
        newest = {path.split("/")[-2]: path for path in sorted(paths)}
        return [(self._read(path), path) for gate in gate_table() if (path := newest.get(gate))]

    def _read(self, path: str) -> Evidence:
        if self._folder is not None:
            text = Path(path).read_text(encoding="utf-8")
        else:
            bucket, _, key = path.removeprefix("s3://").partition("/")
            text = read_text(self._account, bucket, key) or ""
        try:
            return Evidence.model_validate_json(text)
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"]
            raise CommandError(f"{path} is not evidence of a gate: {reason}", "move it out of there") from None


def _own_bucket(environment: Environment, account: Account) -> str | None:
    """The prefix in the environment's lifecycle bucket; None where there is no such bucket yet."""
    bucket = environment.storage.buckets.lifecycle or lifecycle_bucket_name(
        environment.name, environment.account, environment.region
    )
    # In the sandbox the deployment's account takes the place of the file's.
    if account.endpoint and not environment.storage.buckets.lifecycle:
        bucket = lifecycle_bucket_name(environment.name, account.id, environment.region)
    from botocore.exceptions import ClientError

    try:
        get(account, "s3", "head_bucket", Bucket=bucket)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            return None
    return f"s3://{bucket}/{environment.cluster.name}/evidence"


def summary(evidence: Evidence, path: str) -> Mapping[str, Any]:
    """What `--json` prints of a gate: the evidence, and where it is kept."""
    return {**evidence.model_dump(mode="json"), "evidence": path}


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
