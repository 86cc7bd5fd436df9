"""Taking nodes out of work without replacing them, and giving them back.

On EKS a taint keeps new pods away and a label shows it; on Slurm the node is drained. What runs goes on. Who did it,
when and why lies in the bucket of lifecycle scripts, where `status`, `doctor` and the report read it with either
orchestrator, and on EKS in annotations of the node too.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...config.catalog.names import lifecycle_bucket_name, quarantine_prefix
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.quarantine import MARK, MARKED, annotations, record, record_key
from ..aws.account import Account
from ..aws.calls import change, get
from ..aws.clusters import Node
from ..aws.objects import list_objects, read_text, write_json_text
from ..aws.session import NotConnected
from ..gates.slurm import Slurm
from ..jobs.slurm_jobs import Question, is_slurm
from ..kubernetes.in_vpc import kubectl_of
from ..kubernetes.kubectl import Refused
from .members import slurm_names

# Slurm's own state file takes a reason of any length, and `sinfo -R` shows the first words.
_SLURM_REASON: Final = "podwright quarantine"


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a node takes no work."""

    node: str
    """Instance id."""
    reason: str
    by: str
    """ARN of who did it, or of the function that did it by rule."""
    since: str
    """In ISO 8601."""

    def __str__(self) -> str:
        return f"in quarantine since {self.since} by {self.by.rpartition('/')[2]}: {self.reason}"


def quarantines(environment: Environment, account: Account) -> dict[str, Quarantine]:
    """The nodes in quarantine by instance id, those that are gone since included.

    Raises:
        CommandError: an object in a record's position is none.
    """
    bucket, prefix = _place(environment, account)
    result: dict[str, Quarantine] = {}
    for item in list_objects(account, bucket, f"{prefix}/"):
        text = read_text(account, bucket, item["Key"])
        if text is None:
            continue  # Released since the list was made.
        try:
            found = Quarantine(**json.loads(text))
        except (TypeError, ValueError) as error:
            where = f"s3://{bucket}/{item['Key']}"
            raise CommandError(
                f"{where} is not the record of a quarantine: {error}", "look who else writes there"
            ) from None
        result[found.node] = found
    return result


def quarantine(
    environment: Environment, account: Account, project: Path, nodes: Sequence[Node], reason: str
) -> list[Quarantine]:
    """Take nodes out of work; what runs on them goes on. Repeated, it changes the reason.

    Raises:
        CommandError: Kubernetes or Slurm does not take it.
    """
    by = get(account, "sts", "get_caller_identity")["Arn"]
    since = datetime.now(UTC).isoformat(timespec="seconds")
    if is_slurm(environment):
        text = shlex.quote(f"{_SLURM_REASON}: {reason} ({by})")
        _on_slurm(environment, account, nodes, f"state=drain reason={text}")
    else:
        _on_kubernetes(
            environment, account, project, nodes, f"{MARK}={MARKED}:NoSchedule", MARKED, annotations(reason, by, since)
        )
    bucket, prefix = _place(environment, account)
    for node in nodes:
        text = json.dumps(record(node.id, reason, by, since), indent=2) + "\n"
        write_json_text(account, bucket, record_key(prefix, node.id), text)
    return [Quarantine(node.id, reason, by, since) for node in nodes]


def release(environment: Environment, account: Account, project: Path, nodes: Sequence[Node]) -> None:
    """Give nodes work again. One that is in no quarantine stays as it is.

    Raises:
        CommandError: Kubernetes or Slurm does not take it.
    """
    if is_slurm(environment):
        _on_slurm(environment, account, nodes, "state=resume")
    else:
        _on_kubernetes(environment, account, project, nodes, f"{MARK}-", None, dict.fromkeys(annotations("", "", "")))
    forget(environment, account, [node.id for node in nodes])


def forget(environment: Environment, account: Account, instances: Sequence[str]) -> None:
    """Remove the records of nodes, as of those that are gone."""
    bucket, prefix = _place(environment, account)
    for instance in instances:
        change(account, "s3", "delete_object", Bucket=bucket, Key=record_key(prefix, instance))


def _place(environment: Environment, account: Account) -> tuple[str, str]:
    own = environment.storage.buckets.lifecycle
    bucket = own or lifecycle_bucket_name(environment.name, account.id, environment.region)
    return bucket, quarantine_prefix(environment.cluster.name)


def _on_kubernetes(
    environment: Environment,
    account: Account,
    project: Path,
    nodes: Sequence[Node],
    taint: str,
    label: str | None,
    notes: Mapping[str, str | None],
) -> None:
    """Set or, where a value is None, remove annotations, label and taint, in this order: the taint is what counts."""
    kubectl, names = kubectl_of(project, environment, account), [node.kubernetes_name for node in nodes]
    try:
        kubectl.run("annotate", "--overwrite", "nodes", *names, *_pairs(notes))
        kubectl.run("label", "--overwrite", "nodes", *names, *_pairs({MARK: label}))
        kubectl.run("taint", "--overwrite", "nodes", *names, taint)
    except Refused as refused:
        # A taint that is not there cannot be removed, and then nothing is left to do.
        if not (taint.endswith("-") and "not found" in str(refused) and "taint" in str(refused)):
            raise CommandError(f"Kubernetes does not take it: {refused}", "nothing else was changed") from None


def _pairs(values: Mapping[str, str | None]) -> list[str]:
    return [f"{key}-" if value is None else f"{key}={value}" for key, value in values.items()]


def _on_slurm(environment: Environment, account: Account, nodes: Sequence[Node], change: str) -> None:
    names = ",".join(slurm_names(environment, account, nodes).values())
    try:
        Slurm(Question(account, environment)).run(f"scontrol update nodename={names} {change}")
    except NotConnected:
        # The sandbox's nodes run no Slurm where Debian's is not installed; there is nothing to be drained.
        if not account.endpoint:
            raise
