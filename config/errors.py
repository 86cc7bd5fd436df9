"""What podwright raises, and what each kind of failure carries.

    PodwrightError
    ├── InvalidFile             a file that cannot be read as what it should be: its findings
    ├── InvalidSettings         settings that a construct cannot build: its findings; a ValueError as well
    ├── UnknownName             a name that no table of ours has; a LookupError as well
    │   ├── UnknownRegion
    │   ├── UnknownInstanceType
    │   └── UnknownFinding
    ├── InvalidValue            a value that nothing can be made of; a ValueError as well
    │   ├── InvalidZoneId
    │   ├── InvalidOverride
    │   ├── CannotSize          a model that no layout can be found for
    │   └── UnreadableTrace     text that is no trace of work: its line, and what to do next
    ├── CommandError            a command that ends early: a sentence, what to do next, and the exit code
    │   ├── Rejection           one that an agent asked for, with what it had found before
    │   ├── SandboxError        the sandbox cannot be started or stopped
    │   └── NotConnected        a node takes no session of Systems Manager
    ├── Unseen                  a question that an account or a cluster does not answer
    ├── Refused                 kubectl failed: what it said
    ├── CommandFailed           a command on a node of a Slurm cluster failed: what it said
    ├── NoPlacement             pods that find no place among the nodes of a simulation
    ├── EventsUnseen            CloudFormation does not show its stacks or their events
    ├── QueryError              Prometheus refuses a query: its own words
    ├── StepFailed              a step of a promotion did not pass
    ├── RequestFailed           a server of artifacts that cannot be reached, or refuses; an OSError as well
    ├── NotWritten              a plan's values cannot be written into an environment file
    └── NothingLeft             an earlier purchase is over, and left nothing that keeps one from buying

Subclasses stand beside what they are about. Code that runs elsewhere (in Lambda, as the purchase engine does too, on a
node, in the sandbox's server) has its own, since it ships without this module.
"""

from .findings import Finding, Level, SourcePosition


class PodwrightError(Exception):
    """The base of everything that podwright raises on purpose."""


class InvalidFile(PodwrightError):
    """A file that cannot be read as what it should be. Carries every finding about it."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(f"{finding.place or ''} {finding.message}".strip() for finding in findings))
        self.findings = findings

    @classmethod
    def because(
        cls, id: str, message: str, hint: str, position: SourcePosition | None = None, path: str = ""
    ) -> "InvalidFile":
        """A file that one error keeps from being read."""
        return cls([Finding(id, Level.ERROR, path, message, hint, position)])


class InvalidSettings(PodwrightError, ValueError):
    """Settings that cannot be built. `findings` says why, each with what to do next."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(f"{item.id} {item.path}: {item.message} ({item.hint})" for item in findings))
        self.findings = findings


class UnknownName(PodwrightError, LookupError):
    """A name that none of podwright's tables has."""


class InvalidValue(PodwrightError, ValueError):
    """A value that nothing can be made of."""


class CommandError(PodwrightError):
    """A command that ends early. It is printed as a sentence and what to do next, and becomes the exit code."""

    def __init__(self, message: str, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code
