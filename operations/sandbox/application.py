"""The sandbox's AWS: moto's services in one WSGI application; CloudFormation, EKS and HyperPod are ours."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import moto.cloudformation.urls
import moto.eks.urls
import moto.sagemaker.urls
from boto3.session import Session
from botocore.config import Config
from moto.core.config import default_user_config
from moto.iam.access_control import PermissionResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeBucket

from .cloudformation import CloudFormation
from .cloudformation_api import CloudFormationResponse
from .eks import Eks, EksResponse
from .hyperpod import Timing
from .hyperpod_api import HyperPod, HyperPodResponse
from .providers.registry import provider_for

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


@dataclass
class Loopback:
    """boto3 clients that call the sandbox itself."""

    endpoint: str

    def client(self, service: str, region: str) -> Any:
        """The client of a service in a region; one is made and kept for each."""
        return _client(self.endpoint, service, region)


@cache
def _client(endpoint: str, service: str, region: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=60)
    return Session("sandbox", "sandbox", region_name=region).client(service, endpoint_url=endpoint, config=config)


class Sandbox:
    """Everything that the sandbox knows beside moto's backends."""

    def __init__(self, endpoint: str, timing: Timing):
        self.endpoint = endpoint
        clients = Loopback(endpoint)
        self.cloudformation = CloudFormation(clients, provider_for)
        self.eks = Eks(clients, endpoint)
        self.hyperpod = HyperPod(clients, self.eks, timing)

    def mount(self) -> Callable[[Environ, StartResponse], Iterable[bytes]]:
        """The WSGI application; the services of ours take the place of moto's."""
        CloudFormationResponse.service = self.cloudformation
        EksResponse.service = self.eks
        HyperPodResponse.service = self.hyperpod
        # Roles may attach AWS's managed policies only if AWS has them.
        default_user_config["iam"] = {"load_aws_managed_policies": True}
        # moto applies a bucket policy without its conditions, so "deny without TLS" would deny everything.
        FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
        moto.cloudformation.urls.url_paths = {"{0}/$": CloudFormationResponse.dispatch}
        moto.eks.urls.url_paths = {"{0}/(?P<path>.*)$": EksResponse.dispatch}
        moto.sagemaker.urls.url_paths = {"{0}/$": HyperPodResponse.dispatch}
        return DomainDispatcherApplication(create_backend_app)
