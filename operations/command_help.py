"""What `--help` of a command says beside its arguments: text as wide as the terminal, and two examples."""

import argparse
from shutil import get_terminal_size
from textwrap import fill, wrap
from typing import Final

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
    "quotas": ("quotas prod", "quotas prod --at 2027-01-04"),
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
}
"""Two for each, as one types them."""
