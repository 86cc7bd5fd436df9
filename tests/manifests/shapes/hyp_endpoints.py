"""Endpoints as `hyp create hyp-custom-endpoint` and `hyp create hyp-jumpstart-endpoint` check and make them."""

import copy
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from jinja2 import Template
from pydantic import BaseModel

from job_environment import AWS_PACKAGES
from needs import require

MODELS = "sagemaker/hyperpod/inference/config"


def aws_template(monkeypatch: pytest.MonkeyPatch, template: str, client: str, name: str) -> SimpleNamespace:
    """Model and text of a template of AWS's, without the clients that the package around it imports."""
    require(AWS_PACKAGES.joinpath(template.replace(".", "/")).is_dir(), "sagemaker-hyperpod, where .ci/run puts it")
    monkeypatch.syspath_prepend(AWS_PACKAGES)
    for part in ("sagemaker", "sagemaker.hyperpod", "sagemaker.hyperpod.inference"):
        package = ModuleType(part)
        package.__path__ = [str(AWS_PACKAGES / part.replace(".", "/"))]
        monkeypatch.setitem(sys.modules, part, package)
    module = ModuleType(f"sagemaker.hyperpod.inference.{client}")
    module.__dict__[name] = object
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = import_module(f"{template}.template").TEMPLATE_CONTENT
    return SimpleNamespace(model=getattr(import_module(f"{template}.model"), f"Flat{name}"), text=text)


def options(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What one would type to get the manifest."""
    spec = manifest["spec"]
    source, worker = spec["modelSourceConfig"], spec["worker"]
    from_hub, token = source.get("huggingFaceModel", {}), source.get("huggingFaceModel", {}).get("tokenSecretRef", {})
    typed = {
        "namespace": manifest["metadata"]["namespace"],
        "metadata_name": manifest["metadata"]["name"],
        "endpoint_name": spec.get("endpointName"),
        "model_name": spec["modelName"],
        "instance_types": ",".join(spec.get("instanceTypes", ())),
        "node_affinity": spec.get("nodeAffinity"),
        "replicas": spec["replicas"],
        "invocation_endpoint": spec["invocationEndpoint"],
        "load_balancer_health_check_path": spec["loadBalancer"]["healthCheckPath"],
        "model_source_type": source["modelSourceType"],
        "model_location": source.get("modelLocation"),
        "prefetch_enabled": source["prefetchEnabled"],
        "s3_bucket_name": source.get("s3Storage", {}).get("bucketName"),
        "s3_region": source.get("s3Storage", {}).get("region"),
        "fsx_file_system_id": source.get("fsxStorage", {}).get("fileSystemId"),
        "huggingface_model_id": from_hub.get("modelId"),
        "huggingface_token_secret_name": token.get("name"),
        "huggingface_token_secret_key": token.get("key"),
        "image_uri": worker["image"],
        "container_port": worker["modelInvocationPort"]["containerPort"],
        "model_volume_mount_name": worker["modelVolumeMount"]["name"],
        "model_volume_mount_path": worker["modelVolumeMount"]["mountPath"],
        "resources_limits": worker["resources"]["limits"],
        "resources_requests": worker["resources"]["requests"],
        "env": {item["name"]: item["value"] for item in worker["environmentVariables"]},
        "worker_args": ",".join(worker.get("args", ())),
        "model_version": spec.get("modelVersion"),
        "huggingface_commit_sha": from_hub.get("commitSHA"),
        "probes": worker.get("probes"),
        "max_concurrent_requests": worker.get("requestLimits", {}).get("maxConcurrentRequests"),
        "max_queue_size": worker.get("requestLimits", {}).get("maxQueueSize"),
        "overflow_status_code": worker.get("requestLimits", {}).get("overflowStatusCode"),
        "load_balancer_routing_algorithm": spec["loadBalancer"].get("routingAlgorithm"),
    }
    return {name: value for name, value in (typed | shared_options(spec)).items() if value not in (None, "", {})}


def shared_options(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What one would type to get what both kinds of endpoints have."""
    tls, cache, metrics = spec.get("tlsConfig", {}), spec.get("kvCacheSpec", {}), spec.get("metrics", {})
    certificate, routing = tls.get("customCertificateConfig", {}), spec.get("intelligentRoutingSpec", {})
    return {
        "tls_certificate_output_s3_uri": tls.get("tlsCertificateOutputS3Uri"),
        "custom_certificate_acm_arn": certificate.get("acmArn"),
        "custom_certificate_domain_name": certificate.get("domainName"),
        "dns_hosted_zone_id": spec.get("dnsConfig", {}).get("hostedZoneId"),
        "intelligent_routing_enabled": routing.get("enabled"),
        "routing_strategy": routing.get("routingStrategy"),
        "enable_l1_cache": cache.get("enableL1Cache"),
        "enable_l2_cache": cache.get("enableL2Cache"),
        "l2_cache_backend": cache.get("l2CacheSpec", {}).get("l2CacheBackend"),
        "l2_cache_local_url": cache.get("l2CacheSpec", {}).get("l2CacheLocalUrl"),
        "cache_config_file": cache.get("cacheConfigFile"),
        "max_deploy_time_in_seconds": spec.get("maxDeployTimeInSeconds"),
        "auto_scaling_spec": spec.get("autoScalingSpec"),
        "data_capture": spec.get("dataCapture"),
        "metrics_enabled": metrics.get("enabled"),
        "metrics_scrape_interval_seconds": metrics.get("metricsScrapeIntervalSeconds"),
        "model_metrics_path": metrics.get("modelMetrics", {}).get("path"),
        "model_metrics_port": metrics.get("modelMetrics", {}).get("port"),
    }


def jumpstart_options(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What one would type to get the manifest of a JumpStart model."""
    spec = manifest["spec"]
    model, server, balancer = spec["model"], spec["server"], spec.get("loadBalancer", {})
    typed = {
        "namespace": manifest["metadata"]["namespace"],
        "metadata_name": manifest["metadata"]["name"],
        "endpoint_name": spec.get("sageMakerEndpoint", {}).get("name"),
        "model_id": model["modelId"],
        "model_version": model.get("modelVersion"),
        "model_hub_name": model.get("modelHubName"),
        "accept_eula": model["acceptEula"],
        "gated_model_download_role": model.get("gatedModelDownloadRole"),
        "additional_configs": {item["name"]: item["value"] for item in model.get("additionalConfigs", ())},
        "instance_type": server["instanceType"],
        "accelerator_partition_type": server.get("acceleratorPartitionType"),
        "execution_role": server.get("executionRole"),
        "replicas": spec["replicas"],
        "env": {item["name"]: item["value"] for item in spec["environmentVariables"]},
        "load_balancer_health_check_path": balancer.get("healthCheckPath"),
        "load_balancer_routing_algorithm": balancer.get("routingAlgorithm"),
    }
    return {name: value for name, value in (typed | shared_options(spec)).items() if value not in (None, "", {})}


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`; numbers in quotes are those numbers."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    return whole == part or str(whole) == str(part)


def made_by_hyp(template: SimpleNamespace, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The spec that AWS's command makes of the same options."""
    checked: BaseModel = template.model(**options(manifest))
    return yaml.safe_load(Template(template.text).render(**checked.model_dump()))["spec"]


def differences(template: SimpleNamespace, manifest: Mapping[str, Any]) -> list[str]:
    """Fields of an endpoint that AWS's command makes otherwise; it raises for options that it refuses."""
    own = copy.deepcopy(dict(manifest))
    # Its options cannot say these two, which the model of the object has.
    own["spec"]["worker"]["modelInvocationPort"].pop("name")
    own["spec"].get("intelligentRoutingSpec", {}).pop("autoScalingSpec", None)
    spec = made_by_hyp(template, own)
    return [key for key, value in own["spec"].items() if not contains(spec.get(key), value)]


def differences_of_jumpstart(template: SimpleNamespace, manifest: Mapping[str, Any]) -> list[str]:
    """Fields of a JumpStart model that AWS's command makes otherwise; it raises for options that it refuses."""
    own = copy.deepcopy(dict(manifest))
    checked: BaseModel = template.model(**jumpstart_options(own))
    spec = yaml.safe_load(Template(template.text).render(**checked.model_dump()))["spec"]
    # Its text has no place for the others, and the public hub stands in it.
    written = {key: value for key, value in own["spec"].items() if key in spec}
    for unsaid in ("additionalConfigs", "gatedModelDownloadRole", "modelHubName"):
        written["model"].pop(unsaid, None)
    written["server"].pop("executionRole", None)
    assert {"model", "server"} <= written.keys()
    return [key for key, value in written.items() if not contains(spec[key], value)]
