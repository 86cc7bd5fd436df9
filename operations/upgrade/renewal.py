"""Renewing the software of groups: which ones, what to know before, and one group from request to verdict."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup, Rollout
from ...planning.rules.groups.updates import batch_nodes
from ..aws.account import Account
from ..aws.calls import change, pages
from ..aws.clusters import Node, existing_cluster, nodes
from ..aws.unseen import code_of
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.console import write_note
from .follow import POLL_SECONDS, SANDBOX_POLL_SECONDS, Renewed, follow, problems
from .observed import kubernetes_nodes
from .software import Software, Wish, batches, in_order, request, rollout, software

_READS_UNTIL_READY: Final = 20
"""So many times Kubernetes is asked: a kubelet reports seconds after HyperPod calls its node renewed."""


class Upgrade:
    """Renews groups of one cluster, one at a time."""

    def __init__(
        self, environment: Environment, account: Account, kubectl: Kubectl | None, server: str, wish: Wish
    ) -> None:
        self._environment, self._account, self._kubectl, self._wish = environment, account, kubectl, wish
        self._server = server
        self._cluster = environment.cluster.name
        self._poll = SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS

    def groups(
        self,
        existing: Mapping[str, Software],
        going: Sequence[str],
        jobs: Mapping[str, list[str]],
        between: Callable[[str], None] | None,
    ) -> Iterator[dict[str, Any]]:
        """What became of each group: those that HyperPod is updating already, then the others until one goes wrong.

        Args:
            existing: The software of all groups before.
            going: Groups to renew, in their order; none of them is under way.
            jobs: What runs on each node.
            between: Asks whether to continue, and raises where not.
        """
        active = {name: now for name, now in existing.items() if now.is_active}
        # What HyperPod does already comes first: it refuses another update of the cluster meanwhile.
        results = [self._group(name, now, jobs, resumed=True) for name, now in active.items()]
        yield from results
        ok = all(result["ok"] for result in results)
        for position, name in enumerate(going):
            if not ok:
                return
            if between and position:
                between(f"continue with {name}")
            # Read anew: the groups before it took hours, in which HyperPod may have gone on.
            before = software(existing_cluster(self._account, self._cluster))[name]
            result = self._group(name, before, jobs, resumed=False)
            ok = result["ok"]
            yield result

    def _group(self, name: str, before: Software, jobs: Mapping[str, list[str]], *, resumed: bool) -> dict[str, Any]:
        """Ask for the update of a group unless one is under way, follow it, and look at the result."""
        from botocore.exceptions import ClientError

        group, started = own_settings(self._environment, name), time.time()
        release = self._wish.release or (group.image_release if group else None) or ""
        on_eks = self._environment.cluster.orchestrator == "eks"
        before_it = {node.id: node.status for node in nodes(self._account, self._cluster, name)}
        if resumed:
            write_note(f"  {name}: an update is under way, which is followed")
            release = before.desired
        else:
            how = rollout(group, self._wish) if on_eks else None
            try:
                asked = request(self._cluster, name, release, how)
                change(self._account, "sagemaker", "update_cluster_software", **asked)
            except ClientError as error:
                if code_of(error) != "ConflictException":
                    raise
                raise CommandError(
                    f"HyperPod does not update {name} now: {error.response['Error'].get('Message', '')}",
                    f"`podwright status {self._environment.name}` shows what it does; wait until it is InService",
                ) from None
        done = follow(
            self._account,
            self._cluster,
            name,
            lambda text: write_note(text),
            started=started,
            resumed=resumed,
            before=before_it,
            minutes=self._wish.wait and self._wish.wait / 60,
            poll=self._poll,
            jobs=jobs,
        )
        now = software(existing_cluster(self._account, self._cluster))[name]
        existing = nodes(self._account, self._cluster, name)
        kubernetes = self._joined(name, existing) if done.is_done else self._kubernetes()
        wrong = self._wrong(done, release, now, existing, kubernetes)
        return {
            "group": name,
            "from": before.current,
            "to": now.current,
            "status": done.status,
            "seconds": round(done.seconds, 1),
            "nodes": [
                {
                    "id": node.id,
                    "release": node.release or None,
                    "kubelet": kubernetes.get(node.id, {}).get("kubelet"),
                    "seconds": round(done.nodes[node.id], 1) if node.id in done.nodes else None,
                }
                for node in sorted(existing, key=lambda node: node.id)
            ],
            "notes": self._notes(name, kubernetes),
            "problems": wrong,
            "ok": done.is_done and not wrong,
        }

    def _notes(self, name: str, kubernetes: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """What is no failure of the update: an image that has no kubelet of the control plane's version."""
        if self._kubectl and not kubernetes:
            return ["Kubernetes does not answer now, so kubelets and health were not looked at"]
        kubelets = {node["kubelet"] for node in kubernetes.values() if node["group"] == name and node["kubelet"]}
        return [f"kubelet {older} beside {self._server}" for older in sorted(kubelets - {self._server}) if self._server]

    def _joined(self, name: str, existing: Sequence[Node]) -> dict[str, dict[str, Any]]:
        """What Kubernetes shows once a group's nodes are Ready there, or when time is up."""
        for read in range(_READS_UNTIL_READY):
            kubernetes = self._kubernetes()
            if not kubernetes or all(kubernetes.get(node.id, {}).get("ready") for node in existing):
                break
            if not read:
                write_note(f"  {name}: its nodes join Kubernetes")
            time.sleep(self._poll)
        return kubernetes

    def _kubernetes(self) -> dict[str, dict[str, Any]]:
        """What Kubernetes shows afterwards; nothing where a tunnel led through a node that was renewed."""
        try:
            return kubernetes_nodes(self._kubectl)
        except Refused:
            return {}

    def _wrong(
        self,
        done: Renewed,
        release: str,
        now: Software,
        existing: Sequence[Node],
        kubernetes: Mapping[str, Mapping[str, Any]],
    ) -> list[str]:
        """Why a group is not as it was asked for; empty where it is."""
        match done.status:
            case "Succeeded":
                return problems(release, now, existing, kubernetes)
            case "waiting":
                return [f"{now.renewed} of {now.nodes} nodes have the new image; the update continues in AWS"]
            case "nothing":
                return ["HyperPod began no update"]
        return [f"{done.status}: {done.message or 'HyperPod gives no reason'}; {now.renewed} nodes have {now.desired}"]


def own_settings(environment: Environment, name: str) -> InstanceGroup | None:
    """What the file says of an ordinary group; None where it does not have it any more."""
    group = environment.groups.get(name)
    return group if isinstance(group, InstanceGroup) else None


def going_groups(
    environment: Environment, existing: Mapping[str, Software], old_kubelets: Collection[str], wish: Wish
) -> list[str]:
    """The groups to renew, in their order. Raises CommandError for what cannot be renewed this way."""
    if unknown := [name for name in wish.group if name not in existing]:
        raise CommandError(f"the cluster has no group {', '.join(unknown)}", f"it has {', '.join(existing)}", 2)
    slurm = environment.cluster.orchestrator != "eks"
    if slurm and (
        wish.wait_between is not None or wish.batch or wish.rollback_batch or wish.rollback_alarm or wish.release
    ):
        raise CommandError(
            "HyperPod renews a Slurm cluster's groups with the newest image and all nodes at once",
            "leave out --release, --batch, --rollback-batch, --wait-between and --rollback-alarm, and empty the queue",
            2,
        )
    chosen = list(wish.group) or [
        name
        for name, now in existing.items()
        if name in old_kubelets or (now.is_behind if not wish.release else now.current not in ("", wish.release))
    ]
    going: list[str] = []
    for name in in_order(environment, chosen):
        group = own_settings(environment, name)
        # Those that HyperPod updates already are followed instead.
        if existing[name].is_active or not existing[name].nodes:
            continue
        if group and group.image_id:
            if name in wish.group:
                raise CommandError(
                    f"{name} has the image {group.image_id} of your own",
                    "change image_id in the file and deploy: the deployment renews its nodes",
                    2,
                )
            continue
        if group and group.image_release and group.image_release != (wish.release or group.image_release):
            raise CommandError(
                f"the file pins {name} to image_release {group.image_release}, and --release is {wish.release}",
                "change the file and deploy, or take image_release out and let this command choose",
                2,
            )
        # At the release that the file wants; it may still be behind the newest, which nobody asked for.
        pinned = group is not None and group.image_release == existing[name].current
        if pinned and name not in (*wish.group, *old_kubelets):
            continue
        going.append(name)
    return going


def announced(
    environment: Environment,
    existing: Mapping[str, Software],
    under_way: Sequence[str],
    going: Sequence[str],
    wish: Wish,
) -> Iterator[str]:
    """What is under way, and what will be done to each group."""
    for name in under_way:
        yield f"{name}: {existing[name].update}, {existing[name].renewed} of {existing[name].nodes} nodes"
    for name in going:
        now, group = existing[name], own_settings(environment, name)
        to = wish.release or (group.image_release if group else None) or "the newest"
        line = f"{name}: {now.nodes} nodes, {now.current or 'an image without a release'} → {to}"
        if environment.cluster.orchestrator == "eks":
            how = rollout(group, wish)
            count = batches(how, now.nodes)
            line += f", {batch_nodes(how, now.nodes)} at a time in {count} batches"
            if count > 1:
                line += f" with {how.wait_seconds} s between"
            alarms = ", ".join(how.rollback_alarms)
            line += f"; turned back by {alarms}" if alarms else "; no alarm watches it"
        yield line


def warnings(
    account: Account,
    environment: Environment,
    going: Sequence[str],
    kubectl: Kubectl | None,
    jobs: Mapping[str, list[str]],
) -> Iterator[str]:
    """What somebody should know before saying yes."""
    if kubectl is None:
        where = "`squeue` on the controller" if environment.cluster.orchestrator == "slurm" else "kubectl"
        yield f"which jobs run there is not seen from here: look with {where}"
    for name in going:
        for node in sorted(nodes(account, environment.cluster.name, name), key=lambda node: node.id):
            for job in jobs.get(node.id, ()):
                yield f"{node.id} ({name}): {job} runs on it and stops when the node is replaced"
        if environment.cluster.orchestrator == "slurm":
            yield f"{name}: all its nodes are replaced at the same time"
    yield "nothing is drained; what is on root volumes is lost, file systems stay; lifecycle scripts run again"


def is_busy(
    account: Account, environment: Environment, name: str, kubectl: Kubectl | None, jobs: Mapping[str, list[str]]
) -> bool:
    """Whether jobs run on a group. Raises CommandError where nobody can see that."""
    if kubectl is None:
        raise CommandError(
            "--idle-only needs to see which jobs run, and Kubernetes is not reached", "run `podwright connect` first"
        )
    existing = nodes(account, environment.cluster.name, name)
    at_work = sorted({job for node in existing for job in jobs.get(node.id, ())})
    if at_work:
        write_note(f"  {name} is left out: {', '.join(at_work)}")
    return bool(at_work)


def check_alarms(account: Account, hows: Sequence[Rollout]) -> None:
    """Raise CommandError for alarms that are not there, or that would turn an update back at once."""
    names = sorted({name for how in hows for name in how.rollback_alarms})
    if not names:
        return
    alarms = pages(account, "cloudwatch", "describe_alarms", "MetricAlarms", "CompositeAlarms", AlarmNames=names)
    states = {alarm["AlarmName"]: alarm["StateValue"] for alarm in alarms}
    if missing := [name for name in names if name not in states]:
        raise CommandError(
            f"there is no alarm {', '.join(missing)} in {account.region}", "correct its name, or create it", 2
        )
    if ringing := [name for name in names if states[name] == "ALARM"]:
        raise CommandError(
            f"{', '.join(ringing)} is in state ALARM, and would turn the update back at once",
            "fix what it tells of first, or name another alarm",
        )
