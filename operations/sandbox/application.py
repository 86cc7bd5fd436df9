"""The sandbox's AWS: moto's services in one WSGI application, some of them replaced by ours."""

import base64
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import moto.ce.urls
import moto.cloudformation.urls
import moto.eks.urls
import moto.fsx.urls
import moto.iam.urls
import moto.logs.urls
import moto.sagemaker.urls
import moto.servicequotas.urls
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.core.config import default_user_config
from moto.iam.access_control import PermissionResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.models import FakeBucket
from werkzeug.wrappers import Response

from . import (
    capacity,
    hyperpod_faults,
    image_releases,
    kubernetes_api,
    quotas,
    responses,
    training_plan_knobs,
    workspace_queries,
)
from .cloudformation import CloudFormation
from .cloudformation_api import CloudFormationResponse
from .cost_tags import CostTags, CostTagsResponse
from .eks import Eks
from .eks_api import EksResponse
from .event_bus import EventBus
from .failures import backend_app, readable
from .fsx import Fsx, FsxResponse
from .functions import Functions
from .grafana import PREFIX as GRAFANA
from .grafana import Grafana
from .grafana_http import GrafanaHttp
from .hyperpod import Timing
from .hyperpod_api import HyperPodResponse
from .hyperpod_service import HyperPod
from .kubernetes import Kubernetes
from .kubernetes_api import KubernetesApi
from .log_groups import KeyedLogs
from .permissions import SimulatingIam
from .persistence import Snapshots, State
from .prometheus_workspaces import PrometheusWorkspaces
from .providers.custom import CustomResource
from .providers.kubernetes import KubectlResource
from .providers.registry import is_recorded_only, provider_for
from .quotas import QuotasResponse
from .rest_service import RestService, scope_of
from .server import RECORDED_TYPES
from .tls import certificates
from .workspace_queries import WorkspaceQueries

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
# How much shorter a handler's own waiting is than in AWS; the sandbox's nodes boot in seconds instead of minutes.
_HANDLER_SLEEP = 0.02
_SAVE_SECONDS = 2.0
_TICK_SECONDS = 0.2
_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True)
class Loopback:
    """boto3 clients that call the sandbox itself."""

    endpoint: str

    def client(self, service: str, region: str) -> Any:
        """The client of a service in a region; one is made and kept for each."""
        return _client(self.endpoint, service, region)


@cache
def _client(endpoint: str, service: str, region: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=60)
    session: Any = Session("sandbox", "sandbox", region_name=region)
    return session.client(service, endpoint_url=endpoint, config=config)


class Sandbox:
    """Everything that the sandbox knows beside moto's backends.

    `port` serves AWS over HTTP, `kubernetes_port` the Kubernetes API over HTTPS; `directory` is the state directory.
    """

    def __init__(self, port: int, kubernetes_port: int, directory: Path, timing: Timing):
        clients = Loopback(f"http://localhost:{port}")
        authority, self.certificate, self.key = certificates(directory / "tls")
        self.kubernetes = Kubernetes()
        self.eks = Eks(
            clients,
            self.kubernetes,
            f"https://localhost:{kubernetes_port}{kubernetes_api.PREFIX}",
            base64.b64encode(authority.read_bytes()).decode(),
        )
        self.hyperpod = HyperPod(clients, self.eks, timing)
        self.eks.update_seconds, self.eks.nodes = timing.scale, self.hyperpod.kubernetes_nodes
        self.fsx = Fsx(clients)
        self.functions = Functions(clients, directory / "functions", _HANDLER_SLEEP * timing.scale, authority)
        self.bus = EventBus(clients)
        self.prometheus = PrometheusWorkspaces(clients.endpoint)
        self.queries = WorkspaceQueries(self.prometheus, directory / "prometheus")
        self.grafana = Grafana(f"localhost:{kubernetes_port}")
        self.cloudformation = CloudFormation(clients, provider_for)
        self.cost_tags = CostTags(self.cloudformation)
        self.snapshots = Snapshots(directory, self._collect, self._restore)
        self._changed = threading.Event()
        self.cloudformation.finished = self._changed.set

    def _collect(self) -> State:
        return {name: getattr(service, attribute) for name, service, attribute in self._parts()}

    def _restore(self, state: State) -> None:
        for name, service, attribute in self._parts():
            setattr(service, attribute, state[name])

    def _parts(self) -> list[tuple[str, Any, str]]:
        return [
            ("stacks", self.cloudformation, "regions"),
            ("kubernetes", self.kubernetes, "stores"),
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
        ]

    def keep_saving(self) -> None:
        """Save in the background whenever something changed."""

        def loop() -> None:
            while True:
                self._changed.wait()
                time.sleep(_SAVE_SECONDS)
                self._changed.clear()
                try:
                    self.snapshots.save()
                except RuntimeError as error:
                    logging.warning("the state changed while it was saved, which is tried again: %s", error)
                    self._changed.set()

        threading.Thread(target=loop, daemon=True, name="snapshots").start()

    def keep_time(self) -> None:
        """Let time pass in the background for what is to be told without being asked."""

        def loop() -> None:
            while True:
                time.sleep(_TICK_SECONDS)
                try:
                    self.bus.tick()
                    if self.hyperpod.tick(self.bus):
                        self._changed.set()
                except ClientError as error:
                    logging.warning("the clock of HyperPod goes on after: %s", error)

        threading.Thread(target=loop, daemon=True, name="clock").start()

    def close(self) -> None:
        """Let operations end, as far as they do so soon, and save."""
        self.cloudformation.wait(_PATIENCE_SECONDS)
        self.queries.close()
        self.snapshots.save()

    def mount(self) -> tuple[Application, Application]:
        """The WSGI applications of AWS and of Kubernetes; the services of ours take the place of moto's."""
        CloudFormationResponse.service = self.cloudformation
        EksResponse.service = self.eks
        FsxResponse.service = self.fsx
        HyperPodResponse.service = self.hyperpod
        CostTagsResponse.service, QuotasResponse.service = self.cost_tags, self.hyperpod.quotas
        CustomResource.functions = self.functions
        KubectlResource.kubernetes, KubectlResource.eks = self.kubernetes, self.eks
        self.functions.mount()
        # Roles may attach AWS's managed policies only if AWS has them.
        default_user_config["iam"] = {"load_aws_managed_policies": True}
        # moto applies a bucket policy without its conditions, so "deny without TLS" would deny everything.
        FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
        moto.cloudformation.urls.url_paths = {"{0}/$": CloudFormationResponse.dispatch}
        moto.eks.urls.url_paths = {"{0}/(?P<path>.*)$": EksResponse.dispatch}
        moto.fsx.urls.url_paths = {"{0}/$": FsxResponse.dispatch}
        moto.ce.urls.url_paths = {"{0}/$": CostTagsResponse.dispatch}
        moto.iam.urls.url_paths = {"{0}/$": SimulatingIam.dispatch}
        moto.logs.urls.url_paths = {"{0}/$": KeyedLogs.dispatch}
        moto.servicequotas.urls.url_paths = {"{0}/$": QuotasResponse.dispatch}
        moto.sagemaker.urls.url_paths = {"{0}/$": HyperPodResponse.dispatch}
        services = readable(DomainDispatcherApplication(backend_app))
        own = {"aps": RestService("amp", self.prometheus), "grafana": RestService("grafana", self.grafana)}
        kubernetes, grafana = KubernetesApi(self.kubernetes, self.eks, self.hyperpod), GrafanaHttp(self.grafana)

        def aws(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path.startswith(responses.PREFIX):
                return responses.RESPONSES(environ, start_response)
            if path == RECORDED_TYPES:
                asked = parse_qs(environ["QUERY_STRING"]).get("type", [])
                recorded = json.dumps([name for name in asked if is_recorded_only(name)])
                return Response(recorded, content_type="application/json")(environ, start_response)
            if path == capacity.PATH:
                return capacity.serve(self.hyperpod, environ, start_response)
            if path in (training_plan_knobs.PATH, quotas.PATH, hyperpod_faults.PATH, image_releases.PATH):
                self._changed.set()
                if path == image_releases.PATH:
                    return image_releases.serve(self.hyperpod, environ, start_response)
                if path == hyperpod_faults.PATH:
                    return hyperpod_faults.serve(self.hyperpod, environ, start_response)
                if path == quotas.PATH:
                    return self.hyperpod.quotas.serve(environ, start_response)
                return training_plan_knobs.serve(self.hyperpod.plans, environ, start_response)
            if workspace_queries.PATH.fullmatch(path):
                return self.queries(environ, start_response)
            reading = _only_reads(environ)
            try:
                return own.get(scope_of(environ)[1], services)(environ, start_response)
            finally:
                if not reading:
                    self._changed.set()

        def secured(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"].startswith(GRAFANA):
                self._changed.set()
                return grafana(environ, start_response)
            return kubernetes(environ, start_response)

        return aws, secured


def _only_reads(environ: Environ) -> bool:
    """Whether a request asks only, by its method or by the name of its operation."""
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return True
    action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    if not action and environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        action = parse_qs(body.decode(errors="replace")).get("Action", [""])[0]
    return action.startswith(("Describe", "List", "Get"))
