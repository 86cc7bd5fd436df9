"""The sandbox's own services of each account, which complement moto's back-ends."""

import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from boto3.session import Session
from botocore.config import Config
from moto.core.responses import BaseResponse

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT, access_key
from ..authorization.authorization import Ledger
from ..cloudformation.providers.registry import provider_for
from ..cloudformation.service import CloudFormation
from ..eks.control_planes import Clusters, ControlPlanes, Webhooks
from ..eks.service import Eks
from ..hyperpod.cluster import Timing
from ..kubernetes.clusters import Kubernetes
from ..nodes.support import NodeBudget
from ..protocol.contents import Contents
from ..sagemaker.service import HyperPod
from ..services.event_bus import EventBus
from ..services.fsx import Fsx
from ..services.functions import Functions
from ..slurm.clusters import SlurmClusters
from ..slurm.sessions import Sessions
from ..telemetry.grafana import Grafana
from ..telemetry.grafana import Workspace as GrafanaWorkspace
from ..telemetry.prometheus_workspaces import PrometheusWorkspaces
from ..telemetry.prometheus_workspaces import Workspace as PrometheusWorkspace
from . import kubernetes_api
from .cost_tags import CostTags
from .training_job_queues import TrainingJobQueues

# Factor for the waits of Lambda handlers: the sandbox's nodes boot in seconds instead of minutes.
_HANDLER_SLEEP = 0.02
State = dict[str, Any]
# A session must create one client at a time. Clients serve several threads.
_making_client = threading.Lock()


@dataclass(frozen=True)
class Loopback:
    """boto3 clients that call the sandbox with the credentials of an account."""

    endpoint: str
    account: str

    def client(self, service: str, region: str) -> Any:
        """Return the client of a service in a region, which is created once."""
        return _client(self.endpoint, access_key(self.account), service, region)


@cache
def _client(endpoint: str, key: str, service: str, region: str) -> Any:
    # An add-on's operator takes minutes to start on a busy machine, and has its own limit.
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=3600)
    session: Any = _session(key)
    with _making_client:
        return session.client(service, region_name=region, endpoint_url=endpoint, config=config)


@cache
def _session(key: str) -> Session:
    return Session(key, "sandbox")


@dataclass(frozen=True)
class ServerSettings:
    """The sandbox's ports, folder, certificate authority and time scale."""

    port: int
    kubernetes_port: int
    directory: Path
    contents: Contents
    authority: Path
    timing: Timing
    kubernetes: Clusters
    slurm: bool
    webhook_bearer: str
    real_nodes: NodeBudget


class _Part(NamedTuple):
    """A part of the persisted state."""

    name: str
    owner: Any
    attribute: str


class SandboxAccount:
    """The services of one account that the sandbox implements."""

    def __init__(self, account: str, settings: ServerSettings):
        """Create the services. They call each other by clients of the sandbox's API."""
        self.account = account
        clients = Loopback(f"http://localhost:{settings.port}", account)
        grafana = f"localhost:{settings.kubernetes_port}"
        self.kubernetes = Kubernetes()
        webhooks = Webhooks(f"https://{grafana}", settings.authority, settings.webhook_bearer)
        self.eks = Eks(
            clients,
            self.kubernetes,
            f"https://{grafana}{kubernetes_api.prefix(account)}",
            base64.b64encode(settings.authority.read_bytes()).decode(),
            ControlPlanes(
                settings.directory / "kubernetes",
                account,
                webhooks,
                settings.kubernetes,
                settings.timing.scale,
                settings.real_nodes,
            ),
        )
        self.hyperpod = HyperPod(clients, self.eks, settings.timing)
        self.eks.update_seconds, self.eks.nodes = settings.timing.scale, self.hyperpod.kubernetes_nodes
        self.slurm = SlurmClusters(settings.directory / "slurm" / account, clients, settings.slurm)
        self.sessions = Sessions(account, clients.endpoint, self.slurm, self.hyperpod.all)
        self.fsx = Fsx(clients)
        sleep = _HANDLER_SLEEP * settings.timing.scale
        self.functions = Functions(
            clients, settings.directory / "functions", settings.contents, sleep, settings.authority
        )
        self.bus = EventBus(clients)
        self.prometheus = PrometheusWorkspaces(clients.endpoint, account)
        self.grafana = Grafana(grafana)
        self.ledger = Ledger()
        self.cloudformation = CloudFormation(clients, provider_for, self.ledger)
        self.cost_tags = CostTags(self.cloudformation)
        self.training_job_queues = TrainingJobQueues(self.cloudformation, account)

    def holds_something(self) -> bool:
        """True if the account has a stack, a cluster or a file system, which a control could concern."""
        stacks = any(region.stacks for region in list(self.cloudformation.regions.values()))
        return bool(stacks or self.eks.clusters or self.hyperpod.clusters or self.fsx.file_systems)

    def follow_slurm(self) -> None:
        """Update Slurm in all clusters from HyperPod's nodes."""
        regions = {region for region, _ in list(self.hyperpod.clusters)}
        self.slurm.follow([cluster for region in regions for cluster in self.hyperpod.all(region)])

    def collect(self) -> State:
        """Return the state to persist."""
        return {part.name: getattr(part.owner, part.attribute) for part in self._parts()}

    def restore(self, state: State) -> None:
        """Restore the persisted state."""
        for part in self._parts():
            setattr(part.owner, part.attribute, state[part.name])

    def _parts(self) -> list[_Part]:
        """The parts of the persisted state, in the order of their restoration."""
        parts = [
            ("stacks", self.cloudformation, "regions"),
            ("kubernetes", self.kubernetes, "clusters"),
            ("eks", self.eks, "clusters"),
            ("hyperpod", self.hyperpod, "clusters"),
            ("shortages", self.hyperpod, "shortages"),
            ("failing lifecycle scripts", self.hyperpod, "failing"),
            ("image releases", self.hyperpod, "images"),
            ("training plans", self.hyperpod.plans, "ledgers"),
            ("times of training plans", self.hyperpod.plans, "times"),
            ("file systems", self.fsx, "file_systems"),
            ("associations", self.fsx, "associations"),
            ("cost tags", self.cost_tags, "active"),
            ("quotas", self.hyperpod.quotas, "values"),
            ("compute quotas", self.hyperpod.schedulers, "objects"),
            ("Prometheus workspaces", self.prometheus, "regions"),
            ("Grafana workspaces", self.grafana, "regions"),
            ("service jobs", self.training_job_queues, "regions"),
        ]
        return [_Part(*part) for part in parts]


class SandboxAccounts:
    """The accounts. The sandbox creates one at its first request."""

    def __init__(self, settings: ServerSettings, finished: Callable[[], None]):
        self.settings, self.finished = settings, finished
        self._accounts: dict[str, SandboxAccount] = {}
        self._lock = threading.RLock()
        self.of(SANDBOX_ACCOUNT)

    def of(self, account: str) -> SandboxAccount:
        """Return the services of an account, which are created at the first call."""
        with self._lock:
            if account not in self._accounts:
                account_services = self._accounts[account] = SandboxAccount(account, self.settings)
                account_services.cloudformation.finished = self.finished
            return self._accounts[account]

    def known(self, account: str) -> bool:
        """Return True if an account has had a request."""
        return account in self._accounts

    def all(self) -> list[SandboxAccount]:
        """Return the services of all accounts that have had a request."""
        return list(self._accounts.values())

    def collect(self) -> State:
        """Return the state to persist, by account."""
        return {account: account_services.collect() for account, account_services in list(self._accounts.items())}

    def restore(self, state: State) -> None:
        """Restore the persisted state."""
        for account, retained in state.items():
            self.of(account).restore(retained)

    def cluster_arn(self, account: str, region: str, name: str) -> str | None:
        """Return the ARN of a HyperPod cluster by its name; None without one."""
        clusters = self.of(account).hyperpod.all(region)
        return next((cluster.arn for cluster in clusters if cluster.name == name), None)

    def prometheus_workspace(self, identifier: str) -> PrometheusWorkspace | None:
        """A workspace of any account; its id says which."""
        result = (account_services.prometheus.anywhere(identifier) for account_services in self.all())
        return next((workspace for workspace in result if workspace), None)

    def with_workspace(self, identifier: str) -> list[SandboxAccount]:
        """Return the account of a Prometheus workspace; None for an unknown workspace."""
        return [account_services for account_services in self.all() if account_services.prometheus.anywhere(identifier)]

    def grafana_workspace(self, identifier: str) -> GrafanaWorkspace | None:
        """A workspace of any account; its id says which."""
        result = (account_services.grafana.anywhere(identifier) for account_services in self.all())
        return next((workspace for workspace in result if workspace), None)


class ByAccount(dict[str, Any]):
    """A service of each account, which `get` returns from the account's services."""

    def __init__(self, clusters: SandboxAccounts, get: Callable[[SandboxAccount], Any]):
        super().__init__()
        self.accounts, self.get_from = clusters, get

    def __missing__(self, account: str) -> Any:
        return self.get_from(self.accounts.of(account))


class OfCaller:
    """Attribute of a response class with the service of the account whose credentials a request has.

    `get` picks the service from the account's world.
    """

    def __init__(self, clusters: SandboxAccounts, get: Callable[[SandboxAccount], Any]):
        self.accounts, self.get = clusters, get

    def __get__(self, response: BaseResponse | None, owner: type) -> Any:
        """Return the caller's service; this object if moto reads the attribute of the class."""
        return self if response is None else self.get(self.accounts.of(response.current_account))
