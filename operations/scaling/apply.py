"""Doing what a plan holds: the file, then the nodes that go, then the deployment.

In this order nothing is lost wherever it is cut off. The file says what is desired, HyperPod says which nodes are still
there, and CloudFormation which count it has: the same command plans anew from these three, and does what is left.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from ...config.errors import CommandError
from ..aws.calls import change
from ..aws.clusters import Node, existing_cluster
from ..aws.quarantines import forget, quarantines
from ..capacity.plan_file import NotWritten
from ..commands.deploy import deploy
from ..nodes.quarantine import quarantine, release
from ..output.moving import waiting_for
from .occupancy import occupancy
from .plan import ScalePlan

# HyperPod takes 3,000 ids by its model, and refers to Support for more than 99. Source: SageMaker API Reference,
# BatchDeleteClusterNodes, 2026-11.
_AT_ONCE: Final = 99
_ERRORS: Final = {
    "NodeIdNotFound": "it is gone; run the same command again",
    "InvalidNodeStatus": "its status does not allow it now; wait until it is Running, and run the same command again",
    "NodeIdInUse": "something else is done with it; wait, and run the same command again",
}
_WAIT_SECONDS: Final = 1800.0
_POLL_SECONDS: Final = 10.0
_SANDBOX_POLL_SECONDS: Final = 0.3


def apply_scaling(plan: ScalePlan, say: Callable[[str], None]) -> None:
    """Do what is left of a plan that somebody has announced yes to; `say` gets each step.

    Raises:
        CommandError: the plan is blocked or no longer holds, or a step failed; it says what is done and what to do. The
            same request, planned and applied again, does what is left.
    """
    if plan.blocked:
        raise CommandError(f"nothing was done: {'; '.join(plan.blocked)}")
    request, group = plan.request, plan.request.group
    taken = _keep_jobs_away(plan)
    if plan.edit.diff:
        try:
            plan.edit.write()
        except NotWritten as problem:
            _give_back(plan, taken)
            raise CommandError(f"nothing was done: {problem}", "plan it again") from None
        say(f"{plan.edit.shown}: {group} has count {request.count}")
    if plan.leaving:
        removed = _remove(plan)
        say(f"removed {', '.join(removed)}")
        _wait_for(plan)
    code = deploy(request.arguments(plan.changes.digest if plan.changes else None), quiet=True)
    if code:
        raise CommandError(f"{group} has its nodes, and the count is not deployed", "run the same command again")
    _check_target(plan)


def _keep_jobs_away(plan: ScalePlan) -> list[Node]:
    """Let no new job come to the nodes that go; returns those that were taken out of work for this.

    Raises:
        CommandError: a job has come to one since the plan was made.
    """
    environment, account, project = plan.environment, plan.account, plan.request.project
    known = quarantines(environment, account) if plan.leaving else {}
    # One that does not run takes no work, and Kubernetes may not know it.
    taken = [node for node in plan.leaving if node.status == "Running" and node.id not in known]
    if taken:
        reason = f"goes: {plan.request.group} is scaled to {plan.request.count}"
        quarantine(environment, account, project, taken, reason)
    if plan.leaving and not plan.request.stop_jobs:
        jobs = occupancy(environment, account, project, plan.leaving).jobs
        if jobs:
            _give_back(plan, taken)
            words = "; ".join(map(str, jobs))
            raise CommandError(f"nothing was done: jobs have started on the nodes to remove: {words}", "plan it again")
    return taken


def _give_back(plan: ScalePlan, taken: Sequence[Node]) -> None:
    if taken:
        release(plan.environment, plan.account, plan.request.project, taken)


def _remove(plan: ScalePlan) -> list[str]:
    """Have HyperPod remove the nodes. Raises CommandError with why it keeps those that it keeps."""
    account, cluster, nodes = plan.account, plan.environment.cluster.name, plan.leaving
    done: list[str] = []
    failed: dict[str, str] = {}
    for first in range(0, len(nodes), _AT_ONCE):
        ids = [node.id for node in nodes[first : first + _AT_ONCE]]
        answer = change(account, "sagemaker", "batch_delete_cluster_nodes", ClusterName=cluster, NodeIds=ids)
        done += answer.get("Successful", ())
        for error in answer.get("Failed", ()):
            hint = _ERRORS.get(error["Code"], "run the same command again")
            failed[error["NodeId"]] = f"{error['Code']}: {error['Message']} ({hint})"
    forget(plan.environment, account, done)
    if failed:
        words = "\n".join(f"    {node}: {reason}" for node, reason in failed.items())
        went = f"{', '.join(done)} went, and " if done else ""
        raise CommandError(
            f"{went}HyperPod keeps {len(failed)} of the nodes that were to go:\n{words}",
            "nothing was deployed; the file has the new count already, and the same command does what is left. Until "
            "then they get no new jobs; `podwright node release` makes them schedulable again",
        )
    return done


def _wait_for(plan: ScalePlan) -> None:
    """Wait until HyperPod counts without the nodes that went, and takes updates again."""
    account, name, end = plan.account, plan.environment.cluster.name, time.monotonic() + _WAIT_SECONDS
    waiting = waiting_for(f"{name} to be without them")
    while True:
        cluster = existing_cluster(account, name)
        if cluster.status == "InService" and cluster.group(plan.request.group).target <= plan.request.count:
            return
        if time.monotonic() > end:
            raise CommandError(
                f"{name} is {cluster.status} after {_WAIT_SECONDS / 60:.0f} minutes, and nothing was deployed",
                f"once `podwright status {plan.environment.name}` shows it InService, run the same command again",
            )
        waiting.tick()
        time.sleep(_SANDBOX_POLL_SECONDS if account.endpoint else _POLL_SECONDS)


def _check_target(plan: ScalePlan) -> None:
    """Raise CommandError where HyperPod has another number of nodes in mind than the file.

    CloudFormation compares templates, so it sends nothing where it believes that the count is there already.
    """
    cluster = existing_cluster(plan.account, plan.environment.cluster.name)
    target, desired = cluster.group(plan.request.group).target, plan.request.count
    if target != desired:
        group = plan.request.group
        raise CommandError(
            f"{group} is deployed with count {desired}, and HyperPod keeps it at {target}: its count was changed "
            "outside CloudFormation, which saw nothing to do",
            f"`aws sagemaker batch-add-cluster-nodes --cluster-name {cluster.name} --nodes-to-add "
            f"InstanceGroupName={group},IncrementTargetCountBy={desired - target}` brings the missing ones"
            if target < desired
            else "run the same command again, with --remove",
        )
