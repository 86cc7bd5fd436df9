"""What `--help` says beside its arguments, with two examples, and what a wrong command line is told."""

import argparse
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from shutil import get_terminal_size
from textwrap import fill, wrap
from typing import Any, Final, NoReturn

_WIDEST: Final = 120
_WHOLE: Final = {"break_on_hyphens": False, "break_long_words": False}


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Paragraphs are filled; what is indented, such as examples, stays as it is. No word is broken at a hyphen."""

    def __init__(self, prog: str) -> None:
        """As wide as the terminal, and no wider than one reads."""
        super().__init__(prog, width=min(get_terminal_size().columns, _WIDEST))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        return "\n\n".join(part if "\n  " in f"\n{part}" else fill(part, width, **_WHOLE) for part in parts)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, **_WHOLE)


class CommandParser(argparse.ArgumentParser):
    """Says in a sentence what is wrong with a command line, and what to type; the usage is left to `--help`."""

    def error(self, message: str) -> NoReturn:
        """Print it and end with 2."""
        # Only a wrong command line needs them, and `--help` loads nothing.
        from ..config.errors import CommandError
        from .output.console import write_error

        name = self.prog.removeprefix("podwright").strip()
        example = re.search(r"^  (podwright .*)$", self.epilog or "", re.MULTILINE)
        such = f"write it such as `{example[1]}`; " if example and "did you mean" not in message else ""
        text = f"{name}: {plain(message)}" if name else plain(message)
        write_error(CommandError(text, f"{such}`{self.prog} --help` lists what there is", 2))
        self.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is no choice, with the closest one."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        close = get_close_matches(str(value), known, 1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise argparse.ArgumentError(action, f"{value!r}; allowed: {', '.join(known)}{meant}")


def plain(message: str) -> str:
    """What argparse says of a command line, in our words."""
    for pattern, instead in _PLAIN.items():
        message = re.sub(pattern, instead, message)
    return message


_PLAIN: Final = {
    r"^the following arguments are required: ([^,]+)$": r"\1 is missing",
    r"^the following arguments are required: (.+)$": r"\1 are missing",
    r"^argument (.+): expected .* arguments?$": r"\1 needs a value",
    r"^argument (.+): not allowed with argument (.+)$": r"\1 and \2 exclude each other",
    r"^argument (.+): invalid int value: (.+)$": r"\1: \2; allowed: a whole number",
    r"^argument (.+): invalid float value: (.+)$": r"\1: \2; allowed: a number",
    r"^argument (?=.+:)": "",
}


def unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """What is wrong with words that a parser has no argument for."""
    option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if option is None:
        return f"too many arguments: {' '.join(words)}"
    known = [name for name in parser._option_string_actions if name.startswith("--")]
    close = [SYNONYMS[option]] if SYNONYMS.get(option) in known else get_close_matches(option, known, 1, 0.75)
    return f"there is no option {option}" + (f"; did you mean {close[0]}?" if close else "")


def called_parser(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command, or of the verb of it, that a command line calls."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for position, word in enumerate(words):
                if word in action.choices:
                    return called_parser(action.choices[word], words[position + 1 :])
    return parser


SYNONYMS: Final = {
    "--output": "--out",
    "--file": "--out",
    "--folder": "--out",
    "--html": "--out",
    "--picture": "--out",
    "--force": "--yes",
    "--env": "--environment",
    "--cluster": "--environment",
    "--instance-type": "--type",
    "--on": "--type",
    "--instances": "--count",
    "--minutes": "--wait",
    "--seconds": "--timeout",
    "--hours": "--days",
    "--format": "--json",
}
"""Spellings that somebody may choose for an option, each with the one that there is. No command has one of them."""


def parsers(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A command and the verbs below it, each by what one types."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                yield from parsers(f"{name} {verb}", below)


def describe(name: str, parser: argparse.ArgumentParser) -> None:
    """Give the help of a command and of its verbs their width and their examples, and each verb a description."""
    for each, below in parsers(name, parser):
        below.formatter_class = HelpFormatter
        below.epilog = examples(each)
        for action in below._actions:
            if isinstance(action, argparse._SubParsersAction):
                for choice in action._choices_actions:
                    verb = action.choices[choice.dest]
                    verb.description = verb.description or f"{str(choice.help)[:1].upper()}{str(choice.help)[1:]}."


def examples(command: str) -> str:
    """The examples of a command, as they stand below its help."""
    return "\n".join(["examples:", *(f"  podwright {line}" for line in EXAMPLES[command])])


EXAMPLES: Final = {
    "init": (
        "init my-clusters --interactive",
        "init my-clusters --scenario two-teams --region us-east-2 --zones use2-az1,use2-az2",
    ),
    "import": ("import my-cluster --region us-east-2", "import my-cluster --name prod --json"),
    "check": ("check", "check prod --json"),
    "project": ("project", "project --json"),
    "preflight": ("preflight prod", "preflight prod --policy > preflight-policy.json"),
    "size": ("size --parameters 70B --type ml.p5en.48xlarge", "size --parameters 671B --active 37B --environment prod"),
    "cost": ("cost prod", "cost prod --json"),
    "prices": ("prices fetch prod --dry-run", "prices fetch prod"),
    "spend": ("spend prod --days 7", "spend prod --bill"),
    "budgets": ("budgets prod", "budgets prod --apply"),
    "quotas": ("quotas prod", "quotas prod --date 2027-01-04"),
    "simulate": ("simulate prod --generate 30d --seed 1", "simulate prod --trace trace.csv --against staging"),
    "forecast": ("forecast prod pretrain", "forecast prod pretrain --duration 3d"),
    "show": ("show prod", "show prod --origins"),
    "render": ("render prod", "render prod --out manifests"),
    "submit": ("submit prod pretrain", "submit prod pretrain --set nodes=4 --dry-run"),
    "run": (
        "run prod --group h200 -- nvidia-smi",
        "run prod --team research --group h200 --nodes 2 -- torchrun train.py",
    ),
    "jobs": ("jobs prod", "jobs prod --team research --by-priority"),
    "why": ("why prod pretrain", "why prod pretrain --json"),
    "logs": ("logs prod pretrain --rank 0 --follow", "logs prod pretrain --slowest"),
    "stop": ("stop prod pretrain", "stop prod pretrain --team research"),
    "alerts": ("alerts prod", "alerts prod --rules > rules.yaml"),
    "dashboards": ("dashboards preview prod", "dashboards export prod --out dashboards"),
    "explain": ("explain NET003", "explain GpuXid"),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/podwright", "completion zsh"),
    "mcp": ("mcp --project my-clusters", "mcp --sandbox --allow-changes"),
    "schema": ("schema > environment.schema.json", "schema --part > environment-part.schema.json"),
    "diff": ("diff prod", "diff prod --require-approval --out change.json"),
    "scale": ("scale prod h200 8", "scale prod h200 2 --remove i-0123456789abcdef0 i-0123456789abcdef1"),
    "drift": ("drift prod", "drift prod --all --json"),
    "pipeline": ("pipeline show", "pipeline bootstrap"),
    "deploy": ("deploy prod --sandbox", "deploy prod"),
    "canary": ("canary prod", "canary prod --wait 60m"),
    "promote": ("promote --dry-run", "promote --from staging --to prod"),
    "status": ("status prod", "status prod --watch"),
    "gate": ("gate prod --list", "gate prod quotas --evidence evidence"),
    "doctor": ("doctor prod", "doctor bundle.zip --json"),
    "collect": ("collect prod", "collect prod --out bundle.zip"),
    "destroy": ("destroy dev --dry-run", "destroy dev"),
    "sandbox": ("sandbox start", "sandbox kubernetes install"),
    "chart": ("chart fetch", "chart outdated"),
    "assets": ("assets fetch", "assets fetch prod --update"),
    "kernels": ("kernels build", "kernels build --architecture arm64"),
    "images": ("images list prod", "images mirror prod"),
    "image": ("image check my-image.tar --type ml.p5en.48xlarge", "image check rootfs --architecture arm64"),
    "connect": ("connect prod", 'connect prod --run "kubectl get nodes"'),
    "workers": ("workers shared-platform", "workers shared-platform --worker shared-platform-ohio --renew"),
    "shell": ("shell i-0123456789abcdef0", "shell i-0123456789abcdef0 --environment prod"),
    "upgrade": ("upgrade prod eks", "upgrade prod nodes"),
    "node": ("node reboot prod i-0123456789abcdef0", "node replace prod i-0123456789abcdef0"),
    "drill": ("drill kinds", "drill fault dev --node i-0123456789abcdef0 --fault xid-reboot"),
    "capacity": ("capacity search prod h200-q1", "capacity reserve prod h200-q1 --max-upfront 500000"),
    "bench": ("bench show --environment prod", "bench show results.json --out nodes.svg"),
    "report": ("report prod", "report prod --live --out prod.html"),
    "prices fetch": ("prices fetch prod --dry-run", "prices fetch prod"),
    "pipeline show": ("pipeline show", "pipeline show --json"),
    "pipeline synth": ("pipeline synth", "pipeline synth --stand-in"),
    "pipeline bootstrap": ("pipeline bootstrap", "pipeline bootstrap --assembly cdk.out --out policies"),
    "pipeline deploy": ("pipeline deploy", "pipeline deploy staging prod --yes"),
    "pipeline cache": ("pipeline cache", "pipeline cache --project my-clusters"),
    "pipeline wait": ("pipeline wait --execution ID", "pipeline wait --execution ID --timeout 2h"),
    "pipeline protect": ("pipeline protect prod", "pipeline protect prod --assembly cdk.out"),
    "sandbox start": ("sandbox start", "sandbox start --kubernetes store --idle 8h"),
    "sandbox status": ("sandbox status", "sandbox status --json"),
    "sandbox stop": ("sandbox stop", "sandbox stop --project my-clusters"),
    "sandbox reset": ("sandbox reset", "sandbox reset --project my-clusters"),
    "sandbox kubernetes": ("sandbox kubernetes install two-teams", "sandbox kubernetes status --json"),
    "upgrade eks": ("upgrade prod eks", "upgrade prod eks --to 1.35 --write"),
    "upgrade nodes": ("upgrade prod nodes", "upgrade prod nodes --group h200 --batch 2 --wait-between 10m"),
    "upgrade scripts": ("upgrade prod scripts", "upgrade prod scripts --replace --batch 2"),
    "upgrade podwright": ("upgrade prod podwright --from ../old/.venv", "upgrade prod podwright --from v1.2 --all"),
    "node reboot": ("node reboot prod i-0123456789abcdef0", "node reboot prod i-0123456789abcdef0 --wait 30m"),
    "node replace": ("node replace prod i-0123456789abcdef0", "node replace prod i-0123456789abcdef0 --wait 90m"),
    "node health-check": (
        "node health-check prod i-0123456789abcdef0 --check stress",
        "node health-check prod --group h200 --wait 2h",
    ),
    "node quarantine": (
        'node quarantine prod i-0123456789abcdef0 --reason "slow NVLink"',
        'node quarantine prod i-0123456789abcdef0 --reason "slow NVLink" --json',
    ),
    "node release": ("node release prod i-0123456789abcdef0", "node release prod i-0123456789abcdef0 --json"),
    "drill fault": (
        "drill fault dev --node i-0123456789abcdef0 --fault xid-reboot",
        "drill fault dev --node i-0123456789abcdef0 --fault pod-loss --wait 30m",
    ),
    "drill kinds": ("drill kinds", "drill kinds --json"),
    "drill history": ("drill history dev", "drill history dev --json"),
    "capacity search": (
        "capacity search prod h200-q1",
        "capacity search prod --type ml.p5en.48xlarge --count 16 --duration 28d",
    ),
    "capacity reserve": ("capacity reserve prod h200-q1", "capacity reserve prod h200-q1 --max-upfront 500000"),
    "capacity show": ("capacity show prod", "capacity show prod h200-q1 --json"),
    "capacity extend": ("capacity extend prod h200-q1", "capacity extend prod h200-q1 --duration 14d"),
}
"""Two for each command and each verb, as one types them."""
