"""Running a command inside an environment's VPC, in its CodeBuild project, for APIs that a laptop cannot reach."""

import time
from collections.abc import Callable
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from .account import Account
from .calls import change, find, get
from .deployed import physical_id

_POLL_SECONDS = 5.0
# A build that was stopped or ran out of time has not done what was asked for.
_DONE = {"SUCCEEDED": 0, "FAILED": 1, "FAULT": 1, "STOPPED": 1, "TIMED_OUT": 1}


def run_in_vpc(account: Account, environment: Environment, command: str, write: Callable[[str], None]) -> int:
    """Run a bash command in the runner and hand each line of its output to `write`. Returns its exit code, 0 or 1.

    An interrupt stops the build, so that nothing continues unseen.

    Raises:
        CommandError: there is no runner, or the build did not get as far as the command.
    """
    project = physical_id(account, f"{environment.name}-eks", "AWS::CodeBuild::Project")
    variables = [{"name": "PODWRIGHT_COMMAND", "value": command, "type": "PLAINTEXT"}]
    asked = change(account, "codebuild", "start_build", projectName=project, environmentVariablesOverride=variables)
    build = asked["build"]
    logs = _Logs(account)
    try:
        while True:
            build = get(account, "codebuild", "batch_get_builds", ids=[build["id"]])["builds"][0]
            for line in logs.new_lines(build.get("logs", {})):
                write(line)
            if build["buildStatus"] in _DONE:
                return _outcome(build)
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        # Else it would run on, unseen and paid for, until its own time is up.
        change(account, "codebuild", "stop_build", id=build["id"])
        raise


def _outcome(build: dict[str, Any]) -> int:
    """Exit code of the command; a phase before it that failed is a CommandError."""
    for phase in build.get("phases", ()):
        if (
            phase.get("phaseStatus") in ("FAILED", "FAULT", "TIMED_OUT", "CLIENT_ERROR")
            and phase["phaseType"] != "BUILD"
        ):
            messages = "; ".join(context.get("message", "") for context in phase.get("contexts", ()))
            raise CommandError(
                f"the runner failed in {phase['phaseType']}: {messages}", "see the build in the CodeBuild console"
            )
    return _DONE[build["buildStatus"]]


class _Logs:
    """The log stream of a build, read from where the last reading ended."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._next: str | None = None

    def new_lines(self, location: dict[str, Any]) -> list[str]:
        """What has been written since; nothing before the stream exists."""
        lines: list[str] = []
        while location.get("streamName"):
            request = {
                "logGroupName": location["groupName"],
                "logStreamName": location["streamName"],
                # From the beginning: without it the first page is the newest.
                "startFromHead": True,
            }
            if self._next:
                request["nextToken"] = self._next
            # A stream is named before it exists.
            page = find(self._account, "logs", "get_log_events", ("ResourceNotFoundException",), **request)
            if page is None:
                break
            lines += [event["message"].rstrip("\n") for event in page["events"]]
            # At the end CloudWatch gives the same token again.
            if page["nextForwardToken"] == self._next:
                break
            self._next = page["nextForwardToken"]
        return lines
