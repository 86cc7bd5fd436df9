"""Running one gate, and what it amounts to when AWS or Kubernetes refuse an answer."""

from importlib import import_module
from pathlib import Path

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.settings.gates import GateName
from ...planning.delivery.gate_evidence import Evidence
from ...planning.delivery.gate_table import gate_table, settings_of, why_not
from ..aws.account import Account
from ..kubernetes.kubectl import Refused
from .evidence import evidence_of
from .gate import Context, Result


def gate_names(specified: list[str]) -> list[GateName]:
    """The gates that are meant, in their order, each once. Raises CommandError for what is none."""
    known = list(gate_table())
    if unknown := [name for name in specified if name not in known]:
        raise CommandError(f"there is no gate {unknown[0]}", f"there are {', '.join(known)}", 2)
    return [name for name in known if not specified or name in specified]


def run_gate(
    loaded: LoadedEnvironment, account: Account, project: Path, name: GateName, minutes: float | None = None
) -> Evidence:
    """Run a gate to its end, which takes as many `minutes` as the environment gives it by default.

    What AWS or Kubernetes do not answer fails it, with the permission that is missing.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    gate = gate_table()[name]
    desired = minutes or settings_of(loaded.environment).timeouts.get(name, gate.minutes)
    context = Context(loaded, account, project, gate, desired)
    if reason := why_not(loaded.environment, context.types, gate.name):
        return evidence_of(context, "skipped", Result(True, reason))
    context.say(gate.title)
    module = import_module(f".{gate.name}", __package__)
    try:
        result = module.run(context)
    except CommandError as stop:
        result = Result(False, str(stop), next_step=stop.hint)
    except ClientError as error:
        code = error.response["Error"].get("Code", "")
        step = "you need " + ", ".join(gate.actions) if "Denied" in code or "Unauthorized" in code else _doctor(loaded)
        result = Result(False, f"AWS refuses {error.operation_name}: {error}", next_step=step)
    except Refused as refused:
        message = (str(refused).splitlines() or ["it says nothing"])[-1]
        step = f"you need an access entry on the EKS cluster; `podwright connect {loaded.environment.name}` tries it"
        result = Result(False, f"Kubernetes cannot be asked: {message}", next_step=step)
    except BotoCoreError as error:
        result = Result(False, f"AWS cannot be asked: {error}", next_step="check the network, and run this again")
    if result.skipped:
        return evidence_of(context, "skipped", result)
    if not result.passed and not result.next_step:
        result.next_step = _doctor(loaded)
    return evidence_of(context, "passed" if result.passed else "failed", result)


def _doctor(loaded: LoadedEnvironment) -> str:
    return f"`podwright doctor {loaded.environment.name}` looks for the cause"
