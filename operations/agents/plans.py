"""Changes that are shown before they are made: what each does, the question for a person, and the command for it.

A plan is named by what it was made from. Where the files or the cluster are not as they were, the same request has
another name, so a plan that is no longer true is known by asking again.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ..output.money import money
from .answers import Answer, typed
from .workplace import Workplace

_SHOWN: Final = 8
_LONGEST: Final = 120


@dataclass(frozen=True, slots=True)
class Plan:
    """One change that nobody has made yet."""

    tool: str
    """The tool that makes it."""
    environment: str
    words: tuple[str, ...]
    """The command that makes it, and asks."""
    consent: tuple[str, ...]
    """What is added to it once a person has said yes."""
    question: str
    """What the person is asked, without the line that says what to type."""
    files: str
    """Digest of the files that it was made from."""
    observed: Any
    """What of AWS or the cluster it was made from."""
    output: Answer
    """What the command that looked at it answered."""
    request: dict[str, Any] = field(default_factory=dict)
    """The arguments that it was asked for with."""
    refusal: str = ""
    """Why only a person may do it, at a terminal; empty where it may be done after a yes."""

    @property
    def id(self) -> str:
        """Names the change and what it was made from."""
        return _digest(self.tool, self.environment, self.words, self.files, self.observed)

    @property
    def command(self) -> str:
        """What a person types for it."""
        return typed(self.words)


def deployment(workplace: Workplace, environment: str) -> Plan:
    """The deployment of what the file says now. Harm that the file does not approve is for a person to name."""
    output = workplace.ask("diff", environment, "--json")
    document = output.document
    harm = [need for need in document["approval"]["reasons"] if need["refused"] and not need["approved"]]
    allowed = [f"--allow={need['name']}" for need in harm]
    refusal = ""
    if not document["stacks"]:
        refusal = f"{environment} is deployed as its file says: there is nothing to change"
    elif harm:
        refusal = "; ".join(f"{need['id']} {need['name']}: {need['why']}" for need in harm)
    return Plan(
        tool="deploy",
        environment=environment,
        words=("deploy", environment, f"--plan={document['digest']}", *dict.fromkeys(allowed)),
        consent=("--yes", "--json"),
        question="\n".join(_deployment_lines(document)),
        files=digest_of_files(workplace, environment),
        observed=None,
        refusal=refusal,
        output=output,
    )


def _deployment_lines(document: dict[str, Any]) -> list[str]:
    """What the deployment does and costs, in a few lines."""
    cost = document["cost"]
    return [
        f"Deploy {document['environment']} to account {document['account']} in {document['region']}?",
        *_effect_lines(document),
        f"Cost a month: {money(cost['before'])} before, {money(cost['after'])} after.",
    ]


def _effect_lines(document: dict[str, Any]) -> list[str]:
    """What a change set does, and how long that takes."""
    changes = [change for stack in document["stacks"] for change in stack["changes"]]
    counts = Counter(change["action"] for change in changes)
    numbers = ", ".join(f"{count} to {action}" for action, count in sorted(counts.items()))
    least, most = document["duration"]["minutes"]
    nodes = [f"{row['nodes']} of {row['group']}: {row['what']}" for row in document["nodes_restarted"]]
    fates = {True: "kept", False: "deleted"}
    data = [f"{row['name']}, {fates[bool(row['kept'])]}: {row['holds']}" for row in document["data_at_risk"]]
    return [
        f"Resources: {numbers or 'none'}.",
        f"Nodes renewed or gone: {_some(nodes)}.",
        f"Data at risk: {_some(data)}.",
        f"Time: {least} to {most} minutes, without steps of unpublished duration.",
    ]


def submission(workplace: Workplace, environment: str, job: str, settings: Sequence[str] = ()) -> Plan:
    """A job of the file handed to its cluster, with other settings for this run."""
    loaded = workplace.load(environment)
    if job not in loaded.environment.jobs:
        known = ", ".join(loaded.environment.jobs) or "none"
        raise CommandError(f"{environment} has no job {job}", f"known: {known}")
    chosen = loaded.environment.jobs[job]
    set_words = tuple(f"--set={setting}" for setting in settings)
    output = workplace.ask("render", "jobs", environment, job)
    lines = [
        f"Submit job {job} of team {chosen.team or 'nobody'} to {environment}?",
        *(f"With {plain_text(setting)}." for setting in settings),
        f"It may stop work of a lower priority: `podwright forecast {environment} {job}` says whose.",
    ]
    return Plan(
        tool="submit_job",
        environment=environment,
        words=("submit", environment, job, *set_words),
        consent=("--json",),
        question="\n".join(lines),
        files=digest_of_files(workplace, environment),
        observed=None,
        request={"job": job, "settings": list(settings)},
        output=output,
    )


def stop(workplace: Workplace, environment: str, job: str, team: str | None = None) -> Plan:
    """A job taken off its cluster. It is another plan when the job is another, or in another state."""
    words = ("--team=" + team,) if team else ()
    output = workplace.ask("jobs", environment, *words, "--json")
    rows = [row for row in output.document["jobs"] if row["name"] == job]
    if len(rows) != 1:
        teams = ", ".join(str(row["team"]) for row in rows)
        hint = f"say which team's: {teams}" if rows else f"`podwright jobs {environment}` lists them"
        raise CommandError(f"{len(rows) or 'no'} jobs of {environment} are called {job}", hint)
    row = rows[0]
    lines = [
        f"Stop job {job} of team {plain_text(row['team'])} on {environment}?",
        f"It is {plain_text(row['state'])}, with {row['accelerators'] or 0} accelerators, since {row['created']}.",
        "What it wrote to file systems and buckets stays; what it did since its last checkpoint is lost.",
    ]
    return Plan(
        tool="stop_job",
        environment=environment,
        words=("stop", environment, job, *words),
        consent=("--json",),
        question="\n".join(lines),
        files=digest_of_files(workplace, environment),
        observed=[row["name"], row["team"], row["created"], row["state"]],
        request={"job": job, "team": team},
        output=output,
    )


def replacement(workplace: Workplace, environment: str, nodes: Sequence[str]) -> Plan:
    """Nodes given back for new ones. It is another plan when one of them has another status, or other jobs run."""
    output = workplace.ask("status", environment, "--json")
    known = {node["id"]: node for node in output.document["nodes"]}
    named = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in nodes))
    if missing := [name for name in named if name not in known]:
        raise CommandError(
            f"no node of {environment}: {', '.join(missing)}", f"`podwright status {environment}` lists them"
        )
    chosen = [known[name] for name in named]
    lines = [
        f"Replace {len(chosen)} of {len(known)} nodes of {environment}?",
        *(f"{node['id']} of group {node['group']}, {node['type']}, is {node['status']}." for node in chosen),
        "Jobs on them stop and start again from their last checkpoint. Everything on the nodes' own disks is lost.",
    ]
    observed = [[node["id"], node["group"], node["status"]] for node in chosen]
    return Plan(
        tool="replace_nodes",
        environment=environment,
        words=("node", "replace", environment, *named),
        consent=("--yes", "--json"),
        question="\n".join(lines),
        files=digest_of_files(workplace, environment),
        observed=observed,
        request={"nodes": named},
        output=output,
    )


def scaling(
    workplace: Workplace, environment: str, group: str, count: int, remove: Sequence[str] = (), stop_jobs: bool = False
) -> Plan:
    """Another number of nodes for a group: in the file, on the cluster and deployed; fewer need the names of theirs."""
    flags = (*["--stop-jobs"] * stop_jobs, *(["--remove", *remove] if remove else ()))
    request = ("scale", environment, group, str(count), *flags)
    output = workplace.ask(*request, "--dry-run", "--json")
    document = output.document
    refusal = "; ".join(document["blocked"])
    if document["done"]:
        refusal = f"{group} has {count} nodes, in the file and on the cluster: there is nothing to do"
    counts, changes = document["count"], document["changes"]
    jobs = [f"{job['name']} of {job['team'] or 'no team'} on {job['size']} nodes" for job in document["jobs"]]
    cost = [document["cost"][when]["summary"].partition(";")[0] for when in ("before", "after")]
    lines = [
        f"Scale {group} of {environment} from {counts['cluster']} to {count} nodes, in account {document['account']}?",
        f"Nodes that go: {_some([node['node'] for node in document['leaving']])}.",
        f"Jobs that stop: {_some(jobs)}.",
        *(_effect_lines(changes) if changes else ()),
        f"Cost by the file: {cost[0]}; afterwards: {cost[1]}.",
    ]
    return Plan(
        tool="scale_group",
        environment=environment,
        words=(*request, f"--plan={document['digest']}"),
        consent=("--yes", "--json"),
        question="\n".join(lines),
        files=digest_of_files(workplace, environment),
        observed=None,
        refusal=refusal,
        output=output,
    )


def purchase(workplace: Workplace, environment: str, plan: str, max_upfront_usd: int) -> Plan:
    """A training plan of the file bought, once: the cheapest offer that fits and is in one part, and no other."""
    limit = min(max_upfront_usd, workplace.max_upfront_usd)
    output = workplace.ask("capacity", "search", environment, plan, "--json")
    offers = [offer for region in output.document["regions"] for offer in region["offers"] if len(offer["parts"]) == 1]
    if not offers:
        raise CommandError(f"no offer in one part fits {plan} now", "the answer of capacity_search has what comes near")
    offer = offers[0]
    price, of_it = offer["upfront"], f"{plan} (offer {plain_text(offer['id'])})"
    refusal = ""
    if price is None or offer["currency"] != "USD":
        refusal = f"{of_it} has no price in US dollars"
    elif price > limit:
        refusal = (
            f"{of_it} costs {money(price)}, and the limit is {money(limit)}: the lower of {money(max_upfront_usd)}, "
            f"the limit of the request, and {money(workplace.max_upfront_usd)}, that of the server (--max-upfront)"
        )
    lines = [
        f"Buy training plan {plan} of {environment} for {money(price or 0)}, charged immediately and not refundable?",
        f"Offer {plain_text(offer['id'])}: {offer['hours']:g} hours from {offer['start']} to {offer['end']}.",
        f"Limit: {money(limit)}.",
    ]
    return Plan(
        tool="reserve_capacity",
        environment=environment,
        words=("capacity", "reserve", environment, plan, f"--offering={offer['id']}"),
        # The command looks at the price once more, and buys nothing that has become dearer.
        consent=("--yes", f"--max-upfront={limit}", "--json"),
        question="\n".join(lines),
        files=digest_of_files(workplace, environment),
        observed=[offer["id"], price, limit],
        request={"plan": plan, "max_upfront_usd": max_upfront_usd},
        refusal=refusal,
        output=output,
    )


Planner = Callable[..., Plan]
PLANNERS: Final[dict[str, Planner]] = {
    "submit_job": submission,
    "stop_job": stop,
    "replace_nodes": replacement,
    "reserve_capacity": purchase,
}
"""How each change is looked at again before it is made. Deploying and scaling do that themselves: `--plan`."""


def still_true(workplace: Workplace, plan: Plan) -> bool:
    """Whether the plan is what the same request would be now; commands with `--plan` hold themselves to it."""
    planner = PLANNERS.get(plan.tool)
    return planner is None or planner(workplace, plan.environment, **plan.request).id == plan.id


def plain_text(text: Any) -> str:
    """Text of a cluster in a question: one line, cut, without what a terminal or a reader could take for more."""
    shown = re.sub(r"[^\w .:/@=+,()-]", "?", str(text))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _some(items: Sequence[str]) -> str:
    """The first few of a list in a sentence."""
    shown = ", ".join(map(plain_text, items[:_SHOWN]))
    return f"{shown} and {len(items) - _SHOWN} more" if len(items) > _SHOWN else shown or "none"


def digest_of_files(workplace: Workplace, environment: str) -> str:
    """Digest of everything that a synthesis reads: the environment's files, and those of the project."""
    loaded: LoadedEnvironment = workplace.load(environment)
    own = [*loaded.source.files.values(), *(workplace.project / name for name in ("podwright.yaml", "cdk.json"))]
    return _digest([_content(file) for file in sorted(own)])


def _content(file: Path) -> list[str]:
    return [str(file), hashlib.sha256(file.read_bytes()).hexdigest()] if file.is_file() else [str(file)]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=list).encode()).hexdigest()[:32]
