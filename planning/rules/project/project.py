"""Rules on the environments of a project beside one another. `podwright check` runs them over several environments."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ....config.catalog.instance_types import Catalog, environment_types
from ....config.findings import Finding, Path, dotted, listed
from ....config.loading.load import LoadedEnvironment
from ....config.settings.environment import Environment
from ...quota.links import overlap
from ..framework.acknowledgements import acknowledged
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule, rules_for
from ..run import findings


@dataclass(frozen=True, slots=True)
class ProjectView:
    """Environments that are looked at together. Paths of problems begin with the name of one of them."""

    loaded: Mapping[str, LoadedEnvironment]

    @property
    def environments(self) -> dict[str, Environment]:
        """The environments by name, in the order of promotion."""
        return {name: item.environment for name, item in self.loaded.items()}

    def types(self, name: str) -> Catalog:
        """The instance catalog as one of them knows it."""
        return environment_types(self.loaded[name].environment.instance_types)


def project_findings(loaded: Mapping[str, LoadedEnvironment]) -> dict[str, list[Finding]]:
    """What the rules of projects find, by the environment in whose files it stands.

    Acknowledgements of that environment count. One that fits none of these findings is a finding itself.
    """
    view, results = ProjectView(loaded), {name: list[Finding]() for name in loaded}
    for each in rules_for(ProjectView):
        for problem in each.function(view):
            name, *rest = problem.path
            location = loaded[str(name)].source.position(tuple(rest))
            results[str(name)].append(
                Finding(each.id, each.level, dotted(rest), problem.message, problem.hint, location)
            )
    return {
        name: acknowledged(items, loaded[name].environment.acknowledge, loaded[name].source, project=True)
        for name, items in results.items()
    }


def all_findings(environments: Sequence[LoadedEnvironment]) -> list[Finding]:
    """What rules find in each of the environments, and where there are several, beside one another."""
    results = [finding for loaded in environments for finding in findings(loaded.environment, loaded.source)]
    if len(environments) > 1:
        compared = project_findings({loaded.environment.name: loaded for loaded in environments})
        results += [finding for items in compared.values() for finding in items]
    return results


def _positions(view: ProjectView) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Accounts and regions in which several environments are, with their names."""
    result = defaultdict[tuple[str, str], list[str]](list)
    for name, environment in view.environments.items():
        result[environment.account, environment.region].append(name)
    yield from ((location, names) for location, names in result.items() if len(names) > 1)


@rule("PRJ001", ERROR, on=ProjectView, source="api-cluster", final=True)
def clusters_of_one_name(view: ProjectView) -> Problems:
    """Duplicate cluster name in one account and region."""
    for (account, region), names in _positions(view):
        first = dict[str, str]()
        for name in names:
            environment = view.environments[name]
            other = first.setdefault(environment.cluster.name, name) if environment.has_cluster else name
            if other != name:
                yield Problem(
                    (name, "cluster", "name"),
                    f"cluster.name is {environment.cluster.name}, as in {other}; both are in {region} of account "
                    f"{account}, where a name belongs to one cluster",
                    "leave cluster.name out of shared files: it follows the environment's name",
                )


@rule("PRJ002", ERROR, on=ProjectView, source="hyperpod-eks", final=True)
def one_control_plane(view: ProjectView) -> Problems:
    """EKS cluster adopted by several environments."""
    for _, names in _positions(view):
        first = dict[str, str]()
        for name in names:
            existing = view.environments[name].cluster.eks.existing
            other = first.setdefault(existing.name, name) if existing else name
            if existing and other != name:
                yield Problem(
                    (name, "cluster", "eks", "existing", "name"),
                    f"the EKS cluster {existing.name} is adopted by {other} too, and takes one HyperPod cluster",
                    "use another EKS cluster, or make instance groups of one environment of both",
                )


@rule("PRJ003", WARNING, on=ProjectView, source="vpc-peering")
def ranges_of_neighbours(view: ProjectView) -> Problems:
    """Overlapping networks in one account and region."""
    for (account, region), names in _positions(view):
        shared = defaultdict[str, list[str]](list)
        for one, other in combinations(names, 2):
            here, existing = view.environments[one].network, view.environments[other].network
            # Environments that adopt one VPC share it on purpose.
            same = here.vpc and existing.vpc and here.vpc.id == existing.vpc.id
            if not same and overlap(here, existing):
                shared[other].append(one)
        for name, others in shared.items():
            adopted = view.environments[name].network.vpc
            yield Problem(
                (name, "network", *(("vpc", "cidr") if adopted else ("cidr",))),
                f"the network overlaps with {listed(others, 'and')} in {region} of account {account}; such "
                "networks can never be connected, neither by peering nor by a transit gateway",
                "give it another range before the first deployment, or accept this",
            )


@rule("PRJ004", WARNING, on=ProjectView, source="")
def bought_by_each(view: ProjectView) -> Problems:
    """Purchase in a shared file."""
    result = defaultdict[tuple[object, str], list[str]](list)
    for name, item in view.loaded.items():
        for plan, settings in item.environment.training_plans.items():
            path: Path = ("training_plans", plan, "purchase")
            if settings.state == "purchase" and path in item.source.positions:
                result[item.source.position(path), plan].append(name)
    for (location, plan), names in result.items():
        if len(names) > 1:
            yield Problem(
                (names[-1], "training_plans", plan, "purchase"),
                f"{location} says purchase: true, and {listed(names, 'and')} extend it: each buys its own plan",
                "move the plan into the environment that needs it, or accept this if each of them does",
            )


@rule("PRJ005", WARNING, on=ProjectView, source="training-plan-hyperpod")
def one_plan_for_many(view: ProjectView) -> Problems:
    """Environments ask for more than their shared training plan has."""
    users = defaultdict[str, list[tuple[str, str]]](list)
    for name, environment in view.environments.items():
        for plan, settings in environment.training_plans.items():
            if settings.arn:
                users[settings.arn].append((name, plan))
    for arn, result in users.items():
        taken, most = list[str](), 0
        total = 0
        for name, plan in result:
            environment = view.environments[name]
            counts = [group.count for group in environment.instance_groups.values() if group.plan == plan]
            taken.append(f"{name} {sum(counts)}")
            total += sum(counts)
            most = max(most, environment.training_plans[plan].count or 0)
        if len(result) > 1 and most and total > most:
            name, plan = result[-1]
            yield Problem(
                (name, "training_plans", plan, "arn"),
                f"{arn} has {most} instances, and its environments want {total} together: {listed(taken, 'and')}; who "
                "comes later gets none",
                "lower the counts, or use a separate plan",
            )
