"""Tools that read the files of a project, and ask nothing of AWS."""

from pathlib import Path
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from ...config.errors import CommandError
from .declared import About, Count, EnvironmentName, Word, tool
from .replies import replied
from .session import Session

Size = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?[MBTmbt]$", description="such as 70B or 1.2T")]
Span = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?[mhdw]$", description="such as 4h or 30d")]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d(T[\d:]+Z)?$", description="such as 2027-01-04")]


class DesignTools:
    """What follows from the files."""

    def __init__(self, session: Session) -> None:
        """Answers from the project of a session."""
        self._session = session

    @tool(About("Environments", "podwright project --json", ("environments", "links", "findings")))
    def list_environments(self) -> CallToolResult:
        """The environments of the project in the order of promotion: account, region, cluster, groups and counts."""
        return self._ask(None, "project", "--json")

    @tool(About("Settings", "podwright show ENV --json", ("settings", "subnets")))
    def show_environment(self, environment: EnvironmentName, origins: bool = False) -> CallToolResult:
        """An environment with every default filled in; with origins, the file and line of each value."""
        return self._ask(environment, "show", environment, *["--origins"] * origins, "--json")

    @tool(About("Check", "podwright check ENV --json", ("environments",)))
    def check(self, environment: EnvironmentName | None = None) -> CallToolResult:
        """Every finding about an environment's file, or of all and between them, each with line and hint."""
        return self._ask(environment, "check", *_given(environment), "--json")

    @tool(About("Explain", "podwright explain ID", "string"))
    def explain(self, id: Word) -> CallToolResult:
        """The page of a finding such as NET003, or of an alert such as GpuXid: meaning, source, how to fix it."""
        return self._ask(None, "explain", id)

    @tool(About("Cost", "podwright cost ENV --json", ("items", "stacks", "teams", "upfront", "total", "not_counted")))
    def cost(self, environment: EnvironmentName) -> CallToolResult:
        """What an environment costs in US dollars: upfront, by hour and month, by stack and by team."""
        return self._ask(environment, "cost", environment, "--json")

    @tool(
        About("Size", "podwright size --parameters 70B --json", ("model", "machine", "minimum_accelerators", "options"))
    )
    def size(
        self,
        parameters: Size,
        active: Size | None = None,
        instance_type: Word | None = None,
        count: Count | None = None,
        environment: EnvironmentName | None = None,
    ) -> CallToolResult:
        """How many accelerators a training run needs, and how its parallelism lies on instances of a type."""
        options = {"active": active, "type": instance_type, "count": count, "environment": environment}
        words = [f"--{name}={value}" for name, value in options.items() if value is not None]
        return self._ask(environment, "size", f"--parameters={parameters}", *words, "--json")

    @tool(About("Quotas", "podwright quotas ENV --json", ("engine", "teams", "unallocated", "queues")))
    def quotas(self, environment: EnvironmentName, date: Moment | None = None) -> CallToolResult:
        """What each team is guaranteed, lends and may borrow, now or on a date."""
        return self._ask(environment, "quotas", environment, *([f"--date={date}"] if date else []), "--json")

    @tool(About("Simulate", "podwright simulate ENV --generate 30d --json", ("jobs", "assumptions", "policies")))
    def simulate(
        self,
        environment: EnvironmentName,
        generate: Span | None = None,
        trace: Annotated[str | None, Field(description="a file of the project")] = None,
        against: EnvironmentName | None = None,
    ) -> CallToolResult:
        """Who gets what and when under an environment's quotas: made-up work of a length, or the work of a trace."""
        words = [f"--generate={generate}"] if generate else []
        words += [f"--trace={self._inside(trace)}"] if trace else []
        words += [f"--against={against}"] if against else []
        return self._ask(environment, "simulate", environment, *words, "--json")

    @tool(About("Alerts", "podwright alerts ENV --json", ("alerts",)))
    def alerts(self, environment: EnvironmentName) -> CallToolResult:
        """The alerts of an environment: where each begins, how long that has to hold, what it says."""
        return self._ask(environment, "alerts", environment, "--json")

    @tool(About("Gates", "podwright gate ENV --list --json", "array", asks_aws=True))
    def gates(self, environment: EnvironmentName, last: bool = False) -> CallToolResult:
        """The gates that prove a deployment, and which apply; with last, the evidence of each one's last run."""
        return self._ask(environment, "gate", environment, "--last" if last else "--list", "--json")

    @tool(About("Manifests", "podwright render ENV", "string"))
    def render(self, environment: EnvironmentName, jobs: bool = False, job: Word | None = None) -> CallToolResult:
        """The Kubernetes objects of an environment as YAML; with jobs or a job, the manifests of all or that one."""
        words = ("jobs", environment, *_given(job)) if jobs or job else (environment,)
        return self._ask(environment, "render", *words)

    @tool(About("Report", "podwright report ENV --json", ("environment",)))
    def report(self, environment: EnvironmentName) -> CallToolResult:
        """Everything that the HTML report shows, as data: drawing, quotas, cost, permissions. Synthesizes first."""
        return self._ask(environment, "report", environment, "--json")

    def _ask(self, environment: str | None, *words: str) -> CallToolResult:
        return replied(self._session.reply(environment, self._session.ask(*words)))

    def _inside(self, name: str) -> Path:
        """A file of the project. Raises CommandError for any other, and for addresses."""
        file = (self._session.project / name).resolve()
        if not file.is_relative_to(self._session.project.resolve()) or not file.is_file():
            raise CommandError(f"{name} is not a file of the project", "name it by its path in the project", 2)
        return file


def _given(word: str | None) -> tuple[str, ...]:
    return () if word is None else (word,)
