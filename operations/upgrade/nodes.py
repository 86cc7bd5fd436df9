"""`podwright upgrade ENV nodes`: a newer image on nodes, group after group and batch after batch.

HyperPod drains nothing: what runs on a node stops when its turn comes. Its root volume is new afterwards, and its
lifecycle scripts have run again. An update goes on in AWS when this command is interrupted; started again, it follows
it and goes on with the groups that are left.
"""

import argparse
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup, Rollout
from ...planning.rules.groups.updates import batch_nodes
from ..aws.account import Account, account_of
from ..aws.calls import change, pages
from ..aws.clusters import Node, existing_cluster, nodes
from ..aws.unseen import code_of
from ..cdk.deployment import load
from ..kubernetes.kubectl import Kubectl, Refused, way
from ..output.confirm import confirm
from ..output.console import write_json, write_line
from ..output.tables import coloured, empty_table
from .follow import POLL_SECONDS, SANDBOX_POLL_SECONDS, Renewed, follow, problems
from .seen import behind, jobs_on_nodes, kubernetes_nodes
from .software import Software, batches, in_order, request, rollout, software

_NEXT: Final = (
    "`podwright doctor {name}` reads logs and events; nothing was asked of the other groups; run this again afterwards"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV nodes`."""
    parser.add_argument("--group", action="append", default=[], metavar="G", help="only this group; repeatable")
    parser.add_argument("--release", metavar="X.Y.Z", help="release of HyperPod's image (default: the newest)")
    parser.add_argument("--batch", metavar="N|P%", help="nodes at a time (default: as the file says, else 20%%)")
    parser.add_argument("--rollback-batch", metavar="N|P%", help="nodes at a time on the way back")
    parser.add_argument("--wait-between", type=int, metavar="S", help="seconds between batches, in which alarms count")
    parser.add_argument(
        "--rollback-alarm", action="append", default=[], metavar="ALARM", help="an alarm that turns it back; repeatable"
    )
    parser.add_argument("--idle", action="store_true", help="leave out groups on which jobs run")
    parser.add_argument("--pause", action="store_true", help="ask before each group")
    parser.add_argument("--wait", type=float, metavar="MINUTES", help="follow each group for so long at most")
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def run(args: argparse.Namespace) -> int:
    """Renew the groups that are behind. Returns 1 where one was turned back, or is not as it should be afterwards."""
    environment = load(args).environment
    account = account_of(environment, args.project, args.sandbox)
    cluster = environment.cluster.name
    kubectl = way(args.project, environment, account) if environment.cluster.orchestrator == "eks" else None
    hyperpod = existing_cluster(account, cluster)
    there = software(hyperpod)
    server, old_kubelets = behind(account, hyperpod, kubernetes_nodes(kubectl))
    going = _going(environment, there, old_kubelets, args)
    under_way = [name for name, now in there.items() if now.is_active]
    jobs = jobs_on_nodes(kubectl)
    if args.idle:
        going = [name for name in going if not _busy(account, environment, name, kubectl, jobs)]
    write_line(f"software of {environment.name} → {account}", sys.stderr)
    for name, kubelet in old_kubelets.items():
        write_line(f"  {name}: nodes have kubelet {kubelet}, the control plane is {server}", sys.stderr)
    for line in _announced(environment, there, under_way, going, args):
        write_line(f"  {line}", sys.stderr)
    found: list[dict[str, Any]] = []
    if going:
        _check_alarms(account, [rollout(_own(environment, name), args) for name in going])
        for line in _warnings(account, environment, going, kubectl, jobs):
            write_line(f"  {line}", sys.stderr)
        if not args.yes:
            confirm(environment.name, f"renew the software of {', '.join(going)}")
    upgrade = _Upgrade(environment, account, kubectl, server, args)
    ok = True
    try:
        for name in under_way:
            found.append(upgrade.group(name, there[name], jobs, resumed=True))
            ok = ok and found[-1]["ok"]
        for position, name in enumerate(name for name in going if ok and name not in under_way):
            if args.pause and position:
                confirm("next", f"go on with {name}")
            found.append(upgrade.group(name, software(existing_cluster(account, cluster))[name], jobs, resumed=False))
            ok = found[-1]["ok"]
    except KeyboardInterrupt:
        write_line(
            f"\nWhat has begun goes on in AWS. `podwright upgrade {environment.name} nodes` follows it and goes on.",
            sys.stderr,
        )
        raise
    _write(environment, there, found, args)
    return 0 if ok else 1


class _Upgrade:
    """Renews groups of one cluster, one at a time."""

    def __init__(
        self, environment: Environment, account: Account, kubectl: Kubectl | None, server: str, args: argparse.Namespace
    ) -> None:
        self._environment, self._account, self._kubectl, self._args = environment, account, kubectl, args
        self._server = server
        self._cluster = environment.cluster.name
        self._poll = SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS

    def group(self, name: str, before: Software, jobs: Mapping[str, list[str]], *, resumed: bool) -> dict[str, Any]:
        """Ask for the update of a group unless one is under way, follow it, and look at the result."""
        from botocore.exceptions import ClientError

        group, begun = _own(self._environment, name), time.time()
        release = self._args.release or (group.image_release if group else None) or ""
        on_eks = self._environment.cluster.orchestrator == "eks"
        before_it = {node.id: node.status for node in nodes(self._account, self._cluster, name)}
        if resumed:
            write_line(f"  {name}: an update is under way, which is followed", sys.stderr)
            release = before.desired
        else:
            how = rollout(group, self._args) if on_eks else None
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
            lambda text: write_line(text, sys.stderr),
            begun=begun,
            resumed=resumed,
            before=before_it,
            minutes=self._args.wait,
            poll=self._poll,
            jobs=jobs,
        )
        now = software(existing_cluster(self._account, self._cluster))[name]
        there = nodes(self._account, self._cluster, name)
        kubernetes = self._kubernetes()
        wrong = self._wrong(done, release, now, there, kubernetes)
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
                for node in sorted(there, key=lambda node: node.id)
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
        there: Sequence[Node],
        kubernetes: Mapping[str, Mapping[str, Any]],
    ) -> list[str]:
        match done.status:
            case "Succeeded":
                return problems(release, now, there, kubernetes)
            case "waiting":
                return [f"{now.renewed} of {now.nodes} nodes have the new image; the update goes on in AWS"]
            case "nothing":
                return ["HyperPod began no update"]
        return [f"{done.status}: {done.message or 'HyperPod gives no reason'}; {now.renewed} nodes have {now.desired}"]


def _own(environment: Environment, name: str) -> InstanceGroup | None:
    group = environment.groups.get(name)
    return group if isinstance(group, InstanceGroup) else None


def _going(
    environment: Environment, there: Mapping[str, Software], old_kubelets: Collection[str], args: argparse.Namespace
) -> list[str]:
    """The groups to renew, in their order. Raises CommandError for what cannot be renewed this way."""
    if unknown := [name for name in args.group if name not in there]:
        raise CommandError(f"the cluster has no group {', '.join(unknown)}", f"it has {', '.join(there)}", 2)
    slurm = environment.cluster.orchestrator != "eks"
    if slurm and (
        args.wait_between is not None or args.batch or args.rollback_batch or args.rollback_alarm or args.release
    ):
        raise CommandError(
            "HyperPod renews a Slurm cluster's groups with the newest image and all nodes at once",
            "leave out --release, --batch, --rollback-batch, --wait-between and --rollback-alarm, and empty the queue",
            2,
        )
    chosen = list(args.group) or [
        name
        for name, now in there.items()
        if name in old_kubelets or (now.is_behind if not args.release else now.current not in ("", args.release))
    ]
    going: list[str] = []
    for name in in_order(environment, chosen):
        group = _own(environment, name)
        if there[name].is_active or not there[name].nodes:
            continue
        if group and group.image_id:
            if name in args.group:
                raise CommandError(
                    f"{name} has the image {group.image_id} of your own",
                    "change image_id in the file and deploy: the deployment renews its nodes",
                    2,
                )
            continue
        if group and group.image_release and group.image_release != (args.release or group.image_release):
            raise CommandError(
                f"the file pins {name} to image_release {group.image_release}, and --release is {args.release}",
                "change the file and deploy, or take image_release out and let this command choose",
                2,
            )
        pinned = group is not None and group.image_release == there[name].current
        if pinned and name not in (*args.group, *old_kubelets):
            continue
        going.append(name)
    return going


def _announced(
    environment: Environment,
    there: Mapping[str, Software],
    under_way: Sequence[str],
    going: Sequence[str],
    args: argparse.Namespace,
) -> Iterator[str]:
    for name in under_way:
        yield f"{name}: {there[name].update}, {there[name].renewed} of {there[name].nodes} nodes"
    for name in going:
        now, group = there[name], _own(environment, name)
        to = args.release or (group.image_release if group else None) or "the newest"
        line = f"{name}: {now.nodes} nodes, {now.current or 'an image without a release'} → {to}"
        if environment.cluster.orchestrator == "eks":
            how = rollout(group, args)
            count = batches(how, now.nodes)
            line += f", {batch_nodes(how, now.nodes)} at a time in {count} batches"
            if count > 1:
                line += f" with {how.wait_seconds} s between"
            alarms = ", ".join(how.rollback_alarms)
            line += f"; turned back by {alarms}" if alarms else "; no alarm watches it"
        yield line


def _warnings(
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
                yield f"{node.id} ({name}): {job} runs on it and stops when the node goes"
        if environment.cluster.orchestrator == "slurm":
            yield f"{name}: all its nodes go at once"
    yield "nothing is drained; what is on root volumes is lost, file systems stay; lifecycle scripts run again"


def _busy(
    account: Account, environment: Environment, name: str, kubectl: Kubectl | None, jobs: Mapping[str, list[str]]
) -> bool:
    """Whether jobs run on a group. Raises CommandError where nobody can see that."""
    if kubectl is None:
        raise CommandError(
            "--idle needs to see which jobs run, and Kubernetes is not reached", "run `podwright connect` first"
        )
    there = nodes(account, environment.cluster.name, name)
    at_work = sorted({job for node in there for job in jobs.get(node.id, ())})
    if at_work:
        write_line(f"  {name} is left out: {', '.join(at_work)}", sys.stderr)
    return bool(at_work)


def _check_alarms(account: Account, hows: Sequence[Rollout]) -> None:
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


def _write(
    environment: Environment, before: Mapping[str, Software], found: Sequence[dict[str, Any]], args: argparse.Namespace
) -> None:
    if args.json:
        ok = all(item["ok"] for item in found)
        write_json({"environment": environment.name, "groups": list(found), "ok": ok})
        return
    if not found:
        write_line(f"{environment.name}: no group to renew; {_states(before)}")
        return
    from rich.console import Console

    table = empty_table(f"Software of {environment.name}", "group", "release", "status", "took", "verdict")
    for item in found:
        verdict = "; ".join([*(["as asked for"] if item["ok"] else item["problems"]), *item["notes"]])
        release = f"{item['from'] or '–'} → {item['to'] or '–'}"
        status = coloured(item["status"], ("Succeeded",))
        table.add_row(item["group"], release, status, f"{item['seconds']:.0f} s", verdict)
    Console(highlight=False, markup=False).print(table)
    if not all(item["ok"] for item in found):
        write_line(_NEXT.format(name=environment.name))


def _states(groups: Mapping[str, Software]) -> str:
    return ", ".join(f"{name} {now.current or '–'} {now.state}".rstrip() for name, now in groups.items())
