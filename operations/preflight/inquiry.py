"""Looking at an account with every check at once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from ...config.catalog.instance_types import environment_types
from ...config.findings import Finding
from ...config.loading.load import LoadedEnvironment
from ...config.loading.lookups import keep_endpoint_zones, lookup_key
from ..aws.account import Account, Patience
from .check import Ask, Outcome, run_checks
from .kubernetes_api import api_groups
from .quota_codes import read_codes, write_codes

SECONDS: Final = 8.0
"""How long checks may take; with what comes before them, nobody waits more than ten seconds."""
SANDBOX_SECONDS: Final = 60.0
"""The same for the sandbox, which shares its processors with whoever asks, and reads its own data when first asked."""
_MODULES: Final = ("account", "place", "network", "quota", "plan", "storage", "eks", "image")


def preflight(
    loaded: LoadedEnvironment,
    account: Account,
    project: Path,
    *,
    seconds: float | None = None,
    left_out: Sequence[str] = (),
) -> list[Outcome]:
    """What the checks find in `account`, in order of id; those `left_out` do not run.

    After `seconds` (by default SECONDS, or SANDBOX_SECONDS) the checks that still wait for an answer are skipped.
    """
    seconds = seconds or (SANDBOX_SECONDS if account.endpoint else SECONDS)
    for name in _MODULES:
        import_module(f".{name}_checks", __package__)
    environment = loaded.environment
    codes = read_codes(project)
    ask = Ask(
        environment=environment,
        account=account.id,
        types=environment_types(environment.instance_types),
        aws=account.reader(Patience(2, max(5.0, seconds / 2), attempts=2, connections=25)),
        project=project,
        now=datetime.now(UTC),
        api_groups=partial(api_groups, account),
        quota_codes=codes,
        endpoint_zones={},
        seen_codes={service: dict(names) for service, names in codes.items()},
    )
    outcomes = run_checks(ask, loaded.source, seconds, left_out)
    write_codes(project, ask.seen_codes)
    # What the sandbox offers is nothing to build an account's network on.
    if not account.endpoint:
        keep_endpoint_zones(project, lookup_key(environment.account, environment.region), dict(ask.endpoint_zones))
    return outcomes


def findings_of(outcomes: Sequence[Outcome]) -> list[Finding]:
    """The findings of all checks."""
    return [finding for outcome in outcomes for finding in outcome.findings]
