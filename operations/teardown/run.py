"""Carrying out the plan of a teardown: stacks in their order, and what others left in the network before it goes."""

from dataclasses import dataclass
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.kubernetes.isolation import names_identities
from ..aws.account import Account
from ..aws.stacks import delete_stack, protect
from ..cdk.cli import Cdk
from ..cdk.deployment import deployed_stacks, failure, watch
from ..cdk.progress import Progress
from .inventory import Inventory, still_there
from .network import remove
from .stacks import Resource, failed, resources_of

_OF_TEAMS: Final = (
    *("AWS::EKS::AccessEntry", "AWS::EKS::PodIdentityAssociation", "AWS::SageMaker::ComputeQuota"),
    *("Custom::AWSCDK-EKS", "Custom::Podwright"),
)
# What services leave behind comes to light one after another.
_ATTEMPTS: Final = 3


@dataclass(slots=True)
class Run:
    """Carrying out the plan."""

    environment: Environment
    cdk: Cdk
    progress: Progress
    seen: Inventory

    def unprotect(self, stacks: list[str]) -> None:
        """Lift the termination protection of stacks."""
        for stack in stacks:
            protect(self.cdk.account, stack, protected=False)
            self.progress.say(stack, "is no longer protected")

    def delete(self) -> None:
        """Delete the stacks of the plan; the network last, once what others left in it is gone."""
        # In the order in which the stacks came to be; each deletion takes the last ones first.
        name, going = self.environment.name, sorted(self.seen.plan.going, key=list(self.seen.resources).index)
        resources = {stack: self.seen.resources[stack] for stack in going}
        # The app does not know a stray, so the CDK CLI, which deletes by the app, cannot delete it.
        strays, late = _strays(self.environment, resources), _late_strays(self.environment, resources)
        # Of what a late stray exports nobody imports anything; it imports from the others.
        _delete(self.cdk.account, self.progress, late)
        # What a stray exports only the cluster imports, and what it imports others still export.
        first = [stack for stack in going if strays and stack == f"{name}-cluster"]
        self._destroy(first)
        _delete(self.cdk.account, self.progress, strays)
        rest = [stack for stack in going if stack not in (*first, *strays, *late)]
        network = self.seen.network[0] if self.seen.network else None
        # The network by itself, when nothing of ours uses it any more and what is left there is of others.
        self._destroy([stack for stack in rest if stack != network])
        if network:
            self._free()
            self._destroy([network])

    def _free(self) -> bool:
        """Take away what others left in the network; whether there was anything.

        Raises:
            CommandError: something is in the way that somebody else has to remove.
        """
        blockers = still_there(self.seen, self.cdk.account)
        if yours := [item for item in blockers if item.by == "you"]:
            stack = yours[0].stack
            lines = "\n".join(f"    {item.why}" for item in yours)
            hint = "; ".join(item.how for item in yours)
            raise CommandError(f"{stack} stays, because something is in it:\n{lines}", f"{hint}; then run this again")
        remove(self.cdk.account, blockers, self.progress.say)
        return bool(blockers)

    def _destroy(self, stacks: list[str]) -> None:
        """Delete stacks of the app, again where what kept them could be taken away."""
        # A stack's path in the app is the stage's and its own.
        name = self.environment.name
        paths = [f"{name}/{stack.removeprefix(f'{name}-')}" for stack in stacks]
        of_network = self.seen.network is not None and self.seen.network[0] in stacks
        for attempt in range(1, _ATTEMPTS + 1):
            if not paths or self._destroyed(paths):
                return
            if attempt < _ATTEMPTS and of_network and self._free():
                self.progress.say(stacks[0], "is deleted again, without what kept it")
                continue
            raise self._failure()

    def _destroyed(self, paths: list[str]) -> bool:
        """Have the CDK CLI delete stacks of the app; False if it failed."""
        with self.cdk.synthesized(self.progress, incomplete=True) as assembly:
            # A synthesis by the CDK CLI ends what `watch` began, so the deletion is watched from here.
            watch(self.cdk, self.progress)
            # --force: the user has confirmed the whole plan.
            return not self.cdk.follow(self.progress, "destroy", *paths, "--force", assembly=assembly)

    def _failure(self) -> CommandError:
        """Why stacks were not deleted: every resource with CloudFormation's reason, else what the CLI says."""
        account, name = self.cdk.account, self.environment.name
        left = deployed_stacks(account, name, self.cdk.project)
        stuck = [stack for stack in left if stack.status == "DELETE_FAILED"]
        reasons = {stack: failed(items) for stack, items in resources_of(account, stuck).items()}
        if not any(reasons.values()):
            return failure(self.cdk, self.progress)
        lines = [f"    {stack}: {reason}" for stack, items in reasons.items() for reason in items]
        hint = f"fix the causes, then run the same command again: it resumes from here; log: {self.cdk.log}"
        return CommandError(f"{', '.join(reasons)} could not be deleted:\n" + "\n".join(lines), hint)


def _strays(environment: Environment, resources: dict[str, list[Resource]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its training plans."""
    capacity = f"{environment.name}-capacity"
    # Somebody else's stack may have that name; only ours holds such resources.
    plans = [item for item in resources.get(capacity, []) if item.type == "Custom::PodwrightTrainingPlan"]
    return [capacity] if not environment.training_plans and plans else []


def _late_strays(environment: Environment, resources: dict[str, list[Resource]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its teams or who works in them."""
    governance = environment.governance
    desired = {"governance": governance.engine is not None, "access": names_identities(governance)}
    return [
        stack
        for key, needed in desired.items()
        if not needed and _is_ours(resources.get(stack := f"{environment.name}-{key}", []))
    ]


def _is_ours(resources: list[Resource]) -> bool:
    """Whether a stack holds what only podwright's stacks of teams hold together."""
    return any(item.type.startswith(_OF_TEAMS) for item in resources)


def _delete(account: Account, progress: Progress, stacks: list[str]) -> None:
    """Delete stacks by CloudFormation itself."""
    for stack in reversed(stacks):
        # Those that import come before those that export.
        progress.say(stack, "is of something that the file no longer has; deleting it")
        delete_stack(account, stack)
