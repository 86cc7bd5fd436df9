"""A job's share of an NVLink domain that reaches across the instances of an UltraServer."""

import cdk8s
from constructs import Construct

from .jobs.nvlink import compute_domain, container_claims, pod_claims

_TOPOLOGY = "topology.k8s.aws/ultraserver-id"


class ComputeDomain(cdk8s.Chart):
    """The ComputeDomain of one job, and what its pods have to say to get into it.

    NVIDIA's DRA driver joins the nodes of all pods that claim its channel to one IMEX domain, in which GPUs of
    different instances map each other's memory. One job has one ComputeDomain, in the job's namespace, and the two go
    together.

    Decided for you: the claims' template is called `<name>-channel`; the number of nodes is the job's, which older
    drivers wait for and newer ones only report; pods ask for Arm nodes, since every UltraServer that HyperPod takes has
    Arm processors, and Kueue places them in one UltraServer where they fit into it, else near each other.
    Sources: k8s-dra-driver-gpu, API resource.nvidia.com/v1beta1, 2026-11; Amazon EKS User Guide, P6e-GB200
    UltraServers, 2026-11; SageMaker Developer Guide, topology-aware scheduling, 2026-11.

    Example:
        ComputeDomain(cdk8s.App(), "domain", name="llm", namespace="hyperpod-ns-research", nodes=18)
    """

    def __init__(
        self, scope: Construct, chart_id: str, *, name: str, namespace: str, nodes: int, one_ultraserver: bool = True
    ) -> None:
        """Defines the object.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
            name: Name of the job; a DNS label of at most 55 characters, so that the template's name fits too.
            namespace: Namespace of the job.
            nodes: Nodes that the job runs on, at least 1.
            one_ultraserver: Whether all of them fit into one UltraServer.

        Raises:
            ValueError: a name or a number that Kubernetes or the driver refuses.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)
        if nodes < 1:
            raise ValueError(f"nodes is {nodes}; a job has at least 1")
        for text, most in ((name, 55), (namespace, 63)):
            if not _is_label(text, most):
                raise ValueError(f"{text!r} is not a DNS label of 1 to {most} lower-case letters, digits and hyphens")

        manifest = compute_domain(name, namespace, nodes)
        cdk8s.ApiObject(
            self,
            "domain",
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            metadata=cdk8s.ApiObjectMetadata(name=name, namespace=namespace),
        ).add_json_patch(cdk8s.JsonPatch.add("/spec", manifest["spec"]))

        placement = "required" if one_ultraserver else "preferred"
        self.annotations = {f"kueue.x-k8s.io/podset-{placement}-topology": _TOPOLOGY}
        """Annotations of the job's pod template."""
        self.pod = {"nodeSelector": {"kubernetes.io/arch": "arm64"}, "resourceClaims": pod_claims(name)}
        """Fields of the pod's spec."""
        self.container = {"resources": {"claims": container_claims()}}
        """Fields of the container that uses GPUs, beside its own requests."""

    def text(self) -> str:
        """The object as YAML, and as comments what the job's pod template needs."""
        template = {"metadata": {"annotations": self.annotations}, "spec": self.pod | {"containers": [self.container]}}
        comments = [f"# {line}" for line in cdk8s.Yaml.stringify(template).rstrip().splitlines()]
        return "\n".join(
            [
                cdk8s.Yaml.stringify(*self.to_json()).rstrip(),
                "# The pod template of the job needs, beside its image and its GPUs:",
                *comments,
            ]
        )


def _is_label(text: str, most: int) -> bool:
    inner = text.replace("-", "")
    return (
        0 < len(text) <= most
        and text[0] != "-" != text[-1]
        and inner.isascii()
        and inner.isalnum()
        and text == text.lower()
    )
