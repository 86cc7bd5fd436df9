"""The ComputeDomain of a job, against the fields that NVIDIA's driver declares for it."""

from typing import Any

import cdk8s
import jsonschema
import pytest

from podwright.cdk8s_charts.compute_domain import ComputeDomain

# What resource.nvidia.com/v1beta1 of k8s-dra-driver-gpu declares: both fields of the spec are required and immutable.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "resource.nvidia.com/v1beta1"},
        "kind": {"const": "ComputeDomain"},
        "metadata": {"type": "object", "required": ["name", "namespace"]},
        "spec": {
            "type": "object",
            "required": ["numNodes", "channel"],
            "additionalProperties": False,
            "properties": {
                "numNodes": {"type": "integer", "minimum": 0},
                "channel": {
                    "type": "object",
                    "required": ["resourceClaimTemplate"],
                    "additionalProperties": False,
                    "properties": {
                        "resourceClaimTemplate": {
                            "type": "object",
                            "required": ["name"],
                            "additionalProperties": False,
                            "properties": {"name": {"type": "string", "maxLength": 63}},
                        },
                        "allocationMode": {"enum": ["All", "Single"]},
                    },
                },
            },
        },
    },
}


def domain(**settings: Any) -> ComputeDomain:
    return ComputeDomain(cdk8s.App(), "domain", **{"name": "llm", "namespace": "research", "nodes": 18} | settings)


@pytest.mark.parametrize(("name", "nodes"), [("llm", 18), ("a" * 55, 1), ("moe-2", 36)])
def test_fits_the_drivers_schema(name: str, nodes: int) -> None:
    (manifest,) = domain(name=name, nodes=nodes).to_json()
    jsonschema.validate(manifest, SCHEMA)
    assert (manifest["metadata"]["name"], manifest["spec"]["numNodes"]) == (name, nodes)


def test_pods_claim_the_channel_that_the_domain_makes() -> None:
    job = domain()
    (manifest,) = job.to_json()
    (claim,) = job.pod["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == manifest["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert job.container["resources"]["claims"] == [{"name": claim["name"]}]
    assert job.pod["nodeSelector"] == {"kubernetes.io/arch": "arm64"}


def test_a_job_beyond_one_ultraserver_is_placed_near_rather_than_inside() -> None:
    level = "topology.k8s.aws/ultraserver-id"
    assert domain().annotations == {"kueue.x-k8s.io/podset-required-topology": level}
    assert domain(nodes=36, one_ultraserver=False).annotations == {"kueue.x-k8s.io/podset-preferred-topology": level}


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"name": "Llm"}, {"name": "a" * 56}, {"name": "-a"}, {"name": ""}, {"namespace": "a_b"}]
)
def test_refuses_what_kubernetes_would(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"DNS label|at least 1"):
        domain(**wrong)
