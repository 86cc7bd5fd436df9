"""Commands that stop where an environment has errors."""

import sys

from ...config.errors import CommandError
from ...config.findings import Finding, counted, errors
from ...config.loading.load import LoadedEnvironment
from ...planning.rules import findings
from ..output.console import write_findings


def stop_on_errors(loaded: LoadedEnvironment) -> list[Finding]:
    """The findings of an environment.

    Raises:
        CommandError: there are errors that nobody accepted. They are printed: such a file means nothing sure.
    """
    resolved_findings = findings(loaded.environment, loaded.source)
    if bad := errors(resolved_findings):
        write_findings(bad, sys.stderr)
        raise CommandError(
            f"{loaded.environment.name} has {counted(bad)}, so what it would build is not sure", "fix them first"
        )
    return resolved_findings
