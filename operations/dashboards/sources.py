"""Where the numbers of a preview come from: a made-up cluster, a server at an address, or the own workspace."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.monitoring.collected import names_in
from ...planning.monitoring.dashboards.panel import Dashboard
from ...planning.monitoring.recordings import INTERVAL_SECONDS, recording_groups
from ...planning.monitoring.synthetic.day import made_up_day, with_failed_nodes
from ...planning.monitoring.synthetic.faults import FAULTS, Fault, with_faults
from ...planning.monitoring.synthetic.metrics import history as made_up_metrics
from ..aws.account import Account
from ..aws.deployed import physical_id
from ..programs.prometheus import Prometheus, QueryError, history
from .answers import Span

_STEP: Final = 150.0
"""Seconds between two samples of a made-up cluster: two of them are within the shortest rate that is asked for."""


@contextmanager
def made_up(
    environment: Environment,
    settings: Observability,
    pages: Sequence[Dashboard],
    *,
    span: Span,
    faults: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """A Prometheus with a made-up history of the environment's cluster, and what the recording rules make of it.

    Faults begin when two thirds of the time are over, each on another node with GPUs while there are any. Where none is
    named a node is replaced, and another one rebooted.

    Raises:
        CommandError: a fault that is not known, no node to have it, or no Prometheus on this machine.
    """
    start, end = span.start, span.end
    cluster = made_up_day(environment, start, end, step=_STEP)
    nodes = [node for node in cluster.nodes if node.gpus] or cluster.nodes
    if unknown := [fault for fault in faults if fault not in FAULTS]:
        raise CommandError(f"no fault is called {unknown[0]}", f"there are {', '.join(FAULTS)}", code=2)
    if faults and not nodes:
        raise CommandError(f"{environment.name} has no nodes that a fault could be on")
    begin = start + (end - start) * 2 / 3
    put = [Fault(kind=kind, node=nodes[at % len(nodes)].name, start=begin) for at, kind in enumerate(faults)]
    cluster = with_faults(cluster, *put) if put else with_failed_nodes(cluster)
    groups = recording_groups(cluster.cluster, settings.scrape_seconds)
    rules = list(chain.from_iterable(group["rules"] for group in groups))
    panels = chain.from_iterable(page.panels for page in pages)
    queries = chain.from_iterable(panel.queries.values() for panel in panels)
    asked = set(chain.from_iterable(map(names_in, chain(queries, (rule["expr"] for rule in rules)))))
    with history(made_up_metrics(cluster, names=asked), rules, start=start, end=end, step=INTERVAL_SECONDS) as server:
        yield server


@dataclass(frozen=True)
class Workspace(Prometheus):
    """A workspace of Amazon Managed Service for Prometheus; each question is signed with the user's credentials."""

    account: Account

    def _ask(self, kind: str, values: Any) -> list[dict[str, Any]]:
        """Query with signed requests, as Managed Prometheus takes no others. Raises CommandError or QueryError."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        url, body = f"{self.url}/api/v1/{kind}", urlencode(values)
        credentials = self.account.session().get_credentials()
        if credentials is None:
            raise CommandError("there are no AWS credentials to ask the workspace with", "sign in, and run this again")
        asked = AWSRequest("POST", url, {"Content-Type": "application/x-www-form-urlencoded"}, body)
        SigV4Auth(credentials, "aps", self.account.region).add_auth(asked)
        try:
            with urlopen(Request(url, body.encode(), dict(asked.headers.items()), method="POST")) as answer:
                return json.load(answer)["data"]["result"]
        except HTTPError as error:
            message = error.read().decode(errors="replace")
            if error.code == 403:
                raise CommandError(
                    f"you may not ask {self.url}: {message}", "you need aps:QueryMetrics on the workspace"
                ) from None
            raise QueryError(_words(message)) from None


def workspace(environment: Environment, settings: Observability, account: Account) -> Workspace:
    """The workspace that the environment's metrics go to. Raises CommandError when it is not deployed."""
    result = settings.workspace or physical_id(account, f"{environment.name}-observability", "AWS::APS::Workspace")
    host = account.endpoint or f"https://aps-workspaces.{account.region}.amazonaws.com"
    # Its physical id in CloudFormation is its ARN.
    return Workspace(f"{host}/workspaces/{result.rpartition('/')[2]}", account)


def _words(body: str) -> str:
    """What an answer says of an error; all of it where it is not Prometheus's form."""
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body
