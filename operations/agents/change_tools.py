"""Tools that plan changes of a cluster, and tools that make them after a person has said yes.

What a person is asked comes from a plan that the server made, and the answer from the client's own question to its
user: the model has no argument for it. A client that cannot ask gets the plan and the command to type.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from ...config.errors import CommandError, PodwrightError
from . import audit
from .declared import About, EnvironmentName, Word, tool
from .plans import Plan, deployment, digest_of_files, purchase, replacement, scaling, still_true, stop, submission
from .replies import replied
from .serving import session_of
from .session import Session

PlanId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="of the plan that was shown")]
NodeId = Annotated[str, Field(pattern=r"^(hyperpod-)?i-[0-9a-f]{8,17}$")]
Nodes = Annotated[list[NodeId], Field(min_length=1, max_length=25)]
Dollars = Annotated[int, Field(ge=1, le=100_000_000)]
Changed = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.]+=[^\s].*$", max_length=200, description="such as nodes=4")]
_PLAN: Final[dict[str, Any]] = {
    "plan_id": {"type": ["string", "null"], "description": "for the tool named in `tool`; null where it may not"},
    "tool": {"type": "string"},
    "question": {"type": "string", "description": "what a person will be asked"},
    "refusal": {"type": "string", "description": "why only a person may do it, by `command`; else empty"},
}
_OUTCOME: Final[dict[str, Any]] = {
    "applied": {"type": "boolean"},
    "why_not": {"type": "string"},
    "question": {"type": "string"},
}


class Consent(BaseModel):
    """What a person types."""

    environment: str = Field(title="Environment", description="type the environment's name to go ahead")


class NobodyToAsk(BaseModel):
    """The client has no way to ask its user."""


Consented = ElicitationResult[Consent]


def asks(name: str) -> Callable[..., Elicit[Consent] | NobodyToAsk]:
    """How the person's consent to a plan of one tool is had: asked for by the client, never an argument."""

    def ask(environment: str, plan_id: str, context: Context[Any, Any]) -> Elicit[Consent] | NobodyToAsk:
        session = session_of(context)
        plan = _waiting(session, name, environment, plan_id)
        capabilities = context.client_capabilities
        asked = capabilities.elicitation if capabilities else None
        if asked is None or (asked.form is None and asked.url is not None):
            return NobodyToAsk()
        simulated = (
            "Simulated: nothing of AWS changes, and nothing costs money.\n" * session.place(environment)["simulated"]
        )
        return Elicit(f"{plan.question}\n{simulated}Type {environment} to go ahead.", Consent)

    return ask


class PlanTools:
    """What a change would do, and the command for it."""

    def __init__(self, session: Session) -> None:
        """Plans are kept by a session until they are made."""
        self._session = session

    @tool(About("Plan a deployment", "podwright diff ENV --json", ("digest", "stacks", "cost"), True, more=_PLAN))
    def diff(self, environment: EnvironmentName) -> CallToolResult:
        """What a deployment would change: effects, nodes renewed, data at risk, dollars; the plan_id for deploy."""
        return self._shown(deployment(self._session, environment))

    @tool(About("Plan a submission", "podwright render jobs ENV JOB", "string", True, more=_PLAN))
    def plan_submit(
        self, environment: EnvironmentName, job: Word, settings: tuple[Changed, ...] = ()
    ) -> CallToolResult:
        """The manifests of a job of the file, and the plan_id for submit_job; with settings for this run alone."""
        return self._shown(submission(self._session, environment, job, settings))

    @tool(About("Plan to stop a job", "podwright jobs ENV --json", ("jobs",), True, more=_PLAN))
    def plan_stop(self, environment: EnvironmentName, job: Word, team: Word | None = None) -> CallToolResult:
        """What stopping a job would end, and the plan_id for stop_job."""
        return self._shown(stop(self._session, environment, job, team))

    @tool(About("Plan a replacement", "podwright status ENV --json", ("nodes",), True, more=_PLAN))
    def plan_replace(self, environment: EnvironmentName, nodes: Nodes) -> CallToolResult:
        """What replacing nodes would do, and the plan_id for replace_nodes."""
        return self._shown(replacement(self._session, environment, nodes))

    @tool(About("Plan a number of nodes", "podwright scale ENV GROUP 8 --dry-run", ("count",), True, more=_PLAN))
    def plan_scale(
        self,
        environment: EnvironmentName,
        group: Word,
        count: Annotated[int, Field(ge=0, le=10_000)],
        remove: Annotated[tuple[NodeId, ...], Field(description="where it shrinks: exactly the nodes that go")] = (),
        stop_jobs: bool = False,
    ) -> CallToolResult:
        """What another number of nodes for a group would do; the plan_id for scale_group."""
        return self._shown(scaling(self._session, environment, group, count, remove, stop_jobs))

    @tool(About("Plan a purchase", "podwright capacity search ENV PLAN --json", ("regions",), True, more=_PLAN))
    def plan_purchase(self, environment: EnvironmentName, plan: Word, max_upfront_usd: Dollars) -> CallToolResult:
        """The cheapest offer for a training plan of the file under a limit; the plan_id for reserve_capacity."""
        return self._shown(purchase(self._session, environment, plan, max_upfront_usd))

    def _shown(self, plan: Plan) -> CallToolResult:
        reply = self._session.reply(plan.environment, plan.output)
        id = None
        if not plan.refusal:
            self._session.plans[id := plan.id] = plan
        shown = {"plan_id": id, "tool": plan.tool, "question": plan.question, "refusal": plan.refusal}
        return replied(reply | shown | {"command": plan.command})


class ChangeTools:
    """What changes something, each bound to a plan that was shown."""

    def __init__(self, session: Session) -> None:
        """Makes changes with the credentials of whoever started the server."""
        self._session = session

    @tool(
        About("Deploy", "podwright deploy ENV --plan ID", asks_aws=True, changes="aws", destructive=True, more=_OUTCOME)
    )
    def deploy(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("deploy"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Make a deployment that diff planned, after the user has said yes. Takes minutes."""
        return self._made("deploy", environment, plan_id, consent, context)

    @tool(About("Submit a job", "podwright submit ENV JOB", asks_aws=True, changes="aws", more=_OUTCOME))
    def submit_job(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("submit_job"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Hand a job that plan_submit showed to its cluster, after the user has said yes."""
        return self._made("submit_job", environment, plan_id, consent, context)

    @tool(About("Stop a job", "podwright stop ENV JOB", asks_aws=True, changes="aws", destructive=True, more=_OUTCOME))
    def stop_job(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("stop_job"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Take a job that plan_stop showed off its cluster, after the user has said yes."""
        return self._made("stop_job", environment, plan_id, consent, context)

    @tool(
        About(
            "Replace nodes",
            "podwright node replace ENV NODE",
            asks_aws=True,
            changes="aws",
            destructive=True,
            more=_OUTCOME,
        )
    )
    def replace_nodes(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("replace_nodes"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Replace the nodes that plan_replace showed, after the user has said yes."""
        return self._made("replace_nodes", environment, plan_id, consent, context)

    @tool(
        About(
            "Scale",
            "podwright scale ENV GROUP 8 --plan ID",
            asks_aws=True,
            changes="aws",
            destructive=True,
            more=_OUTCOME,
        )
    )
    def scale_group(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("scale_group"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Write, remove and deploy what plan_scale showed, after the user has said yes. Takes minutes."""
        return self._made("scale_group", environment, plan_id, consent, context)

    @tool(About("Buy capacity", "podwright capacity reserve ENV PLAN", asks_aws=True, changes="aws", more=_OUTCOME))
    def reserve_capacity(
        self,
        environment: EnvironmentName,
        plan_id: PlanId,
        consent: Annotated[Consented, Resolve(asks("reserve_capacity"))],
        context: Context[Any, Any],
    ) -> CallToolResult:
        """Buy the offer that plan_purchase showed, once and under its limit, after the user has said yes."""
        return self._made("reserve_capacity", environment, plan_id, consent, context)

    def _made(
        self, name: str, environment: str, plan_id: str, consent: Consented, context: Context[Any, Any]
    ) -> CallToolResult:
        """Make a change that somebody consented to, once; record it before and after."""
        session, plan = self._session, _waiting(self._session, name, environment, plan_id)
        shown = {"command": plan.command, "question": plan.question}
        if isinstance(consent, AcceptedElicitation) and isinstance(consent.data, NobodyToAsk):
            why = f"this client cannot ask its user; a person can type `{plan.command}`"
            return self._not(environment, shown, why)
        # From here the plan is used up, whatever comes: a call that is repeated finds none.
        del session.plans[plan_id]
        facts = {"tool": name, "environment": environment, "id": plan_id, "command": plan.command}
        facts |= session.place(environment) | {"client": _client(context)}
        if not _is_yes(consent, environment):
            audit.record(session.project, **facts, step="declined")
            return self._not(environment, shown, "the user did not say yes, and nothing was changed")
        if not still_true(session, plan):
            raise _stale(session, plan, _STALE[name])
        audit.record(session.project, **facts, step="begun")
        try:
            output = session.ask(*plan.words, *plan.consent)
        except PodwrightError as error:
            audit.record(session.project, **facts, step="failed", reason=str(error))
            raise
        audit.record(session.project, **facts, step="made", exit_code=output.code)
        return replied(session.reply(environment, output) | {"applied": True, "why_not": "", "question": plan.question})

    def _not(self, environment: str, shown: dict[str, str], why: str) -> CallToolResult:
        return replied(self._session.place(environment) | shown | {"applied": False, "why_not": why})


_STALE: Final = {
    "submit_job": "the job is another",
    "stop_job": "the job is another, or in another state",
    "replace_nodes": "a node has another status",
    "reserve_capacity": "another offer is the cheapest, or its price has changed",
}


def _waiting(session: Session, name: str, environment: str, plan_id: str) -> Plan:
    """The plan of that id. Raises CommandError where none waits, it is another tool's, or a file has changed since."""
    plan = session.plans.get(plan_id)
    if plan is None or (plan.tool, plan.environment) != (name, environment):
        raise CommandError(
            f"no plan {plan_id} of {name} for {environment} waits",
            "plan it again: a plan is made once, by the tool that it names, and goes when the server ends",
        )
    if plan.files != digest_of_files(session, environment):
        raise _stale(session, plan, "a file of the project has changed")
    return plan


def _stale(session: Session, plan: Plan, why: str) -> CommandError:
    """That a plan is not true any more. It is gone, and that is recorded."""
    session.plans.pop(plan.id, None)
    facts = {"tool": plan.tool, "environment": plan.environment, "id": plan.id, "command": plan.command}
    audit.record(session.project, **facts, step="stale", reason=why)
    return CommandError(f"plan {plan.id} is outdated: {why}", "plan it again, and show it")


def _is_yes(consent: Consented, environment: str) -> bool:
    """Whether a person was asked, and typed the name."""
    if not isinstance(consent, AcceptedElicitation) or not isinstance(consent.data, Consent):
        return False
    return consent.data.environment.strip() == environment


def _client(context: Context[Any, Any]) -> str:
    """The client as it calls itself."""
    known = context.session.client_params
    return f"{known.client_info.name} {known.client_info.version}" if known else ""
