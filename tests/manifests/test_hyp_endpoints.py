"""Endpoints as `hyp create hyp-custom-endpoint` checks and renders them: rules that its own CRD model only words."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from jinja2 import Template
from pydantic import BaseModel, ValidationError

from job_environment import AWS_PACKAGES, rendered
from needs import require
from podwright.sandbox.kubernetes import custom_kinds

TEMPLATE = "hyperpod_custom_inference_template.v1_2"
Endpoint = Callable[[str], dict[str, Any]]
CASES: dict[str, dict[str, Any]] = {
    "a bucket": {"model": {"bucket": "acme-models", "location": "mistral/7b"}, "endpoint": "mistral", "replicas": 2},
    "a hub": {"model": {"hugging_face": "mistralai/Mistral-7B-v0.1", "token_secret": "hf"}, "accelerators": 1},
    "a file system": {
        "model": {"file_system": "fs-0123456789abcdef0", "location": "mistral"},
        "command": ["--tp", "8"],
    },
}


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Model and text of AWS's template, without the clients that the package around it imports."""
    require(AWS_PACKAGES.joinpath(TEMPLATE.replace(".", "/")).is_dir(), "sagemaker-hyperpod, where .ci/run puts it")
    monkeypatch.syspath_prepend(AWS_PACKAGES)
    for name in ("sagemaker", "sagemaker.hyperpod", "sagemaker.hyperpod.inference"):
        package = ModuleType(name)
        package.__path__ = [str(AWS_PACKAGES / name.replace(".", "/"))]
        monkeypatch.setitem(sys.modules, name, package)
    client = ModuleType("sagemaker.hyperpod.inference.hp_endpoint")
    client.__dict__["HPEndpoint"] = object
    monkeypatch.setitem(sys.modules, client.__name__, client)
    module = import_module(f"{TEMPLATE}.model")
    text = import_module(f"{TEMPLATE}.template").TEMPLATE_CONTENT
    return SimpleNamespace(model=module.FlatHPEndpoint, text=text)


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
    }
    return {name: value for name, value in typed.items() if value not in (None, "", {})}


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`; numbers in quotes are those numbers."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    return whole == part or str(whole) == str(part)


def made_by_hyp(template: SimpleNamespace, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The spec that AWS's command makes of the same options."""
    checked: BaseModel = template.model(**options(manifest))
    return yaml.safe_load(Template(template.text).render(**checked.model_dump()))["spec"]


def refused_by_hyp(template: SimpleNamespace, manifest: Mapping[str, Any]) -> list[str]:
    """What AWS's command says against the same options."""
    try:
        template.model(**options(manifest))
    except ValidationError as error:
        return [str(item["msg"]) for item in error.errors()]
    return []


@pytest.fixture
def endpoint() -> Endpoint:
    def make(name: str) -> dict[str, Any]:
        (manifest,) = rendered("inference", model_name="mistral", **CASES[name])
        return manifest

    return make


@pytest.mark.parametrize("name", CASES)
def test_hyp_makes_the_same_of_it(template: SimpleNamespace, endpoint: Endpoint, name: str) -> None:
    manifest = endpoint(name)
    manifest["spec"]["worker"]["modelInvocationPort"].pop("name")
    assert refused_by_hyp(template, manifest) == []
    spec = made_by_hyp(template, manifest)
    different = [key for key, value in manifest["spec"].items() if not contains(spec.get(key), value)]
    assert different == []


def test_types_beside_an_affinity_are_refused(template: SimpleNamespace, endpoint: Endpoint) -> None:
    manifest = endpoint("a bucket")
    manifest["spec"]["instanceTypes"] = ["ml.p5.48xlarge"]
    with pytest.raises(ValidationError, match="node_affinity cannot be specified with"):
        made_by_hyp(template, manifest)


def test_an_endpoint_runs_on_healthy_nodes_of_its_group(endpoint: Endpoint) -> None:
    affinity = endpoint("a bucket")["spec"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = affinity["nodeSelectorTerms"]
    assert {item["key"]: item["values"] for item in term["matchExpressions"]} == {
        "sagemaker.amazonaws.com/node-health-status": ["Schedulable"],
        "sagemaker.amazonaws.com/instance-group-name": ["h100"],
        "node.kubernetes.io/instance-type": ["ml.p5.48xlarge"],
    }


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"instanceTypes": ["ml.p5.48xlarge"]}, "spec"),
        ({"nodeAffinity": None}, "spec"),
        ({"dnsConfig": {"hostedZoneId": "Z1"}}, "spec"),
        ({"modelSourceConfig": {"modelSourceType": "s3", "modelLocation": "a"}}, "spec.modelSourceConfig"),
        ({"modelSourceConfig": {"modelSourceType": "fsx"}}, "spec.modelSourceConfig"),
        ({"modelSourceConfig": {"modelSourceType": "huggingface"}}, "spec.modelSourceConfig"),
        (
            {
                "modelSourceConfig": {
                    "modelSourceType": "huggingface",
                    "huggingFaceModel": {"modelId": "a", "commitSHA": "b"},
                }
            },
            "spec.modelSourceConfig.huggingFaceModel.commitSHA",
        ),
    ],
)
def test_what_fields_need_and_exclude_is_part_of_the_schema(
    endpoint: Endpoint, change: dict[str, Any], where: str
) -> None:
    """As the words at AWS's fields say, which its schema does not hold."""
    manifest = endpoint("a bucket")
    assert custom_kinds.violations(manifest) == []
    changed = {key: value for key, value in (manifest["spec"] | change).items() if value is not None}
    violations = custom_kinds.violations(manifest | {"spec": changed})
    assert [violation.partition(":")[0] for violation in violations] == [where]
