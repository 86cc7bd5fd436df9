"""Compute how many GPUs a training run needs, and which parallel layouts fit on them.

Write sizes as 70B or 1.2T. The command prints its arithmetic and every limit. To check your own layout, use --tensor,
--pipeline, --expert and --expert-tensor.
"""

import argparse
import re

from ...config.catalog.instance_types import catalog, environment_types
from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.sizing import CannotSize, Model, SizingRequest
from ..environments.sizes import compute_domain, sizes
from ..output.console import write_answer, write_text

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([MBT])", re.IGNORECASE)
_KINDS = (
    ("tensor", "TP"),
    ("pipeline", "PP"),
    ("expert", "EP"),
    ("expert-tensor", "ETP, tensor parallelism of experts,"),
)
_UNITS = {"M": 1e6, "B": 1e9, "T": 1e12}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright size`."""
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--parameters",
        type=_parameters,
        required=True,
        metavar="N",
        help="parameters of the model, such as 70B or 1.2T",
    )
    model.add_argument(
        "--active", type=_parameters, metavar="N", help="parameters that are active for a token (mixture of experts)"
    )
    model.add_argument("--experts", type=_count, metavar="N", help="routed experts of each layer")
    model.add_argument("--top-k", type=_count, default=1, metavar="N", help="routed experts of each token (default: 1)")
    model.add_argument("--layers", type=_count, metavar="N", help="layers; pipeline stages divide them")
    model.add_argument(
        "--heads", type=_count, metavar="N", help="attention heads, or key-value heads if there are fewer"
    )
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
        help="shard the optimizer state over data-parallel ranks, all but 6 bytes (default), or everything (FSDP)",
    )
    location = parser.add_argument_group("the machine")
    location.add_argument("--type", default="ml.p5.48xlarge", metavar="TYPE", help="instance or UltraServer type")
    location.add_argument(
        "--count", type=_count, metavar="N", help="number of instances (default: the smallest that fits)"
    )
    location.add_argument("--spares", type=_whole, default=0, metavar="N", help="spare instances of each UltraServer")
    location.add_argument(
        "--headroom",
        type=_percent,
        default=20,
        metavar="PERCENT",
        help="percent of memory for activations and buffers (default: 20)",
    )
    location.add_argument("--environment", metavar="ENV", help="use types, region and prices of this environment")
    for name, what in _KINDS:
        location.add_argument(f"--{name}", type=_count, metavar="N", help=f"{what} of the layout to check")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the sizes as JSON")
    output.add_argument(
        "--manifest", metavar="NAME", help="print the ComputeDomain and the pod fields with which a job uses NVLink"
    )
    parser.add_argument(
        "--namespace", default="default", metavar="NAMESPACE", help="namespace of the manifest (default: default)"
    )


def run(args: argparse.Namespace) -> int:
    """Print sizes. Returns 1 when no layout is legal."""
    environment = Project.at(args.project).load(args.environment).environment if args.environment else None
    types = environment_types(environment.instance_types) if environment else catalog()
    try:
        answer = sizes(
            types,
            environment,
            _model(args),
            on=args.type,
            spares=args.spares,
            instances=args.count,
            headroom=args.headroom / 100,
            wish=SizingRequest(args.tensor, args.pipeline, args.expert, args.expert_tensor),
        )
    except CannotSize as error:
        raise CommandError(str(error), "correct the number, or leave it out", 2) from None
    if args.manifest:
        write_text(compute_domain(answer, args.manifest, args.namespace))
    else:
        write_answer(args.json, answer.report(), answer.lines())
    return 0 if answer.options else 1


def _model(args: argparse.Namespace) -> Model:
    return Model(
        parameters=args.parameters,
        active=args.active,
        experts=args.experts,
        top_k=args.top_k,
        layers=args.layers,
        heads=args.heads,
        bytes_per_parameter=args.bytes,
        replicated_bytes=0.0 if args.sharding == "full" else min(6.0, args.bytes),
    )


def _parameters(text: str) -> float:
    match = _SIZE.fullmatch(text.strip())
    if not match or not float(match[1]):
        meant = f"{text}B" if text.isascii() and text.isdigit() else "70B"
        raise argparse.ArgumentTypeError(f"{text!r}; write a number with M, B or T, such as {meant}")
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
