"""What one instance type is, and what a node of it takes from a subnet."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from .facts import Citation, cited


class Tally(NamedTuple):
    """A number with the arithmetic that gave it, for findings that show their working."""

    total: int
    arithmetic: str
    """Such as `50 of the primary card + 31 other cards = 81`."""
    basis: str
    """The rule's source, and how far it reaches."""


_PER_CARD = "hyperpod-prerequisites", "published for P5, by inference for other types"
_EFA_ONLY = "efa-guide", "by inference: an EFA-only interface has no address, and the primary interface cannot be one"
_ONE_INTERFACE = "hyperpod-pods", "seen on ml.g5.xlarge, by inference for other types: pods share the primary interface"
_OVERRIDE = "set by the environment"


def _tally(total: int, arithmetic: str, basis: tuple[str, str]) -> Tally:
    source, reach = basis
    return Tally(total, arithmetic, f"{cited(source)[0]}; {reach}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An instance type that HyperPod takes. All numbers are per instance unless a field says otherwise.

    A field that no source knows is None; an environment may set it under `instance_types`.
    """

    name: str
    """With the `ml.` prefix."""
    vcpu: int
    threads_per_core: int
    """As delivered; HyperPod can lower 2 to 1 for each group."""
    memory_gib: float
    accelerator_count: int
    """GPUs or Neuron devices; 0 for CPU types."""
    accelerator_name: str
    """As EC2 names it, such as H200 or Trainium2; empty for CPU types."""
    accelerator_vendor: Literal["nvidia", "neuron", "none"]
    accelerator_memory_mib: int
    """Of one accelerator."""
    neuron_cores: int
    """Physical NeuronCores of all devices together; 0 without Neuron devices."""
    network_gbps: float
    """Aggregate in one direction, as advertised. Types that say "up to" reach it in bursts only."""
    network_cards: int
    efa_interfaces: int
    """EFA interfaces at most; 0 when the type has no EFA."""
    efa_only: bool
    """Whether its EFA interfaces can go without an IP address."""
    primary_efa: bool
    """Whether the primary network card takes an EFA interface."""
    eni_max: int
    """Network interfaces at most, over all cards."""
    eni_primary_card: int | None
    """Network interfaces at most on the primary card."""
    ipv4_per_eni: int
    nvme_gb: int
    """Local instance storage in GB (10⁹ bytes); 0 without."""
    architecture: Literal["x86_64", "arm64"]
    training_plan: bool
    """Whether SageMaker training plans sell it."""
    efa_generation: int | None = None
    """1 to 4; 0 when the type has no EFA."""
    nvlink_generation: int = 0
    """0 when the accelerators have no NVLink between them."""
    nvlink_domain: int | None = 0
    """Accelerators that reach each other over NVLink; 0 without, None when the UltraServer decides."""
    nvswitch: bool = False
    """Whether NVSwitches sit inside the instance, so that the node has to run NVIDIA's fabric manager."""
    imex: bool = False
    """Whether NVLink leaves the instance, so that the node has to run NVIDIA's IMEX service."""
    mig_profiles: tuple[str, ...] = ()
    """Such as `1g.18gb`. Compute quotas write `mig-1g.18gb`, and take only those of `limits().compute_quota`."""
    topology_labels: tuple[str, ...] = ()
    """Labels by which its nodes say where they stand in the network, the widest domain first; the node's own name comes
    below them."""
    addresses_eks: int | None = None
    """Replaces the reckoned IPv4 addresses of an EKS node."""
    addresses_slurm: int | None = None
    """Replaces the reckoned IPv4 addresses of a Slurm node."""
    pod_limit: int | None = None
    """Replaces the reckoned number of pods on an EKS node."""
    sources: tuple[Citation, ...] = ()
    """Where the row comes from. Empty for a type that an environment defined."""
    overridden: frozenset[str] = frozenset()
    """Fields that the environment set."""

    @property
    def kubernetes_architecture(self) -> str:
        """As Kubernetes, and container images, call its architecture."""
        return "amd64" if self.architecture == "x86_64" else self.architecture

    def addresses(
        self, orchestrator: Literal["eks", "slurm", "none"], interface_type: Literal["efa", "efa-only"] = "efa"
    ) -> Tally:
        """IPv4 addresses that one node takes from its subnet.

        On EKS this counts the pods of one interface, as HyperPod attaches it; it leaves out what a CNI of your own
        configuration may add. `interface_type` has no effect on types without EFA.
        """
        override = self.addresses_eks if orchestrator == "eks" else self.addresses_slurm
        if override is not None:
            return Tally(override, f"{override} as set", _OVERRIDE)
        # HyperPod gives pods addresses of the primary interface alone.
        primary = self.ipv4_per_eni if orchestrator == "eks" else 1
        first = f"{primary} of the primary card"
        if interface_type == "efa-only" and self.efa_only:
            return _tally(primary, f"{first} + 0 of {self.efa_interfaces} EFA-only interfaces = {primary}", _EFA_ONLY)
        others = self.network_cards - 1
        return _tally(primary + others, f"{first} + {others} other cards = {primary + others}", _PER_CARD)

    def address_usage(
        self, orchestrator: Literal["eks", "slurm", "none"], interface_type: Literal["efa", "efa-only"] = "efa"
    ) -> int:
        """Units of Network Address Usage of one node: its addresses, and one for each interface beside the first.

        EFA-only interfaces have no address and count as interfaces all the same. Source: Amazon VPC User Guide,
        "Network Address Usage for your VPC", 2026-11.
        """
        others = self.efa_interfaces if interface_type == "efa-only" and self.efa_only else self.network_cards - 1
        return self.addresses(orchestrator, interface_type).total + others

    def pods(self) -> Tally:
        """Pods that one EKS node runs at most, those of the system and of the host network included."""
        if self.pod_limit is not None:
            return Tally(self.pod_limit, f"{self.pod_limit} as set", _OVERRIDE)
        # The interface's own address serves no pod.
        pods = self.ipv4_per_eni - 1
        return _tally(pods, f"{self.ipv4_per_eni} addresses of one interface - its own = {pods}", _ONE_INTERFACE)

    @property
    def gpus(self) -> int:
        """GPUs; 0 where the accelerators are of another kind."""
        return self.accelerator_count if self.accelerator_vendor == "nvidia" else 0

    def cpus(self, threads_per_core: int | None = None) -> int:
        """What a node counts as CPUs: its vCPUs, which are threads, and half of them where a group wants one a core.

        A group cannot switch hyper-threading on where the type has none.
        """
        threads = min(threads_per_core or self.threads_per_core, self.threads_per_core)
        return self.vcpu // max(self.threads_per_core, 1) * threads

    @property
    def max_pods(self) -> int:
        """The total of `pods`."""
        return self.pods().total

    @property
    def max_pods_ec2(self) -> int | None:
        """Pods that the EKS image allows on a plain EC2 node, where the CNI uses all interfaces of the primary card.

        Interfaces × (addresses per interface - 1) + 2 for the host-network pods of CNI and proxy. Source: Amazon EKS
        AMI, eni-max-pods.txt. HyperPod nodes stay far below; `pods` is the number to plan with.
        """
        return self.eni_primary_card and self.eni_primary_card * (self.ipv4_per_eni - 1) + 2


class UltraServer(NamedTuple):
    """Instances that are sold together because one scale-up fabric joins their accelerators."""

    name: str
    instance_type: str
    """The member type."""
    instances: int
    accelerators: int
    """Of all instances together: the size of the NVLink or NeuronLink domain."""
    hyperpod: bool
    """False where HyperPod does not take the member type."""
    member: str
    """The catalog's type with the same accelerators: the member type, or the one that differs by its links alone."""
    sources: tuple[Citation, ...]


class Conflict(NamedTuple):
    """A fact on which sources disagree, and what the catalog holds."""

    type: str
    field: str
    values: dict[str, object]
    """What each source says, by citation key."""
    chosen: object
    why: str
