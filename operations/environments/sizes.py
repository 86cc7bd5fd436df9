"""How many GPUs a training run needs, and how its parallelism lies on them: as plain data, and as lines for people."""

import dataclasses
from typing import Any

from ...config.catalog.instance_types import Catalog
from ...config.catalog.limits import limits
from ...config.catalog.prices import Price, hourly
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.sizing import (
    GB,
    CannotSize,
    Layout,
    Machine,
    Model,
    SizingRequest,
    layouts,
    machine,
    minimum,
    problems,
    smallest,
    usable_memory_gb,
    warnings,
)
from ..output.tables import Block, new_table
from ..programs.node import use_bundled_node

_SHOWN = 4


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many machines a model needs, and how its parallelism can lie on them."""

    model: Model
    hardware: Machine
    headroom: float
    least: int
    """Accelerators, whatever the layout."""
    options: dict[int, list[Layout]]
    """Legal layouts by number of instances, the fewest first."""
    refusals: list[str]
    """Why there is none."""
    price: Price | None
    """Of one instance for an hour."""

    def lines(self) -> list[Block]:
        """For people."""
        return [*self._model(), "", *self._minimum(), "", *self._layouts(), *self._limits()]

    def report(self) -> dict[str, Any]:
        """For machines."""
        shared, routed = self.model.parts
        return {
            "model": dataclasses.asdict(self.model)
            | {"shared": shared, "routed": routed, "state_gb": self.model.state / GB},
            "machine": dataclasses.asdict(self.hardware) | {"domain": self.hardware.domain},
            "headroom": self.headroom,
            "minimum_accelerators": self.least,
            "price": self.price and dataclasses.asdict(self.price),
            "options": [self._option(count, result) for count, result in self.options.items()],
            "refusals": self.refusals,
        }

    def _option(self, count: int, result: list[Layout]) -> dict[str, Any]:
        return {
            "instances": count,
            "accelerators": count * self.hardware.accelerators,
            "usd_per_hour": self.price and self.price.usd * count,
            "layouts": [self._layout(layout, count) for layout in result],
        }

    def _layout(self, layout: Layout, count: int) -> dict[str, Any]:
        described = dataclasses.asdict(layout) | {"expert_tensor": layout.expert_tensor or layout.tensor}
        more = {"gb": layout.gb(self.model), "reaches": self._reaches(layout, count)}
        return described | more | {"warnings": list(warnings(layout, self.hardware, count))}

    def _model(self) -> list[str]:
        model, (shared, routed) = self.model, self.model.parts
        lines = [
            f"{_amount(model.parameters)} parameters × {model.bytes_per_parameter:g} bytes = {model.state / GB:,.0f} GB"
        ]
        if routed:
            result = f" in {model.experts} experts, {model.top_k} for a token" if model.experts else " in experts"
            lines.append(f"  {_amount(shared)} for every token, {_amount(routed)}{result}")
        retained = "nothing" if not model.replicated_bytes else f"{model.replicated_bytes:g} bytes (weights, gradients)"
        lines.append(f"  each data-parallel rank keeps {retained} of a parameter whole; the ranks divide the rest")
        return lines

    def _minimum(self) -> list[str]:
        memory, state, hardware = self.hardware.memory_gb, self.model.state / GB, self.hardware
        instances = -(-self.least // hardware.accelerators)
        domain = f", {hardware.domain} in one {hardware.link} domain" if hardware.domain_instances > 1 else ""
        lines = [
            f"at least {self.least} accelerators: {state:,.0f} GB ÷ {memory:,.0f} GB = {state / memory:,.1f}",
            f"  {hardware.instance_type} has {hardware.accelerators}{domain}: at least {instances} of them",
        ]
        if hardware.link == "PCIe" and hardware.accelerators > 1:
            lines.append("  its GPUs have no NVLink between them, so TP beyond 1 goes over PCIe")
        if not hardware.hyperpod:
            lines.append(f"  HyperPod does not take {hardware.name}: its members are no instance type of SageMaker")
        return lines

    def _layouts(self) -> list[Block]:
        """The first layouts for each number of instances as a table, or why there is none."""
        if not self.options:
            advice = ["Weights and gradients alone are too large for every layout: try `--sharding full`."]
            return ["No layout is legal.", *(f"  {text}" for text in self.refusals or advice)]
        lines: list[Block] = []
        for count, result in self.options.items():
            rows: list[tuple[str, ...]] = []
            # The best few; a machine reads all of them with --json.
            for layout in result[:_SHOWN]:
                own = f", ETP {layout.expert_tensor}" if layout.expert_tensor else ""
                sizes = (layout.tensor, layout.pipeline, f"{layout.expert}{own}", layout.data)
                where = self._reaches(layout, count).values()
                rows.append((*map(str, sizes), f"{layout.gb(self.model):,.1f}", *where))
            more = len(result) - _SHOWN
            names = ("TP", "PP", "EP", "DP", "GB each", "tensor", "expert", "data", "pipeline")
            lines += [self._machines(count), new_table("", names, rows, right=names[:5], indent=2)]
            lines += [f"  {text}" for text in warnings(result[0], self.hardware, count)]
            lines += [f"  and {more} more that are legal (--json)", ""] if more > 0 else [""]
        return lines[:-1]

    def _machines(self, count: int) -> str:
        hardware = self.hardware
        units = f"{count // hardware.domain_instances} × {hardware.name}"
        instances = f" = {count} instances" if hardware.domain_instances > 1 else ""
        bound = "at least " if self.price and self.price.lower_bound else ""
        cost = f", {bound}${self.price.usd * count:,.0f} an hour on demand" if self.price else ""
        return f"{units}{instances} = {count * hardware.accelerators} accelerators{cost}"

    def _reaches(self, layout: Layout, count: int) -> dict[str, str]:
        """How far the ranks of each kind of parallelism talk, by kind."""
        return {kind: self._where(span, count) for kind, span in layout.reaches().items()}

    def _where(self, span: int, count: int) -> str:
        hardware = self.hardware
        # One rank talks to nobody.
        if span == 1:
            return "-"
        # Groups of ranks are laid out from the first, so one that divides an instance never crosses its border.
        if hardware.accelerators % span == 0:
            return "in an instance"
        # Fewer accelerators than a domain holds reach no further than themselves.
        reach = min(hardware.domain, count * hardware.accelerators)
        return f"{hardware.link} domain" if reach % span == 0 else "EFA"

    def _limits(self) -> list[str]:
        """What makes a layout legal, and how much memory it may fill."""
        free = usable_memory_gb(self.hardware, self.headroom)
        domain = inside = "an instance"
        if self.hardware.domain_instances > 1:
            domain = f"the {self.hardware.link} domain of {self.hardware.domain}"
            inside = f"an instance, or {domain} in whole instances,"
        lines = [
            "",
            f"A layout may fill {free:,.1f} of {self.hardware.memory_gb:,.0f} GB; {self.headroom:.0%} are left to "
            "activations and buffers.",
            f"Legal: TP divides {inside} and the heads, EP × ETP the ranks of a stage,",
            f"EP the experts, and PP the layers. Unless you ask for EP, ETP is TP, and EP × ETP divides {domain}.",
        ]
        if self.hardware.domain_instances == 1 and self.hardware.plans:
            sold = ", ".join(map(str, limits().training_plan.instance_counts))
            lines.append(f"Training plans sell {sold} instances, and a group can have several plans.")
        return lines


def sizes(
    types: Catalog,
    environment: Environment | None,
    model: Model,
    *,
    on: str,
    spares: int = 0,
    instances: int | None = None,
    headroom: float = 0.2,
    wish: SizingRequest | None = None,
) -> Sizes:
    """The sizes of a model on an instance or UltraServer type.

    Args:
        types: The instance catalog.
        environment: Whose region and prices count; None for no prices.
        model: What is trained.
        on: The type.
        spares: Spare instances of each UltraServer.
        instances: So many, rather than the least.
        headroom: Part of memory that is left to activations and buffers.
        wish: Parallelism that is given.

    Raises:
        CannotSize: a number that makes no sense.
    """
    if not 0 < model.bytes_per_parameter < 1000:
        raise CannotSize(f"{model.bytes_per_parameter:g} bytes of a parameter; 18 is usual")
    hardware, wish = machine(types, on, spares), wish or SizingRequest()
    if instances:
        counts = [instances]
    else:
        least = smallest(model, hardware, headroom, wish)
        counts = _sizes(hardware, least) if least else []
    options = {
        count: resolved_layouts
        for count in counts
        if (resolved_layouts := layouts(model, hardware, count, headroom, wish))
    }
    return Sizes(
        model=model,
        hardware=hardware,
        headroom=headroom,
        least=minimum(model, hardware),
        options=options,
        refusals=[] if options else _refusals(model, hardware, instances, headroom, wish),
        price=hourly(hardware.instance_type, environment.region, environment.own_prices) if environment else None,
    )


def _sizes(hardware: Machine, least: int) -> list[int]:
    """The least number of instances, and the next that training plans sell: the layouts there talk less."""
    if hardware.domain_instances > 1:
        # UltraServers are sold whole.
        return [least, least + hardware.domain_instances]
    sold = limits().training_plan.instance_counts
    # Training plans sell certain counts, of which the next two larger ones may be cheaper.
    return sorted({least, *[count for count in sold if count >= least][:2]})


def _refusals(
    model: Model, hardware: Machine, instances: int | None, headroom: float, wish: SizingRequest
) -> list[str]:
    """Why the layout that somebody asked for is illegal. What they left open is one domain for TP, and no stages."""
    # Without a wish of the user's the minimum has said already why nothing fits.
    if instances is None and wish == SizingRequest():
        return []
    instances = instances or hardware.domain_instances * -(-minimum(model, hardware, headroom) // hardware.domain)
    ranks, pipeline = instances * hardware.accelerators, wish.pipeline or 1
    tensor = wish.tensor or hardware.accelerators
    head = f"TP {tensor}, PP {pipeline}, EP {wish.expert or 1} on {instances} instances with {ranks} accelerators:"
    if ranks % (tensor * pipeline):
        return [head, f"TP {tensor} × PP {pipeline} does not divide {ranks}"]
    layout = Layout(tensor, pipeline, wish.expert or 1, ranks // (tensor * pipeline), wish.expert_tensor)
    return [head, *problems(layout, model, hardware, instances, headroom)]


def compute_domain(answer: Sizes, name: str, namespace: str) -> str:
    """The ComputeDomain and the parts of a pod that let a job of the smallest layout use NVLink, as YAML.

    Raises:
        CommandError: it needs none, no layout is legal, or the name is none.
    """
    if answer.hardware.domain_instances == 1:
        raise CommandError(
            f"{answer.hardware.name} has its NVLink inside the instance, so a job needs no ComputeDomain",
            "ask for an UltraServer, such as --type ml.u-p6e-gb200x72",
            2,
        )
    if not answer.options:
        raise CommandError("no layout is legal, so there is no job to print", "run the same without --manifest")
    use_bundled_node()
    import cdk8s

    from ...cdk8s_charts.compute_domain import ComputeDomain

    # The smallest size that is legal.
    nodes = next(iter(answer.options))
    try:
        chart = ComputeDomain(
            cdk8s.App(),
            "compute-domain",
            name=name,
            namespace=namespace,
            nodes=nodes,
            one_ultraserver=nodes <= answer.hardware.domain_instances,
        )
    except ValueError as error:
        raise CommandError(str(error), "choose another name", 2) from None
    return chart.text()


def _amount(parameters: float) -> str:
    return f"{parameters / 1e12:g} T" if parameters >= 1e12 else f"{parameters / GB:,.4g} B"
