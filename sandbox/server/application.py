"""The sandbox's AWS: a WSGI application with moto's services, some of which podwright's replace."""

from . import moto_imports  # noqa: F401

# isort: split
import io
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import moto.ce.urls
import moto.cloudformation.urls
import moto.ec2.urls
import moto.eks.urls
import moto.fsx.urls
import moto.iam.urls
import moto.logs.urls
import moto.sagemaker.urls
import moto.servicequotas.urls
import moto.ssm.urls
from moto.core.config import default_user_config
from moto.iam.access_control import PermissionResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.models import FakeBucket
from werkzeug.wrappers import Response

from ...config.catalog.sandbox_account import RECORDED_TYPES
from ..authorization import authorization
from ..cloudformation import responses
from ..cloudformation.api import CloudFormationResponse
from ..cloudformation.providers.custom import CustomResource
from ..cloudformation.providers.kubernetes import KubectlResource
from ..cloudformation.providers.registry import is_recorded_only
from ..eks.api import EksResponse
from ..eks.authentication import AccessWebhooks
from ..eks.control_planes import Clusters
from ..eks.webhook_files import PREFIX as ACCESS_WEBHOOKS
from ..eks.webhook_files import bearer_in
from ..hyperpod.cluster import Timing
from ..kubernetes.certificates import Authority
from ..nodes.support import NodeBudget
from ..protocol import accounts
from ..protocol.contents import Contents
from ..protocol.failures import backend_app, readable
from ..protocol.json_service import JsonService, scope_of
from ..sagemaker.hyperpod_api import HyperPodResponse
from ..services import buckets, functions, zones
from ..services.ec2 import Ec2
from ..services.fsx import FsxResponse
from ..services.log_groups import KeyedLogs
from ..services.permissions import SimulatingIam
from ..services.price_lists import PriceLists
from ..services.quotas import QuotasResponse
from ..slurm import sessions
from ..slurm.sessions import SessionsResponse
from ..telemetry import feed as metric_feed
from ..telemetry import workspace_queries
from ..telemetry.grafana import PREFIX as GRAFANA
from ..telemetry.grafana import Grafana
from ..telemetry.grafana_http import GrafanaHttp
from ..telemetry.prometheus_workspaces import PrometheusWorkspaces
from ..telemetry.workspace_queries import WorkspaceQueries
from .account_services import ByAccount, OfCaller, SandboxAccount, SandboxAccounts, ServerSettings
from .controls import Controls, is_own
from .cost_tags import CostTagsResponse
from .kubernetes_api import KubernetesApi
from .persistence import Snapshots
from .training_job_queues import TrainingJobQueues

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
_SAVE_SECONDS = 2.0
# Events are sent without a request, so a thread looks for new ones.
_TICK_SECONDS = 0.2
_FOLLOW_SECONDS = 1.0
_PATIENCE_SECONDS = 15.0
# A host name contains a service and a region.
_HOSTS = 1024


class Sandbox:
    """The sandbox's state outside of moto's back-ends.

    `port` serves AWS over HTTP, `kubernetes_port` the Kubernetes API over HTTPS; `directory` is the state directory.
    `kubernetes` is the kind of new clusters. `slurm` says whether clusters of Slurm have a real one where this machine
    can run it. `real_nodes` is the most that each EKS cluster has.
    """

    def __init__(
        self,
        port: int,
        kubernetes_port: int,
        directory: Path,
        timing: Timing,
        kubernetes: Clusters,
        slurm: bool = False,
        real_nodes: int = 0,
    ):
        """Start without state. A snapshot or requests add it."""
        authority = Authority.open(directory / "tls")
        self.server = authority.server("api")
        self.webhook_bearer = bearer_in(authority.folder)
        self.contents = Contents(directory / "contents")
        self._changed = threading.Event()
        self._asked = time.monotonic()
        self.accounts_by_id = SandboxAccounts(
            ServerSettings(
                port,
                kubernetes_port,
                directory,
                self.contents,
                authority.file,
                timing,
                kubernetes,
                slurm,
                self.webhook_bearer,
                NodeBudget(real_nodes),
            ),
            self._changed.set,
        )
        self.queries = WorkspaceQueries(
            self.accounts_by_id.prometheus_workspace, f"http://localhost:{port}", directory / "prometheus"
        )
        self.snapshots = Snapshots(directory, self.contents, self.accounts_by_id.collect, self.accounts_by_id.restore)

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last request. Those of Prometheus for metrics do not count, since they never stop."""
        return time.monotonic() - self._asked

    def resume(self) -> None:
        """End the operations that a stop of the sandbox interrupted."""
        for account_services in self.accounts_by_id.all():
            account_services.cloudformation.resume()

    def start_clusters(self) -> list[str]:
        """Start the clusters' control planes, and wait for them. Returns the reasons of those that did not start."""
        return [reason for services in self.accounts_by_id.all() for reason in services.eks.resume()]

    def keep_saving(self) -> None:
        """Save changes in the background, at most for a tenth of the time."""

        def loop() -> None:
            took = 0.0
            while True:
                self._changed.wait()
                time.sleep(max(_SAVE_SECONDS, 9 * took))
                self._changed.clear()
                started = time.monotonic()
                try:
                    self.snapshots.save()
                    took = time.monotonic() - started
                except (RuntimeError, OSError) as error:
                    # The state changed meanwhile, or the disk is full.
                    logging.warning("the state could not be saved, which is tried again: %s", error)
                    self._changed.set()

        threading.Thread(target=loop, daemon=True, name="snapshots").start()

    def keep_time(self) -> None:
        """Advance operations in the background that continue without a request."""

        def loop() -> None:
            while True:
                time.sleep(_TICK_SECONDS)
                self.tick()

        threading.Thread(target=loop, daemon=True, name="clock").start()

    def tick(self) -> None:
        """Send the due events and continue the repairs of each account."""
        for account_services in self.accounts_by_id.all():
            try:
                account_services.bus.tick()
                if account_services.hyperpod.tick(account_services.bus):
                    self._changed.set()
            except Exception:
                # A call to the sandbox itself can time out on a busy machine. Without this clock no repair ends, and
                # an error in one account does not stop the others.
                logging.exception("the clock of account %s continues after", account_services.account)

    def keep_nodes(self) -> None:
        """Update the nodes of real clusters from HyperPod's nodes in the background."""

        def loop() -> None:
            while True:
                time.sleep(_FOLLOW_SECONDS)
                for account_services in self.accounts_by_id.all():
                    try:
                        account_services.eks.control_planes.follow(account_services.hyperpod)
                    except Exception:
                        # A cluster may be deleted in the middle. Those of others are followed on.
                        logging.exception("the nodes of account %s are followed on after", account_services.account)

        threading.Thread(target=loop, daemon=True, name="nodes").start()

    def keep_slurm(self) -> None:
        """Update Slurm from HyperPod's nodes in the background."""

        def loop() -> None:
            while True:
                time.sleep(_FOLLOW_SECONDS)
                for account_services in self.accounts_by_id.all():
                    try:
                        account_services.follow_slurm()
                    except Exception:
                        # A cluster may be deleted in the middle. Those of others are followed on.
                        logging.exception("Slurm of account %s is followed on after", account_services.account)

        threading.Thread(target=loop, daemon=True, name="slurm").start()

    def close(self) -> None:
        """Wait for operations for a limited time, stop the clusters, and save."""
        for account_services in self.accounts_by_id.all():
            account_services.cloudformation.wait(_PATIENCE_SECONDS)
            account_services.eks.control_planes.stop()
            account_services.slurm.stop()
        self.queries.close()
        self.snapshots.save()

    def mount(self) -> tuple[Application, Application]:
        """Return the WSGI applications of AWS and of Kubernetes, with podwright's services in place of moto's."""
        clusters = self.accounts_by_id
        zones.mount()
        buckets.mount(self.contents)
        accounts.mount()
        responses_of: list[tuple[Any, Callable[[SandboxAccount], Any]]] = [
            (CloudFormationResponse, lambda account_services: account_services.cloudformation),
            (EksResponse, lambda account_services: account_services.eks),
            (FsxResponse, lambda account_services: account_services.fsx),
            (HyperPodResponse, lambda account_services: account_services.hyperpod),
            (CostTagsResponse, lambda account_services: account_services.cost_tags),
            (QuotasResponse, lambda account_services: account_services.hyperpod.quotas),
            (SessionsResponse, lambda account_services: account_services.sessions),
        ]
        for response, service in responses_of:
            response.service = OfCaller(clusters, service)
        CustomResource.functions = ByAccount(clusters, lambda account_services: account_services.functions)
        KubectlResource.eks = ByAccount(clusters, lambda account_services: account_services.eks)
        functions.mount(lambda account: clusters.of(account).functions)
        # The sandbox does not use Amazon's images, for which moto would create 1,300 objects in each region.
        os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
        # moto must know AWS's managed policies, which roles attach.
        default_user_config["iam"] = {"load_aws_managed_policies": True}
        # moto applies a bucket policy without its conditions, so "deny without TLS" would deny everything.
        FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
        moto.cloudformation.urls.url_paths = {"{0}/$": CloudFormationResponse.dispatch}
        moto.ec2.urls.url_paths = {"{0}/": Ec2.dispatch}
        moto.eks.urls.url_paths = {"{0}/(?P<path>.*)$": EksResponse.dispatch}
        moto.fsx.urls.url_paths = {"{0}/$": FsxResponse.dispatch}
        moto.ce.urls.url_paths = {"{0}/$": CostTagsResponse.dispatch}
        moto.iam.urls.url_paths = {"{0}/$": SimulatingIam.dispatch}
        moto.logs.urls.url_paths = {"{0}/$": KeyedLogs.dispatch}
        moto.servicequotas.urls.url_paths = {"{0}/$": QuotasResponse.dispatch}
        moto.ssm.urls.url_paths = {"{0}/$": SessionsResponse.dispatch}
        moto.sagemaker.urls.url_paths = {"{0}/$": HyperPodResponse.dispatch}
        services = readable(_Dispatcher())
        own = {
            "aps": JsonService("amp", PrometheusWorkspaces, lambda account: clusters.of(account).prometheus),
            "pricing": JsonService("pricing", PriceLists, lambda account: PriceLists()),
            "batch": JsonService("batch", TrainingJobQueues, lambda account: clusters.of(account).training_job_queues),
            "grafana": JsonService("grafana", Grafana, lambda account: clusters.of(account).grafana),
        }
        kubernetes = KubernetesApi(
            lambda account: clusters.of(account).eks, lambda account: clusters.of(account).hyperpod
        )
        webhooks = AccessWebhooks(lambda account: clusters.of(account).eks, self.webhook_bearer)
        grafana = GrafanaHttp(clusters.grafana_workspace)
        controls = Controls(clusters, self._changed.set)

        def aws(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            """Route a request to a service of podwright, or to moto."""
            path = environ["PATH_INFO"]
            if not path.startswith(metric_feed.PATH):
                self._asked = time.monotonic()
            if path.startswith(responses.PREFIX):
                return responses.RESPONSES(environ, start_response)
            if path == RECORDED_TYPES:
                asked = parse_qs(environ["QUERY_STRING"]).get("type", [])
                recorded = json.dumps([name for name in asked if is_recorded_only(name)])
                return Response(recorded, content_type="application/json")(environ, start_response)
            if path.startswith(metric_feed.PATH):
                workspace = path.removeprefix(metric_feed.PATH)
                text = "".join(
                    metric_feed.page(simulated.hyperpod, workspace) for simulated in clusters.with_workspace(workspace)
                )
                return Response(text, content_type=metric_feed.CONTENT_TYPE)(environ, start_response)
            if workspace_queries.PATH.fullmatch(path):
                return self.queries(environ, start_response)
            if path.startswith(sessions.PATH):
                account = path.removeprefix(sessions.PATH).partition("/")[0]
                return clusters.of(account).sessions.output(environ, start_response)
            if is_own(environ):
                return controls(environ, start_response)
            denied = authorization.refusal(environ, lambda account: clusters.of(account).ledger, clusters.cluster_arn)
            if denied is not None:
                return denied(environ, start_response)
            reading = _only_reads(environ)
            try:
                return own.get(scope_of(environ)[1], services)(environ, start_response)
            finally:
                if not reading:
                    self._changed.set()

        def secured(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            self._asked = time.monotonic()
            if environ["PATH_INFO"].startswith(GRAFANA):
                self._changed.set()
                return grafana(environ, start_response)
            if environ["PATH_INFO"].startswith(ACCESS_WEBHOOKS):
                return webhooks(environ, start_response)
            return kubernetes(environ, start_response)

        return aws, secured


class _Dispatcher(DomainDispatcherApplication):
    """A cache for moto's routing by host name, which lists moto's folder for each request."""

    def __init__(self) -> None:
        super().__init__(backend_app)
        self._services = lru_cache(_HOSTS)(super().get_backend_for_host)

    def get_backend_for_host(self, host: str | None) -> Any:
        """Return the service of a host name; None for an unknown one."""
        return self._services(host)


def _only_reads(environ: Environ) -> bool:
    """Return True for a request that only reads, by its method or the name of its operation."""
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return True
    action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    if not action and environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        action = parse_qs(body.decode(errors="replace")).get("Action", [""])[0]
    return action.startswith(("Describe", "List", "Get"))
