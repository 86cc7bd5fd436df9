"""How many accelerators a training run needs at least, and how its parallelism can lie on them.

Pure arithmetic over a model's size and the facts of a type. Ranks are numbered as Megatron-LM does: tensor parallelism
innermost, then expert, then data, then pipeline parallelism. Memory is what weights, gradients and optimizer keep;
activations, buffers of communication and fragments come on top, and `headroom` leaves room for them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..config.catalog.instance_type import UltraServer
from ..config.catalog.instance_types import Catalog
from ..config.errors import InvalidValue

GB = 10**9
MOST_PIPELINE_STAGES = 64
_MOST_RANKS = 128  # of a group: more than any domain has, and than stages are allowed
# Beyond these more accelerators do not help: what data parallelism does not divide stays as it is.
_MOST_TIMES = 8
_MOST_UNITS = 16


class CannotSize(InvalidValue):
    """A model or a machine that cannot be sized. The text says what was seen and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model as far as its memory depends on it."""

    parameters: float
    """In all."""
    active: float | None = None
    """That one token passes through; None for a dense model."""
    experts: int | None = None
    """Routed experts of a layer; None when unknown or dense."""
    top_k: int = 1
    """Routed experts that a token passes through."""
    layers: int | None = None
    heads: int | None = None
    """Attention heads, or key-value heads where there are fewer."""
    bytes_per_parameter: float = 18.0
    """Of weights, gradients and optimizer state together. 18: weights in 16 bits, gradients and Adam's three numbers in
    32 bits (Megatron-LM, distributed optimizer); people plan with 18 to 20."""
    replicated_bytes: float = 6.0
    """Of these, what every data-parallel rank holds whole; the rest is divided over the data-parallel ranks. 6: weights
    and gradients, with a distributed optimizer (ZeRO 1). 0: all of it is divided (ZeRO 3, FSDP)."""

    @property
    def parts(self) -> tuple[float, float]:
        """Parameters that every token passes through, and those of all routed experts.

        Without the number of experts everything active counts as shared, which needs more memory and never less.

        Raises:
            CannotSize: numbers that contradict each other.
        """
        if self.active is None:
            return self.parameters, 0.0
        if not 0 < self.active <= self.parameters:
            raise CannotSize(f"{self.active / GB:g} B active of {self.parameters / GB:g} B; active are at most all")
        share = self.top_k / self.experts if self.experts else 0.0
        if share >= 1:
            raise CannotSize(f"a token passes {self.top_k} of {self.experts} experts; give fewer than all of them")
        routed = (self.parameters - self.active) / (1 - share)
        if routed > self.parameters:
            least = self.parameters * share
            raise CannotSize(
                f"{self.top_k} of {self.experts} experts of {self.parameters / GB:g} B are more than the "
                f"{self.active / GB:g} B that are active; at least {least / GB:.3g} B have to be"
            )
        return self.parameters - routed, routed

    @property
    def state(self) -> float:
        """Bytes of weights, gradients and optimizer together."""
        return self.parameters * self.bytes_per_parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Instances of one type, as far as a layout depends on them."""

    name: str
    """Type of instance, or of UltraServer."""
    instance_type: str
    accelerators: int
    """Of one instance."""
    memory_gb: float
    """GB (10⁹ bytes) of one accelerator that count. A GPU sold as 80 GB has 80 GiB: the 7 percent between the two are
    left to the CUDA context and the buffers of NCCL."""
    domain_instances: int = 1
    """Instances whose accelerators share one NVLink or NeuronLink domain, spares left out."""
    link: str = "NVLink"
    """What joins the accelerators of a domain: NVLink, NeuronLink, or PCIe where there is neither."""
    plans: bool = True
    """Whether training plans sell it."""
    hyperpod: bool = True
    """Whether HyperPod takes it."""

    @property
    def domain(self) -> int:
        """Accelerators in one NVLink or NeuronLink domain."""
        return self.accelerators * self.domain_instances


def machine(types: Catalog, name: str, spares: int = 0) -> Machine:
    """The machine of that name: an instance type, or an UltraServer with so many spares left out.

    A type that exists only in UltraServers means the largest of them.

    Raises:
        CannotSize: an unknown name, a type without accelerators, or spares that leave nothing.
    """
    unit = _ultraserver(types, name)
    row = types.find(unit.member if unit else name)
    if row is None:
        known = ", ".join([*types.ultraservers, *(row.name for row in types if row.accelerator_count > 1)])
        raise CannotSize(f"{name} is neither a type with accelerators nor an UltraServer; known are {known}")
    if not row.accelerator_count:
        raise CannotSize(f"{name} has no accelerators")
    if spares and (unit is None or spares >= unit.instances):
        most = f"at most {unit.instances - 1} of {unit.instances}" if unit else "none, as it is no UltraServer"
        raise CannotSize(f"{spares} spares of {name}; allowed: {most}")
    between_gpus = "PCIe" if row.nvlink_domain == 0 else "NVLink"
    return Machine(
        name=unit.name if unit else row.name,
        instance_type=unit.instance_type if unit else row.name,
        accelerators=row.accelerator_count,
        memory_gb=row.accelerator_memory_mib / 1024,
        domain_instances=unit.instances - spares if unit else 1,
        link="NeuronLink" if row.accelerator_vendor == "neuron" else between_gpus,
        plans=row.training_plan,
        hyperpod=unit.hyperpod if unit else True,
    )


def _ultraserver(types: Catalog, name: str) -> UltraServer | None:
    units = types.ultraservers.values()
    named = [unit for unit in units if unit.name.removeprefix("ml.") == name.removeprefix("ml.")]
    return max(
        named or [unit for unit in units if unit.instance_type == name], key=lambda unit: unit.instances, default=None
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the parallel groups. Experts have a layout of their own over the ranks of a pipeline stage.

    Source: Megatron Core documentation, parallelism guide, 2026-11.
    """

    tensor: int
    pipeline: int
    expert: int
    data: int
    expert_tensor: int | None = None
    """Tensor parallelism of the experts; that of everything else when absent."""

    @property
    def expert_ranks(self) -> int:
        """Ranks that hold one copy of all experts of a stage."""
        return self.expert * (self.expert_tensor or self.tensor)

    @property
    def accelerators(self) -> int:
        """Ranks in all."""
        return self.tensor * self.pipeline * self.data

    def reaches(self) -> dict[str, int]:
        """How many consecutive ranks each kind of parallelism talks across; 1 where it is not used."""
        return {
            "tensor": self.tensor,
            "expert": self.expert_ranks if self.expert > 1 else 1,
            "data": self.tensor * self.data if self.data > 1 else 1,
            "pipeline": self.accelerators if self.pipeline > 1 else 1,
        }

    def gb(self, model: Model) -> float:
        """GB of weights, gradients and optimizer on the fullest accelerator."""
        shared, routed = model.parts
        divided = model.bytes_per_parameter - model.replicated_bytes
        cut = self.tensor * self.pipeline
        of_shared = shared / cut * (model.replicated_bytes + divided / self.data)
        stage = self.tensor * self.data
        of_routed = routed / self.pipeline / self.expert_ranks
        of_routed *= model.replicated_bytes + divided * self.expert_ranks / stage
        return (of_shared + of_routed) / GB


def minimum(model: Model, hardware: Machine, headroom: float = 0.0) -> int:
    """Accelerators below which the state does not fit, however it is divided.

    `headroom` is the share of memory, from 0 to below 1, that is left to everything else.
    """
    # A division that comes out even may end just above the whole number.
    return max(1, math.ceil(model.state / GB / usable_memory_gb(hardware, headroom) - 1e-9))


def usable_memory_gb(hardware: Machine, headroom: float) -> float:
    """GB of one accelerator that the state may take."""
    return hardware.memory_gb * (1 - headroom)


def problems(layout: Layout, model: Model, hardware: Machine, instances: int, headroom: float = 0.0) -> Iterator[str]:
    """What is illegal about a layout on so many instances. Nothing when it can run."""
    tensor, expert, data = layout.tensor, layout.expert, layout.data
    ranks = instances * hardware.accelerators
    if layout.accelerators != ranks:
        yield f"TP {tensor} × PP {layout.pipeline} × DP {data} = {layout.accelerators} ranks, and there are {ranks}"
    inside = hardware.accelerators % tensor == 0 or (
        tensor % hardware.accelerators == 0 and hardware.domain % tensor == 0
    )
    if not inside:
        yield (
            f"TP {tensor} does not divide the {hardware.accelerators} accelerators of an instance, nor do its "
            f"instances divide the domain of {hardware.domain}"
        )
    if tensor * data % layout.expert_ranks:
        yield f"{_experts(layout)} does not divide the {tensor * data} ranks of a stage, TP {tensor} × DP {data}"
    if expert > 1 and not model.parts[1]:
        yield f"EP {expert} divides experts, and the model is dense"
    if model.experts and model.experts % expert:
        yield f"EP {expert} does not divide {model.experts} experts"
    if model.heads and model.heads % tensor:
        yield f"TP {tensor} does not divide {model.heads} attention heads"
    if model.layers and model.layers % layout.pipeline:
        yield f"PP {layout.pipeline} does not divide {model.layers} layers"
    usable = usable_memory_gb(hardware, headroom)
    if layout.gb(model) > usable + 1e-9:
        yield f"{layout.gb(model):,.1f} GB on an accelerator, and {usable:,.1f} GB are there for it"


def warnings(layout: Layout, hardware: Machine, instances: int) -> Iterator[str]:
    """What a layout can do and had better not."""
    reach = min(hardware.domain, instances * hardware.accelerators)
    if layout.expert > 1 and reach % layout.expert_ranks:
        yield (
            f"{_experts(layout)} does not divide the domain of {reach}: tokens go to their experts over EFA, twice a "
            "layer"
        )


def _experts(layout: Layout) -> str:
    return f"EP {layout.expert} × ETP {layout.expert_tensor or layout.tensor} = {layout.expert_ranks}"


@dataclass(frozen=True, slots=True)
class SizingRequest:
    """Sizes that somebody has decided; None leaves them open."""

    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    expert_tensor: int | None = None

    def expert_tensors(self, tensor: int) -> list[int | None]:
        """Tensor parallelism of experts to try: that of everything else, and whole ones where EP is decided."""
        if self.expert_tensor:
            return [self.expert_tensor]
        return [None, 1] if self.expert and tensor > 1 else [None]


def layouts(
    model: Model, hardware: Machine, instances: int, headroom: float = 0.0, wish: SizingRequest | None = None
) -> list[Layout]:
    """All legal layouts on so many instances, those with the least communication first.

    Least first: the product of tensor and pipeline parallelism, then pipeline stages, then experts that share a rank.
    Experts leave their NVLink domain only where their parallelism is asked for, and such layouts come last.
    """
    wish = wish or SizingRequest()
    ranks = instances * hardware.accelerators
    fitting = (
        layout
        for layout in _candidates(model, hardware, ranks, wish)
        if not any(problems(layout, model, hardware, instances, headroom))
    )
    far = {layout: any(warnings(layout, hardware, instances)) for layout in fitting}
    matches = [layout for layout, crosses in far.items() if wish.expert or not crosses]
    return sorted(matches, key=lambda item: (far[item], item.tensor * item.pipeline, item.pipeline, -item.expert))


def _candidates(model: Model, hardware: Machine, ranks: int, wish: SizingRequest) -> Iterator[Layout]:
    """Layouts that divide so many ranks, whether they are legal or not."""
    for tensor, pipeline in product(_open(wish.tensor, hardware.domain), _open(wish.pipeline, ranks)):
        too_deep = pipeline > MOST_PIPELINE_STAGES and not wish.pipeline
        if too_deep or ranks % (tensor * pipeline):
            continue
        data = ranks // (tensor * pipeline)
        experts = _open(wish.expert, math.gcd(data, hardware.domain) if model.parts[1] else 1)
        for expert, inner in product(experts, wish.expert_tensors(tensor)):
            yield Layout(tensor, pipeline, expert, data, inner)


def smallest(model: Model, hardware: Machine, headroom: float = 0.0, wish: SizingRequest | None = None) -> int | None:
    """The least number of instances, in whole UltraServers, with a legal layout. None when there is none."""
    unit = hardware.domain_instances
    least = math.ceil(minimum(model, hardware, headroom) / hardware.domain)
    most = max(least * _MOST_TIMES, _MOST_UNITS)
    if not _fits_at_last(model, hardware, headroom, wish or SizingRequest()):
        return None
    return next(
        (units * unit for units in range(least, most + 1) if layouts(model, hardware, units * unit, headroom, wish)),
        None,
    )


def _fits_at_last(model: Model, hardware: Machine, headroom: float, wish: SizingRequest) -> bool:
    """Whether what data parallelism does not divide fits anywhere: otherwise no number of accelerators helps."""
    sizes = [wish.pipeline] if wish.pipeline else range(1, MOST_PIPELINE_STAGES + 1)
    pipelines = [size for size in sizes if not model.layers or model.layers % size == 0]
    tensors = [size for size in _open(wish.tensor, hardware.domain) if not model.heads or model.heads % size == 0]
    usable = usable_memory_gb(hardware, headroom)
    for tensor, pipeline in product(tensors, pipelines):
        experts = _open(wish.expert, hardware.domain // tensor)
        for expert, inner in product(experts, wish.expert_tensors(tensor)):
            if Layout(tensor, pipeline, expert, 10**9 * expert, inner).gb(model) <= usable:
                return True
    return False


def _open(wish: int | None, number: int) -> list[int]:
    """The wish, or every divisor of `number` that a group may have."""
    most = min(number, _MOST_RANKS)
    return [wish] if wish else [divisor for divisor in range(1, most + 1) if number % divisor == 0]
