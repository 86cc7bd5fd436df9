"""What a node brings in the words of Kubernetes, and what an amount of a quota is in them.

Quantities are whole numbers: vCPU in thousandths, memory in MiB, everything else in pieces. So sums are exact.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_type import InstanceType
from ...config.catalog.mig import MIG_RESOURCE, common_profiles, partitions, partitions_per_gpu
from ...config.errors import InvalidValue
from ...config.settings.governance.teams import Amount

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
NEURON: Final = "aws.amazon.com/neurondevice"
EFA: Final = "vpc.amazonaws.com/efa"
# Kubernetes writes one amount in several units: 0.5 comes back as 500m.
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_UNITS: Final = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}

Quantities = dict[str, int]
"""By resource name: thousandths of a vCPU, MiB, or pieces."""


class Node(NamedTuple):
    """What one instance brings: the least of each of several types, because a guarantee has to hold.

    It is what the instance has. The kubelet and the pods of the system take their part of vCPU and memory.
    """

    brings: Quantities
    """With partitions in place of GPUs where its label says so."""
    accelerators: int
    """GPUs or Neuron devices, whole or partitioned."""
    mig_profiles: tuple[str, ...]
    """Profiles that its GPUs have."""
    layout_known: bool = True
    """False when its GPUs are partitioned in a way that only the cluster knows; then no partitions are counted."""

    @property
    def accelerator(self) -> str:
        """The resource of whole accelerators."""
        return NEURON if NEURON in self.brings else GPU


def node(rows: Iterable[InstanceType], labels: Mapping[str, str], threads_per_core: int | None = None) -> Node:
    """What an instance of any of the types `rows` brings."""
    rows = list(rows)
    brings = _least(_brings(row, threads_per_core) for row in rows)
    # Types of one group may differ; a layout has to fit all of them.
    profiles = common_profiles(rows)
    layout = partitions(labels, profiles) if GPU in brings else {}
    gpus = brings.get(GPU, 0)
    if layout != {}:
        brings = {name: amount for name, amount in brings.items() if name != GPU}
        # A profile divides every GPU of a node alike.
        brings |= {MIG_RESOURCE + profile: count * gpus for profile, count in (layout or {}).items()}
    return Node(brings, gpus or brings.get(NEURON, 0), profiles, layout is not None)


def least(nodes: Iterable[Node]) -> Node:
    """A node that brings what each of `nodes` does."""
    first, *others = nodes
    if not others:
        return first
    return Node(
        _least(one.brings for one in (first, *others)),
        min(other.accelerators for other in (first, *others)),
        first.mig_profiles,
        all(other.layout_known for other in (first, *others)),
    )


def _least(each: Iterable[Quantities]) -> Quantities:
    """The least of each resource that all have."""
    # A counter's `&` is the least of two, and its `+` leaves out what is 0.
    return dict(+reduce(and_, map(Counter, each)))


def _brings(row: InstanceType, threads_per_core: int | None) -> Quantities:
    return {
        CPU: row.cpus(threads_per_core) * 1000,
        MEMORY: int(row.memory_gib * 1024),
        GPU: row.gpus,
        NEURON: row.accelerator_count if row.accelerator_vendor == "neuron" else 0,
        EFA: row.efa_interfaces,
    }


def times(count: int, one: Quantities) -> Quantities:
    """What `count` instances bring that bring `one` each."""
    return {resource: count * each for resource, each in one.items()}


def quantities(amount: Amount, node: Node) -> tuple[Quantities, frozenset[str]]:
    """What `amount` is of instances such as `result`, and which resources of it were filled in by ratio.

    Whole instances bring everything. Accelerators or partitions bring vCPU, memory and EFA interfaces in proportion
    where those are not given; vCPU alone brings memory, and memory alone vCPU, without accelerators. That is how task
    governance fills amounts in; how it rounds, what a partition counts for and that EFA follows is as we read it.
    """
    if amount.instances is not None:
        return times(amount.instances, node.brings), frozenset()
    specified: Quantities = {}
    if amount.accelerators is not None:
        specified[node.accelerator] = amount.accelerators
    specified |= {MIG_RESOURCE + profile.removeprefix("mig-"): count for profile, count in amount.mig.items()}
    accelerated = _accelerated(amount, node)
    if amount.vcpu is not None:
        specified[CPU] = round(amount.vcpu * 1000)
    if amount.memory_gib is not None:
        specified[MEMORY] = round(amount.memory_gib * 1024)
    ratio = accelerated if amount.accelerators is not None or amount.mig else _ratio(specified, node)
    ratios = {CPU: ratio, MEMORY: ratio, EFA: accelerated}
    filled = {name: int(ratios.get(name, 0) * each) for name, each in node.brings.items() if name not in specified}
    return filled | specified, frozenset(filled)


def instances(amounts: Mapping[str, int], one: Mapping[str, int]) -> float:
    """How many instances `amounts` take that bring `one` each: by accelerators, or by vCPU and memory without any."""
    accelerators = [resource for resource in one if resource not in (CPU, MEMORY, EFA)]
    if any(amounts.get(resource) for resource in accelerators):
        return sum(amounts.get(resource, 0) / one[resource] for resource in accelerators)
    return max((amounts.get(resource, 0) / one[resource] for resource in (CPU, MEMORY) if one.get(resource)), default=0)


def _accelerated(amount: Amount, result: Node) -> Fraction:
    """The accelerators and partitions of `amount`, in instances."""
    part = Fraction(amount.accelerators or 0, result.accelerators or 1)
    for profile, count in amount.mig.items():
        name = profile.removeprefix("mig-")
        most = (
            result.brings.get(MIG_RESOURCE + name)
            or partitions_per_gpu(name, result.mig_profiles) * result.accelerators
        )
        part += Fraction(count, most) if most else 0
    return part


def _ratio(specified: Mapping[str, int], result: Node) -> Fraction:
    return max(
        (Fraction(specified[name], result.brings[name]) for name in (CPU, MEMORY) if name in specified),
        default=Fraction(0),
    )


def quantity(resource: str, amount: int) -> str:
    """`amount` as Kubernetes writes it: `192`, `1500m`, `2048Gi`, `8`."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource != MEMORY:
        return str(amount)
    return f"{amount // 1024}Gi" if amount % 1024 == 0 else f"{amount}Mi"


def is_accelerator(resource: str) -> bool:
    """Whether a resource is a GPU, a partition of one, or a Neuron device."""
    return resource in (GPU, NEURON) or resource.startswith(MIG_RESOURCE)


def accelerators(amounts: Mapping[str, int]) -> int:
    """How many accelerators amounts of resources have: those of the first kind; 0 without any."""
    return next((amount for resource, amount in amounts.items() if is_accelerator(resource)), 0)


def number_of(value: Any) -> Decimal | None:
    """A number or a quantity of Kubernetes, which its API may write in another unit; None for anything else."""
    # bool is an int in Python, and true is no amount.
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    unit = match[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    return Decimal(match[1]) * Decimal(base) ** _UNITS[unit.removesuffix("i")]


def required_number(value: Any) -> Decimal:
    """The same of what has to be one. Raises InvalidValue."""
    if (number := number_of(value)) is None:
        raise InvalidValue(f"{value!r} is not a quantity of Kubernetes")
    return number


def amount_of(resource: str, written: Any) -> int:
    """What Kubernetes writes as an amount of a resource, in the units of quotas; 0 for what is no amount."""
    number = number_of(written) or Decimal(0)
    if resource == CPU:
        return int(number * 1000)
    return int(number / 2**20 if resource == MEMORY else number)


def in_words(resource: str, amount: int) -> str:
    """`amount` for people: `192 vCPUs`, `2,048 GiB`, `8 GPUs`, `14 mig-1g.18gb`."""
    unit = {CPU: "vCPU", MEMORY: "GiB", GPU: "GPU", NEURON: "Neuron device", EFA: "EFA interface"}.get(resource)
    number = f"{amount / {CPU: 1000, MEMORY: 1024}.get(resource, 1):,.9g}"
    if unit is None or unit == "GiB":
        return f"{number} {unit or resource.rpartition('/')[2]}"
    return f"{number} {unit}{'' if number == '1' else 's'}"
