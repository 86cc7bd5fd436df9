"""Rules on what YuniKorn makes of the quota policy, on what it has no words for, and on others who use it."""

from collections import Counter

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance
from ...quota.node_pools import pool, yunikorn_queue
from ...quota.team_names import team_namespace
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..quota.quotas import policy


@rule("GOV080", WARNING, on=Governance, source="yunikorn-preemption")
def yunikorn_lends_always(governance: Governance) -> Problems:
    """YuniKorn lends the quota of a team that does not lend."""
    for name, team in governance.teams.items():
        if governance.engine == "yunikorn" and team.share == "dont_lend" and team.quota:
            yield Problem(
                ("teams", name, "share"),
                f"share of {name} is dont_lend: YuniKorn lends idle resources, and stops the borrowers' jobs after "
                f"{name} has waited below its guarantee for {governance.yunikorn.preemption_delay_seconds} s",
                "use lend, which says that, or engine kueue, which can keep quotas idle",
            )


@rule("GOV081", INFO, on=Governance, source="yunikorn-sorting")
def yunikorn_has_no_weights(governance: Governance) -> Problems:
    """YuniKorn does not support fair-share weights."""
    borrowing = {team.weight for team in governance.teams.values() if team.share == "lend_and_borrow"}
    departments = {department.weight for department in governance.departments.values()}
    if governance.engine == "yunikorn" and governance.fair_share and max(len(borrowing), len(departments)) > 1:
        yield Problem(
            "teams",
            "the weights differ, and YuniKorn has none: idle resources go to the queue that uses the least in "
            "proportion to its guarantee",
            "accept this, or use engine hyperpod, kueue or kai, which have weights",
        )


@rule("GOV082", INFO, on=Governance, source="yunikorn-sorting")
def yunikorn_divides_always(governance: Governance) -> Problems:
    """YuniKorn does not support FIFO order between teams."""
    if governance.engine == "yunikorn" and governance.teams and not governance.fair_share:
        yield Problem(
            "fair_share",
            "fair_share is off: YuniKorn still orders queues by use in proportion to the guarantee, and only the jobs "
            "of one team by time",
            "accept this, or use another engine",
        )


@rule("GOV083", INFO, on=Governance, source="yunikorn-preemption")
def yunikorn_stops_nothing_inside(governance: Governance) -> Problems:
    """YuniKorn does not preempt within a team."""
    teams = [name for name, team in governance.teams.items() if team.preempt == "lower_priority"]
    if governance.engine == "yunikorn" and len(governance.priorities) > 1 and teams:
        yield Problem(
            "priorities",
            f"preempt of {listed(teams, 'and')} is lower_priority: YuniKorn stops no work for other work of the same "
            "queue; a higher class goes first when something ends",
            "accept this, set `preempt: never`, or use another engine, which stops lower classes",
        )


@rule("GOV084", ERROR, on=Environment, source="yunikorn-queues", final=True)
def yunikorn_names(environment: Environment, types: Catalog) -> Problems:
    """YuniKorn queue name too long or reserved."""
    governance = environment.governance
    if governance.engine != "yunikorn":
        return
    most, pools = limits().cluster.label_value_length, policy(environment, types).flavors
    for name in environment.instance_groups:
        for team, settings in governance.teams.items() if pool(name) in pools else ():
            path = yunikorn_queue(team, settings.department, governance.departments, name)
            if len(path) > most:
                yield Problem(
                    ("governance", "teams", team),
                    f"the queue {path} has {len(path)} characters; jobs name it in a label, which holds {most}",
                    f"shorten the names in it by {len(path) - most} characters",
                )
    own = {*pools, *(team_namespace("yunikorn", team) for team in governance.teams)}
    for name in governance.yunikorn.other_queues:
        if name.lower() in own:
            yield Problem(
                ("governance", "yunikorn", "other_queues", name),
                f"{name} is a queue of podwright's, those of {listed(sorted(own), 'and')}; case does not count",
                "call the group otherwise, or keep their queue under another name",
            )


@rule("GOV085", WARNING, on=Governance, source="yunikorn-gang")
def yunikorn_waits_otherwise(governance: Governance) -> Problems:
    """Gang scheduling settings that YuniKorn replaces."""
    specified = governance.wait_for_pods
    if governance.engine == "yunikorn" and specified:
        for field in sorted(specified.model_fields_set):
            yield Problem(
                ("wait_for_pods", field),
                f"{field} has no effect: YuniKorn holds places for a gang that its pods describe, and does not watch "
                "how they get ready",
                "remove it",
            )


@rule("GOV086", ERROR, on=Governance, source="yunikorn-queues", final=True)
def namespaces_of_others(governance: Governance) -> Problems:
    """Namespace in two YuniKorn queues."""
    counts = Counter(name for queue in governance.yunikorn.other_queues.values() for name in queue.namespaces)
    own = {team_namespace("yunikorn", team): team for team in governance.teams}
    for name, queue in governance.yunikorn.other_queues.items():
        for index, namespace in enumerate(queue.namespaces):
            if governance.engine == "yunikorn" and (counts[namespace] > 1 or namespace in own):
                other = f"that of team {own[namespace]}" if namespace in own else "in another queue too"
                yield Problem(
                    ("yunikorn", "other_queues", name, "namespaces", index),
                    f"{namespace} is {other}; pods of a namespace wait in one queue",
                    "leave it in one of them",
                )


@rule("GOV087", WARNING, on=Governance, source="yunikorn-service")
def queues_of_others(governance: Governance) -> Problems:
    """Existing YuniKorn queues that would be removed."""
    settings = governance.yunikorn
    if governance.engine == "yunikorn" and settings.existing and not settings.other_queues:
        yield Problem(
            ("yunikorn", "existing"),
            f"the cluster runs YuniKorn in {settings.existing} already, and other_queues is empty: its "
            "configuration is one text, so its current queues are lost when podwright writes the teams'",
            f"copy them from `kubectl get configmap yunikorn-configs -n {settings.existing} -o yaml` to other_queues, "
            "or accept this if it has none",
        )
