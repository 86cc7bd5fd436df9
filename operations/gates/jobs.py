"""Jobs that gates start: named by their content, found again after an interruption, and always taken away."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from ...config.catalog.instance_types import Catalog
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ...config.settings.jobs.base import Job
from ...planning.jobs.plan import engine_of
from ...planning.quota.amounts import CPU, EFA, MEMORY
from ...planning.quota.policy import environment_policy
from ..doctor.pods import Pod
from ..kubernetes.job_manifests import Manifest, job_manifests
from ..kubernetes.kubectl import Kubectl, Refused
from .gate import Context, Observation

State = Literal["absent", "waiting", "running", "succeeded", "failed"]
_NAME_LABEL: Final = "app.kubernetes.io/name"
# Conditions of Kubernetes' Job, Kubeflow's and HyperPod's kinds, and the field of KubeRay's.
_GOOD: Final = ("Complete", "Completed", "Succeeded", "SUCCEEDED")
_BAD: Final = ("Failed", "FAILED")
_LOG_LINES: Final = 200


@dataclass(slots=True)
class Run:
    """One job of a gate on Kubernetes."""

    context: Context
    name: str
    manifests: list[Manifest]

    @property
    def job(self) -> Manifest:
        """The job itself, which is applied last."""
        return self.manifests[-1]

    @property
    def namespace(self) -> str:
        """Where it runs."""
        return self.job["metadata"]["namespace"]

    @property
    def kubectl(self) -> Kubectl:
        """The way to Kubernetes."""
        return self.context.kubectl

    def found(self) -> dict[str, Any] | None:
        """The job as Kubernetes has it; None when it is not there."""
        kind = resource(self.job)
        # A list with a field selector: kubectl answers an absent object by an error that looks like any other.
        items = self.kubectl.items(kind, f"--namespace={self.namespace}", f"--field-selector=metadata.name={self.name}")
        return items[0] if items else None

    def pods(self) -> list[dict[str, Any]]:
        """Its pods."""
        # By the name of the job, as every kind of ours labels its pods.
        return self.kubectl.items("pods", f"--namespace={self.namespace}", f"--selector={_NAME_LABEL}={self.name}")

    def log(self, pod: str, container: str) -> str:
        """The end of a pod's log. Raises Refused where there is none."""
        return self.kubectl.run(
            "logs", pod, f"--namespace={self.namespace}", f"--container={container}", f"--tail={_LOG_LINES}"
        )

    def delete(self) -> None:
        """Take away what is there of it."""
        self.kubectl.delete(self.manifests)

    def observe(self, observation: Observation, state: State, *, desired: State = "succeeded") -> list[dict[str, Any]]:
        """Add what the job and its pods say to a look. Returns the pods."""
        pods = self.pods()
        parts = [Pod(item, datetime.now(UTC)) for item in pods]
        counts = Counter(pod.phase for pod in parts)
        phases = sorted(f"{count} {phase}" for phase, count in counts.items())
        stuck = {
            f"{wait.get('reason')}: {wait.get('message', '')}".strip(": ") for pod in parts for wait in pod.waiting
        }
        waits = set() if stuck else _unscheduled(pods)
        message = f"{state}, pods: {', '.join(phases) or 'none'}" + "".join(
            f"; {text}" for text in sorted(stuck | waits)
        )
        observation.check(f"job {self.name}", desired, message, state == desired)
        observation.answers["pods"] = [
            {
                "name": item["metadata"]["name"],
                "node": item.get("spec", {}).get("nodeName", ""),
                "phase": status.get("phase"),
                "message": status.get("message"),
                "containerStatuses": status.get("containerStatuses"),
            }
            for item in pods
            for status in [item.get("status", {})]
        ]
        if state == "failed":
            observation.final = f"job {self.name} failed{self._why(pods)}"
            observation.answers["logs"] = self._logs(pods)
        if stuck:
            observation.next_step = (
                "the image cannot be pulled or started: check its name, the mirror and the node's way to it"
            )
        elif waits or (state == "waiting" and not pods):
            observation.next_step = (
                f"kubectl --namespace {self.namespace} get workloads shows what it waits for; "
                f"`podwright quotas {self.context.environment.name}` what its team is granted"
            )
        return pods

    def ended(self) -> Observation:
        """Whether it has succeeded; what is known where it has not, and never will."""
        observation = Observation()
        state, message = state_of(self.found())
        self.observe(observation, state)
        if state == "absent":
            observation.final = f"{self.name} was deleted"
        # The message of the job often repeats the reason of its pod.
        elif state == "failed" and message:
            observation.final += f": {message}" if message not in observation.final else ""
        return observation

    def _why(self, pods: Sequence[dict[str, Any]]) -> str:
        for item in pods:
            for status in item.get("status", {}).get("containerStatuses", ()):
                ended = status.get("state", {}).get("terminated") or {}
                if ended.get("exitCode"):
                    return (
                        f": {item['metadata']['name']} ended with exit code {ended['exitCode']} ({ended.get('reason')})"
                    )
        return ""

    def _logs(self, pods: Sequence[dict[str, Any]]) -> dict[str, str]:
        """The ends of the logs of pods that did not succeed, of a few."""
        logs: dict[str, str] = {}
        # Logs of three pods tell as much as those of a hundred, and the evidence stays readable.
        for item in [pod for pod in pods if pod.get("status", {}).get("phase") != "Succeeded"][:3]:
            name, container = item["metadata"]["name"], item["spec"]["containers"][0]["name"]
            try:
                logs[name] = self.log(name, container)
            except Refused as refused:
                # A container that never started has none, and that is worth knowing.
                logs[name] = f"no log: {refused}"
        return logs


def state_of(job: dict[str, Any] | None) -> tuple[State, str]:
    """How far a job is, of whatever kind, and what it says about it."""
    if job is None:
        return "absent", ""
    status = job.get("status") or {}
    # A condition stays in the list with status False once it is over.
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in (*_GOOD, *_BAD):
            good = condition["type"] in _GOOD
            return "succeeded" if good else "failed", condition.get("message") or condition.get("reason") or ""
    if (ray := status.get("jobStatus")) in (*_GOOD, *_BAD):
        return "succeeded" if ray in _GOOD else "failed", status.get("message", "")
    running = status.get("active") or status.get("startTime") or status.get("replicaStatuses")
    # Each kind says in another field that it has begun.
    return "running" if running else "waiting", ""


def resource(manifest: Manifest) -> str:
    """The kind as kubectl takes it: `Job.v1.batch`."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    return f"{manifest['kind']}.{version}.{group}" if group else manifest["kind"]


@contextmanager
def submitted(context: Context, stem: str, job: Job) -> Iterator[Run]:
    """Hand a job over under a name made of what it is, and remove it at the end, whatever happens.

    One of that name that still runs was left by a run that was killed, and is resumed; one that has ended is
    replaced, because it proves nothing of now.

    Raises:
        CommandError: rules or the cluster refuse it.
    """
    run = made(context, stem, job)
    state, _ = state_of(run.found())
    try:
        if state in ("waiting", "running"):
            context.say(f"{run.name} exists from an earlier run, and is resumed")
        else:
            if state != "absent":
                run.delete()
            context.say(f"submits {run.name} to {run.namespace}")
            try:
                run.kubectl.apply(run.manifests)
            except Refused as refused:
                raise CommandError(
                    f"the cluster refuses {run.name}: {refused}",
                    f"is its operator deployed? `podwright render {context.environment.name}` shows what should be",
                ) from None
        yield run
    finally:
        # Also after Ctrl-C and errors: a canary that stays holds GPUs.
        try:
            run.delete()
        except Refused as refused:
            raise CommandError(
                f"{run.name} could not be taken away: {refused}",
                f"kubectl --namespace {run.namespace} delete {resource(run.job)} {run.name}",
            ) from None


def made(context: Context, stem: str, job: Job) -> Run:
    """A job that is not submitted yet. Raises CommandError where rules refuse it; their findings are printed."""
    name = f"podwright-{stem}"
    draft = _manifests(context, name, job)
    # Of the content without the name: the same job has the same name in a later run, and is found there.
    digest = hashlib.sha256(json.dumps(draft, sort_keys=True).encode()).hexdigest()[:8]
    name = f"podwright-{stem}-{digest}"
    return Run(context, name, _manifests(context, name, job))


def _manifests(context: Context, name: str, job: Job) -> list[Manifest]:
    # As one of the environment's jobs, so that the same rules and the same manifests as for people's jobs hold.
    environment = context.environment.model_copy(update={"jobs": {**context.environment.jobs, name: job}})
    return job_manifests(replace(context.loaded, environment=environment), [name])[name]


def team_for(environment: Environment, types: Catalog, group: str) -> str | None:
    """The team that is granted most of a group, and may hold most of it; None where there are no teams."""
    teams = environment.governance.teams
    if not teams or engine_of(environment) is None:
        return None
    policy = environment_policy(environment, types)
    flavor = next((name for name, item in policy.flavors.items() if group in item.groups), None)
    if flavor is None:
        return min(teams)
    one = policy.flavors[flavor].one
    resource = next((name for name in one if name not in (CPU, MEMORY, EFA) and one[name]), CPU)

    def rank(team: str) -> tuple[int, int]:
        share = policy.teams[team].shares.get(flavor, {}).get(resource)
        return (share.nominal if share else 0, policy.most(team, flavor, resource))

    return min(teams, key=lambda team: (*(-amount for amount in rank(team)), team))


def group_for(environment: Environment, types: Catalog) -> str:
    """The first group with accelerators, else the first that is not the system group's, else the first."""
    names = [name for name, group in environment.instance_groups.items() if group.count]
    fast = [name for name in names if _is_fast(environment.instance_groups[name], types)]
    others = [name for name in names if name != environment.cluster.system_group]
    return next(iter([*fast, *others, *names]))


def _is_fast(group: InstanceGroup, types: Catalog) -> bool:
    """Whether every node of a group has accelerators, as far as the catalog knows."""
    return all(row and row.accelerator_count for row in map(types.find, group.types))


def _unscheduled(pods: Sequence[dict[str, Any]]) -> set[str]:
    """Why the scheduler has found no node for pods."""
    return {
        f"{condition.get('reason')}: {condition.get('message', '')}"
        for item in pods
        for condition in item.get("status", {}).get("conditions", ())
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    }
