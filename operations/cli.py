"""The `podwright` command: a table of sub-commands, each a module that is imported only when it is called.

Modules of this room import at their top. Within functions stay the dispatch here, and where only one way of a command
needs them: boto3, botocore, rich and plotly, which take longer to load than most commands to run; and cdk8s with the
charts that are made of it, since importing it starts Node.

Exit codes: 0 done, 1 failed checks or a failed deployment, 2 a file or a command line that cannot be understood,
130 interrupted by the user.
"""

import argparse
import atexit
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Final, NamedTuple

from .command_help import CommandParser, HelpFormatter, called_parser, describe, unknown

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What the system says of a disk that is full, or of a user's share of it."""


class Command(NamedTuple):
    """A sub-command: a module of this room with `add_arguments(parser)` and `run(args) -> int`."""

    name: str
    module: str
    help: str


AREAS: Final = {
    "Design": "init import check explain project show size cost prices quotas simulate forecast report render capacity "
    "schema completion mcp",
    "Deploy": "preflight diff deploy scale canary destroy sandbox chart assets kernels images image workers",
    "Run": "submit run jobs why logs stop connect",
    "Observe": "status doctor collect dashboards alerts spend budgets bench shell",
    "Promote and maintain": "gate promote pipeline drift upgrade node drill",
}
"""What commands are for, in the order in which one comes to them."""

COMMANDS: Final = (
    Command("init", ".commands.init", "create a project: an environment file and a cdk.json, ready to deploy"),
    Command(
        "import", ".adoption.command", "write an environment file from a running HyperPod cluster, and compare both"
    ),
    Command("check", ".commands.check", "check environment files and print every finding"),
    Command(
        "project", ".commands.project", "print the environments of the project, and the links between their clusters"
    ),
    Command("preflight", ".preflight.command", "check the account for reasons why a deployment would fail"),
    Command("size", ".commands.size", "compute how many GPUs a training run needs, and its parallel layout"),
    Command(
        "cost", ".commands.cost", "print what an environment costs: upfront, by hour and month, by stack and by team"
    ),
    Command("prices", ".spend.prices_command", "ask AWS for its prices, and write them into the file"),
    Command("spend", ".spend.command", "print what teams used and what it cost"),
    Command(
        "budgets", ".spend.budgets_command", "print what teams used of their accelerator-hour budgets, and enforce them"
    ),
    Command("quotas", ".commands.quotas", "print what each team is guaranteed, lends and may borrow"),
    Command(
        "simulate",
        ".simulation.command",
        "simulate which job gets which nodes, and when, under an environment's policy",
    ),
    Command(
        "forecast", ".simulation.forecast_command", "forecast when and where a job starts, and which jobs it would stop"
    ),
    Command("show", ".commands.show", "print an environment with all defaults, and its subnets"),
    Command("render", ".commands.render", "write the Kubernetes objects of an environment as YAML"),
    Command("submit", ".commands.submit", "submit a job to the cluster: check it, render its manifest, apply it"),
    Command("run", ".jobs.run_command", "run a command as a job on an instance group, without an entry in the file"),
    Command("jobs", ".jobs.list_command", "list the jobs of a cluster: state, queue, GPUs, and why each waits"),
    Command("why", ".jobs.why_command", "explain why a job waits or fails: queue, quota, preemption, events"),
    Command("logs", ".jobs.logs_command", "print the log of a job, and name its slowest rank"),
    Command("stop", ".jobs.stop_command", "stop a job: delete it with all its objects"),
    Command("alerts", ".commands.alerts", "print the alerts of an environment, also as Prometheus rules"),
    Command("dashboards", ".dashboards.command", "write dashboards for Grafana, or draw them into one HTML file"),
    Command("explain", ".commands.explain", "print the page of a finding or an alert, or list all findings"),
    Command("completion", ".commands.completion", "print a script that completes commands on the Tab key"),
    Command(
        "mcp", ".agents.command", "serve the project to an agent: read, plan, propose, and change after a confirmation"
    ),
    Command("schema", ".commands.schema", "print the JSON Schema of environment files, for editors"),
    Command("diff", ".effects.command", "print what a deployment would change, and the effect of each change"),
    Command("drift", ".drift.command", "compare running resources with the templates of the last deployment"),
    Command(
        "pipeline",
        ".pipeline.command",
        "promote commits by a pipeline: print its steps, prepare its accounts, deploy it",
    ),
    Command("deploy", ".commands.deploy", "check, synthesize and deploy an environment to AWS or to the sandbox"),
    Command("scale", ".scaling.command", "change the number of nodes of a group, in the file and on the cluster"),
    Command("canary", ".canary.command", "deploy one node of each instance group, and wait for the nodes' verdicts"),
    Command("promote", ".promotion.command", "promote the project's files from environment to environment"),
    Command("status", ".live.command", "print the current stacks, instance groups and nodes"),
    Command("gate", ".gates.command", "prove that a deployed environment works, and save the evidence"),
    Command("doctor", ".doctor.command", "diagnose a cluster: what is wrong, why, and what to do"),
    Command("collect", ".doctor.collect_command", "collect what doctor reads into a file without secrets"),
    Command("destroy", ".teardown.command", "delete the stacks of an environment"),
    Command("sandbox", ".commands.sandbox", "start, stop or reset the stand-in for AWS on this machine"),
    Command("chart", ".artifacts.charts", "fetch the Helm charts of the project, and lock their digests"),
    Command("assets", ".artifacts.assets", "fetch the archives that nodes install from, and lock their digests"),
    Command("kernels", ".artifacts.kernels", "build the benchmark programs for GPUs, and lock their digests"),
    Command("images", ".artifacts.images", "list the container images of an environment, or mirror them to ECR"),
    Command("image", ".artifacts.image_check", "check the EFA and NCCL software of a container image"),
    Command(
        "connect", ".kubernetes.connect", "connect to the Kubernetes API: a kubeconfig, and a tunnel to a private API"
    ),
    Command("workers", ".workers.command", "connect a MultiKueue manager with its worker clusters"),
    Command("shell", ".commands.shell", "open a shell on a node"),
    Command(
        "upgrade", ".upgrade.command", "print which versions are behind, in which order to upgrade, and upgrade nodes"
    ),
    Command("node", ".nodes.command", "reboot, replace, check or quarantine nodes"),
    Command("drill", ".drills.command", "inject a fault into a node, and measure the recovery"),
    Command("capacity", ".capacity.command", "find, buy and inspect training plans: capacity paid in advance"),
    Command("bench", ".benchmarks.command", "print and draw the benchmark results of nodes"),
    Command("report", ".report.command", "write an HTML report of an environment: drawing, quotas, cost, permissions"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command with `arguments` (default: those of the process) and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # Importing makes objects that all stay: looking for garbage among them is a tenth of what a short command takes.
    gc.set_threshold(1_000_000)
    # At the end Python would look once more, through everything: another tenth.
    atexit.register(gc.freeze)
    # pydantic asks every installed package whether it brings a plugin; ours has use for none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows a question mark; that is no reason to stop.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        code = _run(_parsed(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("\npodwright: interrupted\n")
        return 130
    except EOFError:
        # Ctrl-D at a question, or a terminal that went away.
        sys.stderr.write("\npodwright: a question got no answer, so nothing of what it asked about was done\n")
        return 1
    except BrokenPipeError:
        # The reader (`| head`) has enough.
        _leave_stdout()
        return 0
    except OSError as error:
        if error.errno not in _FULL:
            raise
        sys.stderr.write(f"podwright: {error}\n    → free some of the disk, and run this again\n")
        _leave_stdout()
        return 1
    return code


def _leave_stdout() -> None:
    """Write what still can be written; Python would complain once more when it closes stdout at exit."""
    with suppress(OSError):
        sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line says. Names in `more` may also come after options, which argparse alone refuses."""
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    parser = parser_of(called)
    if called and called not in (names := [command.name for command in COMMANDS]):
        close = get_close_matches(called, names, 1)
        meant = f"did you mean {close[0]}?" if close else "`podwright --help` lists all"
        parser.error(f"there is no command {called}; {meant}")
    parsed, late = parser.parse_known_args(arguments)
    if late and ("more" not in parsed or any(word.startswith("-") for word in late)):
        below = called_parser(parser, arguments)
        below.error(unknown(below, late))
    if late:
        parsed.more += late
    return parsed


def parser_of(
    called: str | None = None, kind: type[argparse.ArgumentParser] = CommandParser
) -> argparse.ArgumentParser:
    """The parser with all command names, and the arguments of the one that is called: the others stay unimported.

    Without a name it has the arguments of all. `kind` is the class of it and of those of the commands.
    """
    parser = kind(
        prog="podwright",
        usage="podwright [-h] [--version] COMMAND ...",
        description="One YAML file to a running AI training cluster on Amazon SageMaker HyperPod.",
        epilog=overview(get_terminal_size().columns) if called == "" else None,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    # Where nothing is called they are listed by area below, not one after the other.
    subparsers = parser.add_subparsers(
        prog="podwright", metavar="COMMAND", required=True, help=argparse.SUPPRESS if called == "" else None
    )
    for command in COMMANDS:
        subparser = subparsers.add_parser(command.name, help=command.help)
        if called in (None, command.name):
            module = import_module(command.module, __package__)
            subparser.description = module.__doc__
            module.add_arguments(subparser)
            describe(command.name, subparser)
            subparser.add_argument(
                "--project",
                metavar="DIR",
                type=Path,
                help="folder of the project (default: the nearest folder upward with environments/ or cdk.json)",
            )
            subparser.set_defaults(run=module.run)
    return parser


def overview(width: int) -> str:
    """All commands by area, in lines of so many characters."""
    helps = {command.name: command.help for command in COMMANDS}
    lines = []
    for area, names in AREAS.items():
        lines += ["", f"{area}:"]
        for name in names.split():
            lines += wrap(helps[name], width, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)
    return "\n".join([*lines[1:], "", "`podwright COMMAND --help` says more, and `podwright init` begins."])


def _run(parsed: argparse.Namespace) -> int:
    """The exit code of a sub-command. Errors that a user can act on are printed: 2 for invalid files, 1 for AWS's."""
    from ..config.errors import CommandError, InvalidFile, PodwrightError
    from .output.console import settle, write_error, write_refusal

    if parsed.project is not None and not parsed.project.is_dir():
        write_error(CommandError(f"--project {parsed.project} is not a folder"))
        return 2
    parsed.project = (parsed.project or _project_folder(Path.cwd())).resolve()
    try:
        return parsed.run(parsed)
    except InvalidFile as error:
        write_refusal(error.findings)
        return 2
    except CommandError as stop:
        write_error(stop)
        return stop.code
    except PodwrightError as error:
        # Such as what kubectl says in the middle of a command.
        hint = "run the command again; if it fails in the same way, fix the cause that it names"
        write_error(CommandError(str(error), hint))
        return 1
    except Exception as error:
        if not is_from_aws(error):
            raise
        write_error(CommandError(f"AWS says: {error}", "check permissions, quotas and the region, and run this again"))
        return 1
    finally:
        # What was under way when it stopped is not any more.
        settle()


def is_from_aws(error: Exception) -> bool:
    """Whether boto3 raised it. A command that never imported boto3 does not import it for this."""
    exceptions = sys.modules.get("botocore.exceptions")
    return exceptions is not None and isinstance(error, exceptions.BotoCoreError | exceptions.ClientError)


def _project_folder(start: Path) -> Path:
    """The nearest folder from `start` upward that is a project; `start` itself when there is none."""
    return next(
        (
            folder
            for folder in (start, *start.parents)
            if (folder / "environments").is_dir() or (folder / "cdk.json").is_file()
        ),
        start,
    )


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: reading package metadata takes a tenth of a second."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"podwright {version('podwright')}\n")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
