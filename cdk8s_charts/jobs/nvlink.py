"""A job's share of an NVLink domain that reaches across the instances of an UltraServer, as plain data.

NVIDIA's DRA driver joins the nodes of all pods that claim its channel to one IMEX domain, in which GPUs of different
instances map each other's memory. One job has one ComputeDomain, in the job's namespace, and the two go together.
Source: k8s-dra-driver-gpu, API resource.nvidia.com/v1beta1, 2026-11.
"""

from typing import Any

CLAIM = "nvlink"
"""What pods call their claim."""


def compute_domain(name: str, namespace: str, nodes: int) -> dict[str, Any]:
    """The ComputeDomain of a job of so many nodes, which older drivers wait for and newer ones only report."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"numNodes": nodes, "channel": {"resourceClaimTemplate": {"name": claim_template(name)}}},
    }


def claim_template(name: str) -> str:
    """The template of claims that the driver makes for a job's domain."""
    return f"{name}-channel"


def pod_claims(name: str) -> list[dict[str, Any]]:
    """`resourceClaims` of the job's pods."""
    return [{"name": CLAIM, "resourceClaimTemplateName": claim_template(name)}]


def container_claims() -> list[dict[str, Any]]:
    """`resources.claims` of the container that uses GPUs."""
    return [{"name": CLAIM}]
