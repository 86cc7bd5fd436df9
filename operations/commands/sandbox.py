"""Start, stop or inspect the sandbox, the stand-in for AWS that `podwright deploy` uses without an account.

The sandbox listens on the loopback interface only. Its state is in .podwright/sandbox of the project. `stop` keeps the
state, `reset` deletes it. The sandbox stops after four hours without a request, or after the time of `start --idle`;
`status` says so.

`kubernetes` installs a real Kubernetes control plane for the sandbox: upstream programs, built once into the user's
cache. `install ENV` builds only the parts that the cluster of an environment needs.
"""

import argparse
import subprocess
import sys
from dataclasses import asdict

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ..arguments import add_project, as_time
from ..aws.account import require_sandbox
from ..aws.sandbox_server import IDLE_MINUTES, REAL_NODES, Running, ended_idle, reset, start, status, stop
from ..output.console import write_json, write_line, write_text

_VERBS = {
    "start": "start the sandbox, or print its address",
    "status": "print the address of the sandbox",
    "stop": "stop the sandbox; its state stays",
    "reset": "stop the sandbox and delete its state",
}
_CLUSTERS = {
    "": "What new EKS clusters have is not on record.",
    "real": "New EKS clusters have a real Kubernetes control plane.",
    "store": "New EKS clusters are stores: they keep jobs and queues, and nothing schedules, admits or preempts. "
    "`podwright sandbox kubernetes install ENV` builds a real control plane for an environment.",
}
_LACKS = (
    "Clusters whose environment needs {} are stores: `podwright sandbox kubernetes install ENV` builds what one needs."
)
_REAL_NODES = (
    "The first {} of each cluster {}: containerd runs their containers, with this machine's CPUs, memory and programs. "
    "They report the instance type's, and advertise GPUs, EFA interfaces and Neuron devices that this machine lacks."
)
_SIMULATED = "{} nodes are simulated{}: their pods run nothing."
_CHECKED_AGAIN = "The sandbox checks this again for each new cluster; `podwright status` shows a cluster's result."
_SLURM = "Slurm clusters have a real Slurm, of Debian's packages."
_AT_REST = {
    "status": "The sandbox does not run.",
    "stop": "The sandbox is stopped; `podwright sandbox start` continues with what it holds.",
    "reset": "The sandbox is stopped and empty.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright sandbox`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, help_text in _VERBS.items():
        verb = verbs.add_parser(name, help=help_text)
        verb.add_argument(
            "--port", metavar="PORT", type=int, help="port to listen on (default: the previous port, or 4599)"
        )
        verb.add_argument(
            "--region",
            metavar="REGION",
            default="us-west-2",
            help="AWS region of the printed variables (default: us-west-2)",
        )
        verb.add_argument(
            "--account",
            metavar="ID",
            default=SANDBOX_ACCOUNT,
            help=f"account of the printed variables (default: {SANDBOX_ACCOUNT})",
        )
        verb.add_argument("--json", action="store_true", help="print port, process and variables as JSON")
        if name == "start":
            verb.add_argument(
                "--kubernetes",
                choices=["real", "store"],
                help="control plane of new EKS clusters: real, or a store of objects without "
                "controllers (default: real if `podwright sandbox kubernetes install` "
                "installed it)",
            )
            verb.add_argument(
                "--real-nodes",
                type=int,
                metavar="N",
                help="nodes of each EKS cluster whose containers really run, as root on Linux (default: "
                f"$PODWRIGHT_SANDBOX_REAL_NODES, or {REAL_NODES}; fewer where memory is short)",
            )
            verb.add_argument(
                "--idle",
                type=as_time,
                default=IDLE_MINUTES * 60,
                metavar="TIME",
                help=f"stop after this time without a request (default: {IDLE_MINUTES / 60:g}h; 0: never)",
            )
        verb.set_defaults(verb=_server, action=name)
    kubernetes = verbs.add_parser("kubernetes", help="install, show or remove a real Kubernetes control plane")
    kubernetes.add_argument(
        "action", choices=["install", "status", "remove"], help="install, show or remove the control plane"
    )
    kubernetes.add_argument(
        "environments",
        nargs="*",
        metavar="ENV",
        help="install: build only what these environments need (names or files; default: every part)",
    )
    kubernetes.add_argument("--json", action="store_true", help="print the installed parts as JSON")
    kubernetes.add_argument(
        "--minor",
        action="append",
        default=[],
        metavar="1.33",
        help="install: also this minor version of Kubernetes; may be repeated",
    )
    kubernetes.add_argument(
        "--pytorch", action="store_true", help="install: also PyTorch and Ray, with which jobs run on real nodes"
    )
    kubernetes.set_defaults(verb=_kubernetes)
    for verb in verbs.choices.values():
        # The same as the whole command has, so that it may stand behind the verb.
        add_project(verb)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return args.verb(args)


def _kubernetes(args: argparse.Namespace) -> int:
    """Run the sandbox's own program, as for its server: nothing of the product imports the sandbox."""
    require_sandbox()
    if args.minor and args.action != "install":
        raise CommandError(f"--minor is for `install`, not `{args.action}`", "leave it out", 2)
    if args.pytorch and args.action != "install":
        raise CommandError(f"--pytorch is for `install`, not `{args.action}`", "leave it out", 2)
    if args.environments and args.action != "install":
        raise CommandError(f"ENV is for `install`, not `{args.action}`", "leave it out", 2)
    command = [sys.executable, "-m", "podwright.sandbox.control_plane", args.action, *args.environments]
    command += [f"--project={args.project}"]
    command += [*(f"--minor={minor}" for minor in args.minor), *(["--pytorch"] if args.pytorch else [])]
    return subprocess.run([*command, *(["--json"] if args.json else [])]).returncode


def _server(args: argparse.Namespace) -> int:
    """Returns 0; 1 when `status` finds no sandbox. Raises SandboxError when it cannot be started or stopped."""
    running = _act(args)
    if args.json:
        described = asdict(running) | {"environment": running.environment(args.region, args.account)} if running else {}
        write_json({"running": running is not None} | described)
    elif running:
        write_line(f"The sandbox listens at {running.endpoint} (process {running.pid}, log {running.log}).")
        write_line(_CLUSTERS[running.kubernetes])
        if running.kubernetes == "real" and running.missing_parts:
            write_line(_LACKS.format(" or ".join(running.missing_parts)))
        if running.kubernetes == "real":
            _write_nodes(running)
        if running.slurm is not None:
            write_line(f"Slurm clusters have no Slurm: {running.slurm}." if running.slurm else _SLURM)
        write_line("For boto3, the AWS CLI and cdk:")
        variables = running.environment(args.region, args.account)
        write_text("  export " + " ".join(f"{name}={value}" for name, value in variables.items()))
    else:
        write_line(_AT_REST[args.action])
        if ended := ended_idle(args.project):
            write_line(f"It stopped by itself {ended}; `podwright sandbox start` continues with what it holds.")
    return 1 if args.action == "status" and running is None else 0


def _write_nodes(running: Running) -> None:
    """Print which nodes are real, and why not more are."""
    count = running.real_nodes
    if count:
        write_line(_REAL_NODES.format(*(("node", "is real") if count == 1 else (f"{count} nodes", "are real"))))
    reason = f", since {running.why_simulated}" if running.why_simulated else ""
    write_line(_SIMULATED.format("All other" if count else "All", reason))
    if running.more_real:
        write_line(f"    → {running.more_real}")
    if reason:
        write_line(_CHECKED_AGAIN)


def _act(args: argparse.Namespace) -> Running | None:
    action, project = args.action, args.project
    if action == "start":
        require_sandbox()
        if args.real_nodes is not None and args.real_nodes < 0:
            raise CommandError(f"--real-nodes is {args.real_nodes}; allowed: 0 or more", "0 simulates all nodes", 2)
        idle = args.idle / 60
        return start(project, args.port, kubernetes=args.kubernetes, idle_minutes=idle, real_nodes=args.real_nodes)
    if action == "stop":
        stop(project)
    elif action == "reset":
        reset(project)
    return status(project)
