"""Endpoints as `hyp create hyp-custom-endpoint` checks and renders them: rules that its own CRD model only words."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from hyp_endpoints import MODELS, differences, differences_of_jumpstart, made_by_hyp
from job_environment import aws_model, rendered, with_jobs
from podwright.sandbox.kubernetes import custom_kinds

Endpoint = Callable[[str], dict[str, Any]]
TRIGGERS: dict[str, Any] = {
    "cloudwatch": {
        "invocations": {
            "namespace": "AWS/SageMaker",
            "metric": "Invocations",
            "dimensions": {"EndpointName": "mistral"},
            "statistic": "Sum",
            "target": 10,
            "activation": 1,
            "measure": "value",
        }
    },
    "prometheus": {
        "waiting": {"query": "sum(vllm:waiting)", "server": "http://prometheus.monitoring:9090", "target": 4}
    },
}
ALL: dict[str, Any] = {
    "endpoint": "mistral",
    "autoscaling": {"min_replicas": 0, "max_replicas": 4, "scale_up_seconds": 30, **TRIGGERS},
    "kv_cache": {"shared": "redis", "redis": "redis://cache.inference:6379"},
    "routing": {"strategy": "kv_aware", "autoscaling": {"max_replicas": 2, "prometheus": TRIGGERS["prometheus"]}},
    "balance": "round_robin",
    "tls": {
        "certificate": "arn:aws:acm:us-west-2:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef",
        "domain": "llm.example.com",
        "hosted_zone": "Z0123456789ABCDEFGHIJ",
        "output": "s3://hyperpod-tls-acme/certificates",
    },
    "data_capture": {
        "s3": "s3://acme-capture/llm",
        "endpoint": {"percent": 10, "parts": ["input"], "key": "alias/capture"},
        "load_balancer": True,
        "pods": {"json_types": ["application/json"], "csv_types": ["text/csv"], "max_payload_kb": 64},
    },
    "metrics": {"port": 8000},
    "deploy_seconds": 7200,
}
"""What both kinds of endpoints have."""
CASES: dict[str, dict[str, Any]] = {
    "a bucket": {"model": {"bucket": "acme-models", "location": "mistral/7b"}, "endpoint": "mistral", "replicas": 2},
    "a hub": {"model": {"hugging_face": "mistralai/Mistral-7B-v0.1", "token_secret": "hf"}, "accelerators": 1},
    "a file system": {
        "model": {"file_system": "fs-0123456789abcdef0", "location": "mistral"},
        "command": ["--tp", "8"],
    },
    "all of it": {
        "model": {"hugging_face": "mistralai/Mistral-7B-v0.1", "revision": "0123456789" * 4},
        "model_version": "1.0.0",
        "probes": {
            "startup": {"path": "/health", "failures": 60, "period_seconds": 10},
            "readiness": {"port": 8081, "timeout_seconds": 5},
            "liveness": {"command": ["cat", "/alive"], "delay_seconds": 30},
        },
        "request_limits": {"concurrent": 32, "queue": 64, "status": 503},
        **ALL,
    },
}
JUMPSTART: dict[str, dict[str, Any]] = {
    "a model": {"model_id": "deepseek-llm-r1-distill-qwen-1-5b"},
    "all of it": {
        "model_id": "meta-textgeneration-llama-3-1-8b-instruct",
        "model_version": "2.2.3",
        "accept_eula": True,
        "hub": "acme",
        "gated_role": "arn:aws:iam::111122223333:role/Models",
        "execution_role": "arn:aws:iam::111122223333:role/Deploys",
        "configs": {"variant": "tgi"},
        "env": {"MAX_MODEL_LEN": "8192"},
        "partition": "mig-1g.10gb",
        "health_path": "/ping",
        **ALL,
    },
}


@pytest.fixture
def endpoint() -> Endpoint:
    def make(name: str) -> dict[str, Any]:
        (manifest,) = rendered("inference", model_name="mistral", **CASES[name])
        return manifest

    return make


@pytest.mark.parametrize("name", CASES)
def test_hyp_makes_the_same_of_it(template: SimpleNamespace, endpoint: Endpoint, name: str) -> None:
    assert differences(template, endpoint(name)) == []


@pytest.mark.parametrize("name", JUMPSTART)
def test_hyp_makes_the_same_of_a_jumpstart_model(jumpstart_template: SimpleNamespace, name: str) -> None:
    (manifest,) = rendered("jumpstart", **JUMPSTART[name])
    assert differences_of_jumpstart(jumpstart_template, manifest) == []


@pytest.mark.parametrize(
    ("kind", "file", "model", "job"),
    [
        *(("inference", "hp_endpoint", "_HPEndpoint", {"model_name": "m", **case}) for case in CASES.values()),
        *(("jumpstart", "hp_jumpstart_endpoint", "_HPJumpStartEndpoint", case) for case in JUMPSTART.values()),
    ],
)
def test_an_endpoint_fits_the_model_of_aws_and_ours(kind: str, file: str, model: str, job: dict[str, Any]) -> None:
    (manifest,) = rendered(kind, **job)
    assert custom_kinds.violations(manifest) == []
    aws = aws_model(f"{MODELS}/{file}_config.py", model)
    aws.model_validate(manifest["spec"], by_name=True, by_alias=False)
    with pytest.raises(ValidationError, match="immage"):
        aws.model_validate(manifest["spec"] | {"immage": "x"}, by_name=True)


@pytest.mark.parametrize("kind", ["inference", "jumpstart"])
def test_what_a_file_leaves_out_is_left_to_the_operator(kind: str) -> None:
    job = {"inference": {"model_name": "m", **CASES["a bucket"]}, "jumpstart": JUMPSTART["a model"]}[kind]
    (manifest,) = rendered(kind, **job)
    ours = {"autoScalingSpec", "kvCacheSpec", "intelligentRoutingSpec", "tlsConfig", "dnsConfig", "dataCapture"}
    assert not (ours | {"metrics", "maxDeployTimeInSeconds", "modelVersion"}) & manifest["spec"].keys()


def test_numbers_of_an_endpoint_follow_its_load() -> None:
    scaled = {"autoscaling": {"min_replicas": 2, "max_replicas": 4, "prometheus": TRIGGERS["prometheus"]}}
    (manifest,) = rendered("jumpstart", **JUMPSTART["a model"], **scaled)
    spec = manifest["spec"]
    assert (spec["replicas"], spec["autoScalingSpec"]["minReplicaCount"]) == (2, 2)
    assert spec["autoScalingSpec"]["maxReplicaCount"] == 4
    (trigger,) = spec["autoScalingSpec"]["prometheusTriggerList"]
    assert (trigger["name"], trigger["targetValue"], trigger["metricType"]) == ("waiting", 4, "Average")
    (manifest,) = rendered("jumpstart", **JUMPSTART["all of it"])
    assert (manifest["spec"]["replicas"], manifest["spec"]["autoScalingSpec"]["minReplicaCount"]) == (1, 0)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"autoscaling": {"max_replicas": 2}}, "a metric under `cloudwatch` or `prometheus`"),
        ({"autoscaling": {"min_replicas": 3, "max_replicas": 2, **TRIGGERS}}, "min_replicas of at most max_replicas"),
        ({"autoscaling": {"min_replicas": 1, "max_replicas": 2, **TRIGGERS}}, "activation only with min_replicas 0"),
        ({"replicas": 5, "autoscaling": ALL["autoscaling"]}, "replicas from min_replicas to max_replicas"),
        ({"kv_cache": {"shared": "redis"}}, "`shared: redis` and the address"),
        ({"kv_cache": {"cpu": False}}, "otherwise there is no cache"),
        ({"tls": {"domain": "llm.example.com"}}, "certificate and domain together"),
        ({"tls": {"hosted_zone": "Z1", "output": "s3://tls"}}, "hosted_zone only with certificate"),
        ({"tls": {}}, "certificate and domain, or output"),
        ({"data_capture": {"s3": "s3://acme-capture"}}, "otherwise nothing is kept"),
        ({"data_capture": ALL["data_capture"]}, "only with a SageMaker endpoint"),
    ],
)
def test_settings_of_an_endpoint_that_contradict_each_other(job: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        with_jobs({"job": {"kind": "jumpstart", "model_id": "m"} | job})


def test_a_probe_asks_in_one_way() -> None:
    job = {"kind": "inference", "model_name": "m", **CASES["a bucket"]}
    for probe, words in (({}, "`path`, `port` or"), ({"command": ["a"], "port": 80}, "`command`, or `path`")):
        with pytest.raises(ValidationError, match=words):
            with_jobs({"job": job | {"probes": {"readiness": probe}}})


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
