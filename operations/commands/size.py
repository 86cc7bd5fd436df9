"""Say how many GPUs a training run needs at least, and how its parallelism can lie on them.

Sizes are written as people say them: 70B parameters, 1.2T. The arithmetic and every limit is printed; a layout that you
have in mind is checked with --tensor, --pipeline and --expert.
"""

import argparse
import dataclasses
import re
from typing import Any

from ...config.catalog.instance_types import Catalog, catalog, environment_types
from ...config.catalog.limits import limits
from ...config.catalog.prices import Price, hourly
from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.sizing import (
    GB,
    CannotSize,
    Layout,
    Machine,
    Model,
    Wish,
    layouts,
    machine,
    minimum,
    problems,
    room,
    smallest,
)
from ..output.columns import columns
from ..output.console import write_json, write_line
from ..programs.node import use_bundled_node

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([MBT]?)", re.IGNORECASE)
_UNITS = {"": 1.0, "M": 1e6, "B": 1e9, "T": 1e12}
_SHOWN = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright size`."""
    model = parser.add_argument_group("the model")
    model.add_argument("--parameters", type=_parameters, required=True, metavar="N", help="in all, such as 70B or 1.2T")
    model.add_argument(
        "--active", type=_parameters, metavar="N", help="that a token passes through (mixture of experts)"
    )
    model.add_argument("--experts", type=_count, metavar="N", help="routed experts of a layer")
    model.add_argument("--top-k", type=_count, default=1, metavar="N", help="routed experts of a token (default: 1)")
    model.add_argument("--layers", type=_count, metavar="N", help="layers, which pipeline stages have to divide")
    model.add_argument("--heads", type=_count, metavar="N", help="attention heads, or fewer key-value heads")
    model.add_argument(
        "--bytes",
        type=float,
        default=18.0,
        metavar="N",
        help="bytes of weights, gradients and optimizer state for each parameter (default: 18)",
    )
    model.add_argument(
        "--sharding",
        choices=["optimizer", "full"],
        default="optimizer",
        help="what data-parallel ranks divide: the optimizer state, all but 6 bytes (default), or everything (FSDP)",
    )
    place = parser.add_argument_group("the machine")
    place.add_argument("--on", default="ml.p5.48xlarge", metavar="TYPE", help="instance or UltraServer type")
    place.add_argument("--instances", type=_count, metavar="N", help="so many, rather than the least")
    place.add_argument("--spares", type=_whole, default=0, metavar="N", help="spare instances of each UltraServer")
    place.add_argument(
        "--headroom",
        type=_percent,
        default=20,
        metavar="PERCENT",
        help="of memory for activations and buffers in a layout (default: 20)",
    )
    place.add_argument(
        "--environment", metavar="ENV", help="take facts of types, region and prices from an environment"
    )
    for name, what in (("tensor", "TP"), ("pipeline", "PP"), ("expert", "EP")):
        place.add_argument(f"--{name}", type=_count, metavar="N", help=f"{what} is this")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the sizes as JSON")
    output.add_argument(
        "--manifest", metavar="NAME", help="print the ComputeDomain and the parts of a pod that let a job use NVLink"
    )
    parser.add_argument("--namespace", default="default", metavar="NAMESPACE", help="of the manifest")


def run(args: argparse.Namespace) -> int:
    """Print sizes. Returns 1 when no layout is legal."""
    environment = Project.at(args.project).load(args.environment).environment if args.environment else None
    types = environment_types(environment.instance_types) if environment else catalog()
    try:
        answer = _answer(args, types, environment)
    except CannotSize as error:
        raise CommandError(str(error), "correct the number, or leave it out", 2) from None
    if args.manifest:
        write_line(_manifest(args.manifest, args.namespace, answer))
    elif args.json:
        write_json(answer.report())
    else:
        for line in answer.lines():
            write_line(line)
    return 0 if answer.options else 1


@dataclasses.dataclass(frozen=True)
class _Answer:
    """What the planner found."""

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

    def lines(self) -> list[str]:
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
            "options": [
                {
                    "instances": count,
                    "accelerators": count * self.hardware.accelerators,
                    "usd_per_hour": self.price and self.price.usd * count,
                    "layouts": [
                        dataclasses.asdict(layout)
                        | {"gb": layout.gb(self.model)}
                        | {"reaches": {kind: self._where(span, count) for kind, span in layout.reaches().items()}}
                        for layout in found
                    ],
                }
                for count, found in self.options.items()
            ],
            "refusals": self.refusals,
        }

    def _model(self) -> list[str]:
        model, (shared, routed) = self.model, self.model.parts
        lines = [
            f"{_amount(model.parameters)} parameters × {model.bytes_per_parameter:g} bytes = {model.state / GB:,.0f} GB"
        ]
        if routed:
            of = f" in {model.experts} experts, {model.top_k} for a token" if model.experts else " in experts"
            lines.append(f"  {_amount(shared)} for every token, {_amount(routed)}{of}")
        kept = "nothing" if not model.replicated_bytes else f"{model.replicated_bytes:g} bytes (weights, gradients)"
        lines.append(f"  each data-parallel rank keeps {kept} of a parameter whole; the ranks divide the rest")
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

    def _layouts(self) -> list[str]:
        if not self.options:
            advice = ["Weights and gradients alone are too large for every layout: try `--sharding full`."]
            return ["No layout is legal.", *(f"  {text}" for text in self.refusals or advice)]
        lines: list[str] = []
        for count, found in self.options.items():
            rows: list[tuple[str, ...]] = [
                ("  TP", "PP", "EP", "DP", "GB each", "tensor", "expert", "data", "pipeline")
            ]
            for layout in found[:_SHOWN]:
                sizes = (layout.tensor, layout.pipeline, layout.expert, layout.data)
                where = (self._where(span, count) for span in layout.reaches().values())
                rows.append((*map(str, sizes), f"{layout.gb(self.model):,.1f}", *where))
            more = len(found) - _SHOWN
            lines += [self._machines(count), *columns(rows, right=range(5))]
            lines += [f"  and {more} more that are legal (--json)", ""] if more > 0 else [""]
        return lines[:-1]

    def _machines(self, count: int) -> str:
        hardware = self.hardware
        units = f"{count // hardware.domain_instances} × {hardware.name}"
        instances = f" = {count} instances" if hardware.domain_instances > 1 else ""
        bound = "at least " if self.price and self.price.lower_bound else ""
        cost = f", {bound}${self.price.usd * count:,.0f} an hour on demand" if self.price else ""
        return f"{units}{instances} = {count * hardware.accelerators} accelerators{cost}"

    def _where(self, span: int, count: int) -> str:
        hardware = self.hardware
        if span == 1:
            return "-"
        if hardware.accelerators % span == 0:
            return "in an instance"
        reach = min(hardware.domain, count * hardware.accelerators)
        return f"{hardware.link} domain" if reach % span == 0 else "EFA"

    def _limits(self) -> list[str]:
        free = room(self.hardware, self.headroom)
        domain = inside = "an instance"
        if self.hardware.domain_instances > 1:
            domain = f"the {self.hardware.link} domain of {self.hardware.domain}"
            inside = f"an instance, or {domain} in whole instances,"
        lines = [
            "",
            f"A layout may fill {free:,.1f} of {self.hardware.memory_gb:,.0f} GB; {self.headroom:.0%} are left to "
            "activations and buffers.",
            f"Legal: TP divides {inside} and the heads, and TP × EP divides {domain};",
            "EP divides DP and the experts, and PP divides the layers.",
        ]
        if self.hardware.domain_instances == 1 and self.hardware.plans:
            sold = ", ".join(map(str, limits().training_plan.instance_counts))
            lines.append(f"Training plans sell {sold} instances, and several plans can stand beside each other.")
        return lines


def _answer(args: argparse.Namespace, types: Catalog, environment: Environment | None) -> _Answer:
    model = Model(
        parameters=args.parameters,
        active=args.active,
        experts=args.experts,
        top_k=args.top_k,
        layers=args.layers,
        heads=args.heads,
        bytes_per_parameter=args.bytes,
        replicated_bytes=0.0 if args.sharding == "full" else min(6.0, args.bytes),
    )
    if not 0 < args.bytes < 1000:
        raise CannotSize(f"{args.bytes:g} bytes of a parameter; 18 is usual")
    hardware = machine(types, args.on, args.spares)
    wish, headroom = Wish(args.tensor, args.pipeline, args.expert), args.headroom / 100
    if args.instances:
        counts = [args.instances]
    else:
        least = smallest(model, hardware, headroom, wish)
        counts = _sizes(hardware, least) if least else []
    options = {count: found for count in counts if (found := layouts(model, hardware, count, headroom, wish))}
    return _Answer(
        model=model,
        hardware=hardware,
        headroom=headroom,
        least=minimum(model, hardware),
        options=options,
        refusals=[] if options else _refusals(model, hardware, args.instances, headroom, wish),
        price=hourly(hardware.instance_type, environment.region, environment.prices) if environment else None,
    )


def _sizes(hardware: Machine, least: int) -> list[int]:
    """The least number of instances, and the next that training plans sell: the layouts there talk less."""
    if hardware.domain_instances > 1:
        return [least, least + hardware.domain_instances]
    sold = limits().training_plan.instance_counts
    return sorted({least, *[count for count in sold if count >= least][:2]})


def _refusals(model: Model, hardware: Machine, instances: int | None, headroom: float, wish: Wish) -> list[str]:
    """Why the layout that somebody asked for is illegal. What they left open is one domain for TP, and no stages."""
    if instances is None and wish == Wish():
        return []
    instances = instances or hardware.domain_instances * -(-minimum(model, hardware, headroom) // hardware.domain)
    ranks, pipeline = instances * hardware.accelerators, wish.pipeline or 1
    tensor = wish.tensor or hardware.accelerators
    head = f"TP {tensor}, PP {pipeline}, EP {wish.expert or 1} on {instances} instances with {ranks} accelerators:"
    if ranks % (tensor * pipeline):
        return [head, f"TP {tensor} × PP {pipeline} does not divide {ranks}"]
    layout = Layout(tensor, pipeline, wish.expert or 1, ranks // (tensor * pipeline))
    return [head, *problems(layout, model, hardware, instances, headroom)]


def _manifest(name: str, namespace: str, answer: _Answer) -> str:
    if answer.hardware.domain_instances == 1:
        raise CommandError(
            f"{answer.hardware.name} has its NVLink inside the instance, so a job needs no ComputeDomain",
            "ask for an UltraServer, such as --on ml.u-p6e-gb200x72",
            2,
        )
    if not answer.options:
        raise CommandError("no layout is legal, so there is no job to print", "run the same without --manifest")
    use_bundled_node()
    import cdk8s

    from ...cdk8s_charts.compute_domain import ComputeDomain

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


def _parameters(text: str) -> float:
    match = _SIZE.fullmatch(text.strip())
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r}; write a number with M, B or T, such as 70B")
    return float(match[1]) * _UNITS[match[2].upper()]


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}; a whole number from 1")
    return int(text)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}; a whole number from 0")
    return int(text)


def _percent(text: str) -> int:
    number = _whole(text)
    if number > 95:
        raise argparse.ArgumentTypeError(f"{text!r}; 0 to 95 percent")
    return number


def _amount(parameters: float) -> str:
    return f"{parameters / 1e12:g} T" if parameters >= 1e12 else f"{parameters / GB:,.4g} B"
