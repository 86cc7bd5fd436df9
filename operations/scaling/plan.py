"""What it takes to give an instance group another number of nodes. Nothing is changed by a plan.

The file, the nodes that go and what a deployment would do are looked at together, so that somebody says yes to all of
it. What is done already is read from HyperPod: a plan of the same request holds only what is left of it.
"""

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.findings import Finding, counted, errors
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..arguments import account_for
from ..aws.account import Account
from ..aws.clusters import Cluster, Node, existing_cluster
from ..aws.clusters import nodes as cluster_nodes
from ..capacity.plan_file import FileEdit
from ..cdk.deployment import cdk_for
from ..cdk.progress import Progress
from ..commands.deploy import findings_before
from ..effects.document import ChangeSet, change_set
from ..effects.document import document as change_document
from ..environments.costs import brief, today
from ..output.moving import under_way
from ..preflight.inquiry import findings_of, preflight
from .count_edit import count_edit
from .occupancy import Occupancy, occupancy

SCHEMA: Final = "podwright.scale/1"
_GOING: Final = ("ShuttingDown", "NotFound")
_SUGGESTED: Final = 8


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks for."""

    project: Path
    environment: str
    """Name in environments/, or path of a file."""
    group: str
    count: int
    remove: tuple[str, ...] = ()
    """Instance ids or Kubernetes names of the nodes that go."""
    stop_jobs: bool = False
    """Whether jobs on these nodes may be stopped."""
    sandbox: bool = False

    def arguments(self, change_set: str | None = None) -> argparse.Namespace:
        """The same as the command line of a deployment that somebody has said yes to; of that `change_set` alone."""
        return argparse.Namespace(
            project=self.project,
            environment=self.environment,
            sandbox=self.sandbox,
            yes=True,
            # The plan has looked at the account.
            preflight=False,
            bootstrap=False,
            allow=[],
            plan=change_set,
            json=False,
        )


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """What is left to do for a request, and what that does."""

    request: Request
    environment: Environment
    """As the file would have it."""
    account: Account
    written: int
    """Nodes that the file says now."""
    target: int
    """Nodes that HyperPod keeps the group at now."""
    edit: FileEdit
    leaving: tuple[Node, ...]
    """Nodes that are to go and are still there."""
    removed: tuple[str, ...]
    """Nodes that were named and are not there any more."""
    occupancy: Occupancy
    """The jobs on the nodes that go."""
    findings_before: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    """Of the file as it would be, and of the account."""
    cost_before: dict[str, Any]
    cost: dict[str, Any]
    """What the environment costs by the file, before and after, as `podwright cost` sums it up."""
    changes: ChangeSet | None
    """What the deployment would do; None where findings keep it from being known."""

    @property
    def new_findings(self) -> list[Finding]:
        """The findings that come with the change."""
        known = {(item.id, item.path, item.message) for item in self.findings_before}
        return [item for item in self.findings if (item.id, item.path, item.message) not in known]

    @property
    def blocked(self) -> list[str]:
        """Why nothing is done, a sentence each; empty where it may be."""
        name, reasons = self.environment.name, list[str]()
        if bad := errors(self.findings):
            reasons.append(f"{name} would have {counted(bad)}")
        if not self.request.stop_jobs:
            reasons += [f"{job} would be stopped; --stop-jobs allows it" for job in self.occupancy.jobs]
            if hidden := self.occupancy.hidden:
                reasons.append(f"you may not see the jobs of {', '.join(hidden)}; --stop-jobs stops them unseen")
        if self.changes:
            reasons += [
                f"{need.name} needs an approval ({need.id}): {need.why}"
                for need in self.changes.approvals
                if need.refused and not need.approved
            ]
        return reasons

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        settled = not self.leaving and self.target == self.request.count and not self.edit.diff
        return settled and self.changes is not None and not self.changes.changes

    @property
    def digest(self) -> str:
        """Names this plan: the file that it was made from, the nodes, their jobs and the change set."""
        parts = [
            self.environment.name,
            str(self.account),
            self.request.group,
            str(self.request.count),
            str(self.target),
            str(self.request.stop_jobs),
            hashlib.sha256(self.edit.before).hexdigest(),
            *(node.id for node in self.leaving),
            *(job.name for job in self.occupancy.jobs),
            self.changes.digest if self.changes else "",
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "schema": SCHEMA,
            "environment": self.environment.name,
            "account": self.account.id,
            "region": self.account.region,
            "simulated": self.account.endpoint is not None,
            "group": self.request.group,
            "count": {"file": self.written, "cluster": self.target, "wanted": self.request.count},
            "digest": self.digest,
            "diff": self.edit.diff,
            "leaving": [{"node": node.id, "status": node.status, "type": node.type} for node in self.leaving],
            "removed": list(self.removed),
            "jobs": [asdict(job) for job in self.occupancy.jobs],
            "not_readable": list(self.occupancy.hidden),
            "findings": [finding.to_json() for finding in self.findings],
            "new_findings": [finding.to_json() for finding in self.new_findings],
            "cost": {"before": self.cost_before, "after": self.cost},
            "changes": change_document(self.changes) if self.changes else None,
            "blocked": self.blocked,
            "done": self.done,
        }


def plan_scaling(request: Request) -> ScalePlan:
    """Look at the file, the cluster, the jobs and the templates. Writes nothing, and asks AWS only what it reads.

    Raises:
        InvalidFile: the environment cannot be read.
        CommandError: the request cannot be: an unknown group or node, a group that Karpenter scales, a cluster that is
            not there, fewer nodes without the names of those that go, or names that do not add up.
    """
    project = Project.at(request.project)
    loaded = project.load(request.environment)
    environment, file = loaded.environment, project.file(request.environment)
    _check_group(loaded, request)
    edit = count_edit(file, loaded, request.group, request.count)
    # What the project adds to a file, such as the boundary of a pipeline, does not change with the count.
    desired = edit.loaded.environment.model_copy(update={"iam": environment.iam})
    edited = replace(edit.loaded, environment=desired)
    account = account_for(request.arguments(), environment)
    cluster = existing_cluster(account, environment.cluster.name)
    target = next((group.target for group in cluster.groups if group.name == request.group), 0)
    leaving, removed = _leaving(request, cluster, target, cluster_nodes(account, cluster.name), environment)
    before = findings_before(loaded, request.project, sandbox=request.sandbox)
    after = findings_before(edited, request.project, sandbox=request.sandbox)
    if account.endpoint is None and not errors(after):
        under_way("looking at the account")
        # Whether the account is bootstrapped shows in what is deployed there.
        after += findings_of(preflight(edited, account, request.project, left_out=("PRE001",)))
    under_way("looking for jobs")
    runs = occupancy(environment, account, request.project, leaving)
    changes = None if errors(after) else _changes(request, edited, account, len(leaving))
    return ScalePlan(
        request,
        desired,
        account,
        environment.groups[request.group].count,
        target,
        edit,
        tuple(leaving),
        removed,
        runs,
        tuple(before),
        tuple(after),
        brief(environment, today()),
        brief(desired, today()),
        changes,
    )


def _check_group(loaded: LoadedEnvironment, request: Request) -> None:
    """Raise CommandError for a group whose number of nodes is not the file's to say."""
    environment, name = loaded.environment, request.group
    group = environment.groups.get(name)
    if group is None:
        known = ", ".join(environment.groups) or "none"
        raise CommandError(f"{environment.name} has no instance group {name}", f"known: {known}", 2)
    slurm = group.slurm if isinstance(group, InstanceGroup) else None
    if slurm and slurm.node_type == "controller":
        position = loaded.source.position(("instance_groups", name))
        raise CommandError(
            f"{position}: {name} is Slurm's controller, which HyperPod neither doubles nor removes",
            "scale a compute or login group",
        )
    karpenter = environment.cluster.karpenter
    if karpenter and name in karpenter.groups:
        position = loaded.source.position(("cluster", "autoscaling"))
        raise CommandError(
            f"{position}: Karpenter sets the number of nodes of {name}, and would undo this",
            "submit the work and Karpenter brings nodes; for a fixed number take it out of its groups and deploy first",
        )


def _leaving(
    request: Request, cluster: Cluster, target: int, existing: Sequence[Node], environment: Environment
) -> tuple[list[Node], tuple[str, ...]]:
    """The nodes that are to go, and the names of those that are gone. Raises CommandError where it does not add up."""
    names = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in request.remove))
    present = {node.id: node for node in existing if node.status not in _GOING}
    leaving = [present[name] for name in names if name in present]
    removed = tuple(name for name in names if name not in present)
    if strangers := [node for node in leaving if node.group != request.group]:
        words = ", ".join(f"{node.id} is of {node.group}" for node in strangers)
        raise CommandError(f"{words}, not of {request.group}", "name nodes of the group that is scaled", 2)
    too_many = target - request.count
    if too_many > 0 and not names:
        members = [node for node in present.values() if node.group == request.group]
        raise _unnamed(request, environment, members, too_many)
    if names and len(leaving) != max(too_many, 0):
        unknown = f"; {', '.join(removed)} {'is no node' if len(removed) == 1 else 'are no nodes'} of {cluster.name}"
        raise CommandError(
            f"{request.group} has {target} nodes and will have {request.count}, so {max(too_many, 0)} must be removed, "
            f"and you named {len(leaving)} of its nodes{unknown * bool(removed)}",
            "name exactly the nodes to remove; `podwright node replace` replaces one and keeps the count",
            2,
        )
    return leaving, removed


def _unnamed(request: Request, environment: Environment, members: Sequence[Node], too_many: int) -> CommandError:
    """That somebody has to say which nodes go, with those that may."""
    shown = ", ".join(node.id for node in members[:_SUGGESTED])
    more = f" and {len(members) - _SUGGESTED} more" if len(members) > _SUGGESTED else ""
    command = f"podwright scale {environment.name} {request.group} {request.count} --remove"
    nodes = "1 node" if too_many == 1 else f"{too_many} nodes"
    return CommandError(
        f"{nodes} of {request.group} would go, and HyperPod would choose which",
        f"name them: `{command} {' '.join(['NODE'] * min(too_many, 3))}`; the group has {shown}{more}, and "
        f"`podwright status {environment.name}` says how they are",
        2,
    )


def _changes(request: Request, edited: LoadedEnvironment, account: Account, leaving: int) -> ChangeSet:
    """What a deployment of the new count would do once the nodes have gone. The file is not touched for it."""
    cdk = cdk_for(request.arguments(), edited, {request.group: request.count})
    with cdk.synthesized(Progress()) as assembly:
        under_way("comparing with what is deployed")
        leaves = {request.group: leaving}
        return change_set(edited.environment, account, request.project, assembly.folder, leaving=leaves)
