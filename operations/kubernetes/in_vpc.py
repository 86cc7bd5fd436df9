"""kubectl: from here where a way leads to the API, else in the runner inside the VPC, a build a call.

What pods are given as variables does not leave the runner, because its output is kept in a log.
"""

import base64
import gzip
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.runner import run_in_vpc
from .kubectl import Kubectl, Refused, way

_OUT, _SAID, _CODE = "podwright-out ", "podwright-said ", "podwright-code "
# CodeBuild takes 5,500 characters of environment variables altogether.
_MOST: Final = 5200
POLL_SECONDS: Final = 30.0
"""Between two looks: a build a call takes about a minute."""
# Variables of containers, wherever they stand, and copies of manifests, which hold them too.
_STRIP: Final = (
    "import json,sys\n"
    "def s(v):\n"
    "  if isinstance(v,dict): return {k:s(w) for k,w in v.items() if k not in ('env','managedFields') "
    "and 'last-applied' not in k}\n"
    "  return [s(w) for w in v] if isinstance(v,list) else v\n"
    "json.dump(s(json.load(sys.stdin)),sys.stdout)\n"
)


def kubectl_of(project: Path, environment: Environment, account: Account) -> Kubectl:
    """Kubectl on the cluster of a gate's environment. Raises CommandError where there is no cluster."""
    kubectl = way(project, environment, account)
    if kubectl:
        return kubectl
    if account.endpoint:
        raise CommandError(
            "the sandbox's Kubernetes API does not answer", "`podwright sandbox stop`, and run this again"
        )
    return InVpc(Path(), True, account, environment)


@dataclass(frozen=True, slots=True)
class InVpc(Kubectl):
    """kubectl in the environment's CodeBuild project."""

    account: Account
    environment: Environment

    def run(self, *arguments: str, specified: str = "", repeatable: bool = True) -> str:
        """Run kubectl once in a build and return its output.

        Raises:
            Refused: kubectl failed; the text is its error message.
            CommandError: The runner inside the VPC failed.
        """
        command = _command(arguments, specified)
        if len(command) > _MOST:
            raise CommandError(
                f"what kubectl is given is too long for the runner in the VPC: {len(command)} characters of {_MOST}",
                f"run `podwright connect {self.environment.name}` in another window, then this again",
            )
        lines: list[str] = []
        run_in_vpc(self.account, self.environment, command, lines.append)
        code = [line.removeprefix(_CODE) for line in lines if line.startswith(_CODE)]
        message = "\n".join(line.removeprefix(_SAID) for line in lines if line.startswith(_SAID))
        if code != ["0"]:
            raise Refused(message or f"the runner inside the VPC ended without an answer: {' '.join(lines[-3:])}")
        packed = "".join(line.removeprefix(_OUT) for line in lines if line.startswith(_OUT))
        return gzip.decompress(base64.b64decode(packed)).decode().strip() if packed else ""

    def stream(self, write: Callable[[str], None], *arguments: str) -> None:
        """Hand each line that kubectl prints to `write`, as the build's log has it."""
        if run_in_vpc(self.account, self.environment, f"kubectl {shlex.join(arguments)}", write):
            raise Refused("kubectl failed in the runner inside the VPC; what it said stands above")


def _command(arguments: tuple[str, ...], specified: str) -> str:
    """The command for bash: the answer compressed and marked, so that nothing else of the log is taken for it."""
    line = f"kubectl {shlex.join(arguments)}"
    if specified:
        packed = base64.b64encode(gzip.compress(specified.encode(), mtime=0)).decode()
        line = f"echo {packed} | base64 -d | gunzip | {line}"
    if arguments[0] == "get" and "--output=json" in arguments:
        strip = base64.b64encode(_STRIP.encode()).decode()
        line = f'{line} | python3 -c "$(echo {strip} | base64 -d)"'
    return (
        f"set -o pipefail; f=$(mktemp -d); ({line}) >$f/out 2>$f/said; c=$?; gzip -9 <$f/out | base64 -w 2000 "
        f"| sed 's/^/{_OUT}/'; sed 's/^/{_SAID}/' $f/said; echo {_CODE}$c; rm -r $f; exit 0"
    )
