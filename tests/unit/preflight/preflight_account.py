"""An account in memory for preflight's checks: clients whose requests and answers are held to botocore's shapes.

`World()` has nothing wrong for the environments below; a test changes one answer and looks.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator

from podwright.config.catalog.instance_types import catalog
from podwright.config.loading.artifacts import LOCK
from podwright.config.loading.load import LoadedEnvironment
from podwright.config.loading.source import parse_source
from podwright.operations.aws.calls import Reader
from podwright.operations.preflight.check import CHECKS, Ask, Outcome, run_checks
from podwright.operations.preflight.quota_codes import Codes
from preflight_answers import ACCOUNT, GRAFANA, GRAFANA_ROLE, KEY, NOW, PLAN, SECRET, TOPIC, WORKSPACE, answers
from rule_pages import loaded, overlaid

for module in ("account", "place", "network", "quota", "plan", "storage", "eks", "image"):
    import_module(f"podwright.operations.preflight.{module}_checks")

NEW = """
storage: {lustre: {zone: usw2-az2, efa: true, throughput: 500}, home: {openzfs: {}}}
training_plans: {q2: {zone: usw2-az2, instance_type: ml.p5en.48xlarge, count: 4, days: 28, start_after: 2026-12-01}}
instance_groups: {spot: {instance_type: ml.g5.48xlarge, count: 2, zone: usw2-az3, capacity: spot}}
tags: {team: platform}
"""
"""Everything made by podwright."""

ADOPTED = f"""
iam: {{permissions_boundary: "arn:aws:iam::{ACCOUNT}:policy/Boundary"}}
network:
  vpc:
    id: vpc-11111111
    cidr: 10.16.0.0/16
    security_group: sg-11111111
    subnets:
      usw2-az2: {{nodes: subnet-11111111, nodes_cidr: 10.16.0.0/20, control_plane: subnet-33333333}}
      usw2-az3: {{nodes: subnet-22222222, nodes_cidr: 10.16.16.0/20}}
storage:
  kms_key: {KEY}
  buckets: {{lifecycle: sagemaker-scripts, checkpoints: checkpoints}}
  home:
    openzfs: {{deployment: multi_az_1, zone: usw2-az2, standby_zone: usw2-az3, route_tables: [rtb-11111111]}}
  lustre:
    existing: {{id: fs-11111111, mount_name: fsxmount, security_group: sg-22222222}}
    repositories: [{{path: /datasets, s3: s3://datasets}}]
    backups: null
cluster:
  eks:
    existing: {{name: shared, security_group: sg-33333333, kubectl_role: "arn:aws:iam::{ACCOUNT}:role/Kubectl"}}
training_plans: {{q1: {{arn: "{PLAN}", zone: usw2-az2, count: 8}}}}
instance_groups:
  h200:
    capacity: {{training_plan: q1}}
    volumes: [{{size_gib: 500}}]
    image_id: ami-11111111
    image_release: 1.2.3
    role: arn:aws:iam::{ACCOUNT}:role/Nodes
    lifecycle: {{source: s3://sagemaker-own/scripts, on_create: on_create.sh}}
    patching: {{strategy: when_idle, rollback_alarms: [too-hot]}}
governance: {{teams: {{research: {{quota: {{h200: 2}}}}}}}}
observability: {{workspace: {WORKSPACE}, grafana: true}}
"""
"""As much as can be adopted."""

CLOSED = f"{ADOPTED}\n".replace("network:\n", "network:\n  endpoints: closed\n").replace(
    "grafana: true", f"grafana: {{existing: {{id: {GRAFANA}, role: '{GRAFANA_ROLE}'}}}}"
)

SLURM = f"""
cluster:
  eks: null
  orchestrator: slurm
  slurm:
    failover_topic: {TOPIC}
    accounting: {{existing: {{endpoint: db.example.com, secret: "{SECRET}"}}}}
instance_groups: {{controller: {{instance_type: ml.m5.4xlarge, count: 1, zone: usw2-az2}}}}
"""


class PreflightAccount:
    """Clients of the account. `calls` are the operations that were called, each with its check (the thread)."""

    def __init__(self, changed: Mapping[tuple[str, str], Any] | None = None) -> None:
        self.answers = answers() | dict(changed or {})
        self.calls: set[tuple[str, str, str]] = set()

    def client(self, service: str) -> "Client":
        """A client with the operations that checks call."""
        return Client(self, service)

    def answer(self, service: str, operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The pages of an answer, request and answer held to the service's model."""
        self.calls.add((threading.current_thread().name, service, operation))
        shapes = operations(service)[operation]
        assert not (report := ParamValidator().validate(request, shapes.input_shape).generate_report()), report
        retained: Any = self.answers[service, operation]
        answer: Any = retained(**request) if callable(retained) else retained
        if isinstance(answer, Exception):
            raise answer
        pages: list[dict[str, Any]] = answer if isinstance(answer, list) else [answer]
        for page in pages:
            assert not (report := ParamValidator().validate(page, shapes.output_shape).generate_report()), report
        return _parsed(deepcopy(pages))


class Client:
    """A client of one service, with paginators."""

    def __init__(self, preflight_account: PreflightAccount, service: str) -> None:
        self._account, self._service = preflight_account, service

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        return lambda **request: self._account.answer(self._service, operation, request)[0]

    def get_paginator(self, operation: str) -> Any:
        """Pages of an operation that has them."""
        model: Any = botocore.session.get_session().get_paginator_model(self._service)
        model.get_paginator(operations(self._service)[operation].name)

        def paginate(**request: Any) -> Iterator[dict[str, Any]]:
            yield from self._account.answer(self._service, operation, request)

        return type("Paginator", (), {"paginate": staticmethod(paginate)})


@cache
def operations(service: str) -> dict[str, Any]:
    """The operations of a service as boto3 calls them."""
    model: Any = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


def _parsed(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Policies of roles as boto3 hands them out: parsed."""
    for page in pages:
        if "Role" in page:
            page["Role"]["AssumeRolePolicyDocument"] = json.loads(page["Role"]["AssumeRolePolicyDocument"])
    return pages


def examine(
    preflight_account: PreflightAccount,
    piece: str,
    *only: str,
    more: str = "{}",
    groups: tuple[str, ...] = (),
    lock: str = "",
    codes: Codes | None = None,
    observed: Codes | None = None,
    zones: dict[str, tuple[str, ...]] | None = None,
    seconds: float = 60,
) -> list[Outcome]:
    """What the checks (or `only` some) say of an environment in a world; `groups` are the APIs of its Kubernetes.

    `lock` is the project's artifacts.lock; `codes` of quotas are those of earlier runs, `observed` takes those of
    this one.
    """
    example = environment(piece, more)
    with TemporaryDirectory() as folder:
        (Path(folder) / LOCK).write_text(lock or "{}")
        ask = Ask(
            environment=example.environment,
            account=ACCOUNT,
            types=catalog(),
            aws=Reader(preflight_account.client),
            project=Path(folder),
            now=NOW,
            api_groups=lambda cluster: list(groups),
            quota_codes=codes or {},
            endpoint_zones={} if zones is None else zones,
            seen_codes={} if observed is None else observed,
        )
        return run_checks(ask, example.source, seconds, set(CHECKS) - set(only or CHECKS))


@cache
def environment(piece: str, more: str = "{}") -> LoadedEnvironment:
    """The environment that pages of rules start from, with a piece laid over it, and another one over that."""
    return loaded(json.dumps(overlaid(parse_source(piece, "piece").data, parse_source(more, "more").data)))
