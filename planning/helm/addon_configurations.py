"""Configuration values of the EKS add-ons that an environment installs."""

from collections.abc import Mapping
from typing import Any, Final

from ...config.catalog.names import certificate_bucket_name
from ...config.settings.environment import Environment
from ...config.settings.jobs.patch import patch_of
from ...config.settings.platform import CERT_MANAGER, INFERENCE, METRICS_SERVER, SPACES, InferenceOperator
from ..kubernetes.addons import OBSERVABILITY_ADDON, installed_addons
from ..kubernetes.isolation import isolates_networks
from ..monitoring.metric_levels import addon_configuration
from .chart_values import system_placement
from .platform_values import cert_manager_values

# Source: Amazon EKS User Guide, "Restrict Pod network traffic with Kubernetes network policies", 2026-11.
NETWORK_POLICIES: Final = {"enableNetworkPolicy": "true"}
"""Configuration of the VPC CNI that obeys network policies."""
METRICS_SERVER_CONFIGURATION: Final = {"tolerations": [{"operator": "Exists"}]}
"""The metrics server may run on any node."""


def inference_configuration(settings: InferenceOperator, hyperpod_arn: str) -> dict[str, Any]:
    """Configuration of HyperPod's inference operator.

    Source: Terraform of awslabs/awsome-distributed-ai, hyperpod_inference_operator, 2026-07-23.
    """
    load_balancer = {"create": True, "roleArn": settings.load_balancer_role}
    autoscaler = {"enabled": True, "roleArn": settings.autoscaler_role}
    configuration: dict[str, Any] = {
        "executionRoleArn": settings.execution_role,
        "tlsCertificateS3Bucket": settings.tls_bucket,
        "hyperpodClusterArn": hyperpod_arn,
        "alb": {"enabled": True, "serviceAccount": load_balancer},
        "keda": {"enabled": True, "auth": {"aws": {"irsa": autoscaler}}},
    }
    if settings.gated_models_role:
        configuration["jumpstartGatedModelDownloadRoleArn"] = settings.gated_models_role
    return configuration


def spaces_configuration(session_role: str) -> dict[str, Any]:
    """Configuration of SageMaker Spaces; `session_role` is the ARN of the role of editors' sessions."""
    return {
        "jupyter-k8s": {"workspacePodWatching": {"enable": True}},
        "jupyter-k8s-aws-hyperpod": {"remoteAccess": {"enabled": True, "ssmManagedNodeRole": session_role}},
    }


def configured(own: Mapping[str, Any] | None, text: str | None) -> Mapping[str, Any] | None:
    """Configuration values of podwright's own under those of the file, YAML text; None where neither says any."""
    stated = patch_of(text) if text else None
    return _laid_over(own, stated) if own and stated else (stated or own)


def _laid_over(own: Mapping[str, Any], stated: Mapping[str, Any]) -> Mapping[str, Any]:
    both = {name: (own[name], stated[name]) for name in own.keys() & stated.keys()}
    nested = {
        name: _laid_over(mine, yours)
        for name, (mine, yours) in both.items()
        if isinstance(mine, Mapping) and isinstance(yours, Mapping)
    }
    return {**own, **stated, **nested}


def addon_configurations(environment: Environment) -> dict[str, Mapping[str, Any] | None]:
    """The add-ons that a deployment installs, with their configuration; None where it leaves an add-on's own.

    ARNs and addresses that only a deployment knows are examples of the same form.
    """
    account, region = environment.account, environment.region
    configurations: dict[str, Mapping[str, Any] | None] = dict.fromkeys(installed_addons(environment))
    if "vpc-cni" in configurations and isolates_networks(environment.governance):
        configurations["vpc-cni"] = NETWORK_POLICIES
    if CERT_MANAGER in configurations:
        placement = system_placement(environment.cluster, environment.instance_groups)
        configurations[CERT_MANAGER] = cert_manager_values(placement)
    if METRICS_SERVER in configurations:
        configurations[METRICS_SERVER] = METRICS_SERVER_CONFIGURATION
    if environment.platform.inference:
        hyperpod_arn = f"arn:aws:sagemaker:{region}:{account}:cluster/abcdefghijkl"
        role = f"arn:aws:iam::{account}:role/{environment.name}-inference"
        absent = {"execution_role": role, "load_balancer_role": role, "autoscaler_role": role}
        absent["tls_bucket"] = certificate_bucket_name(environment.name, account, region)
        settings = environment.platform.inference.completed(**absent)
        configurations[INFERENCE] = inference_configuration(settings, hyperpod_arn)
    if SPACES in configurations:
        configurations[SPACES] = spaces_configuration(f"arn:aws:iam::{account}:role/{environment.name}-sessions")
    if OBSERVABILITY_ADDON in configurations and environment.observability:
        workspace = "ws-12345678-1234-1234-1234-123456789012"
        configurations[OBSERVABILITY_ADDON] = addon_configuration(
            environment.observability,
            f"arn:aws:aps:{region}:{account}:workspace/{workspace}",
            f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{workspace}/",
        )
    eks = environment.cluster.eks
    further = {name: item.configuration for name, item in eks.further_addons.items() if item.configuration}
    stated: dict[str, str] = {**eks.addon_configurations, **further}
    return {name: configured(own, stated.get(name)) for name, own in configurations.items()}
