"""Install a newer image on nodes, group by group and batch by batch.

HyperPod does not drain nodes: jobs on a node stop when its batch begins. The node gets a new root volume and runs its
lifecycle scripts again. An update continues in AWS when you interrupt this command. Run the command again to follow the
update and to continue with the remaining groups.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final

from ...config.settings.environment import Environment
from ..arguments import as_time, open_target
from ..aws.clusters import existing_cluster
from ..kubernetes.kubectl import way
from ..output.confirm import confirm
from ..output.console import write_json, write_line, write_note
from ..output.tables import coloured, new_table
from .observed import behind, jobs_on_nodes, kubernetes_nodes
from .renewal import Upgrade, announced, check_alarms, going_groups, is_busy, own_settings, warnings
from .software import Software, Wish, rollout, software

_NEXT: Final = (
    "`podwright doctor {name}` reads logs and events; the other groups are unchanged; run this again afterwards"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV nodes`."""
    parser.add_argument(
        "--group", action="append", default=[], metavar="GROUP", help="only this instance group; may be repeated"
    )
    parser.add_argument("--release", metavar="X.Y.Z", help="release of HyperPod's image (default: the newest)")
    parser.add_argument("--batch", metavar="N|P%", help="nodes at a time (default: from the file, or 20%%)")
    parser.add_argument("--rollback-batch", metavar="N|P%", help="nodes at a time during a rollback")
    parser.add_argument(
        "--wait-between", type=as_time, metavar="TIME", help="time between batches, in which an alarm starts a rollback"
    )
    parser.add_argument(
        "--rollback-alarm",
        action="append",
        default=[],
        metavar="ALARM",
        help="CloudWatch alarm that starts a rollback; may be repeated",
    )
    parser.add_argument("--idle-only", action="store_true", help="skip groups with running jobs")
    parser.add_argument("--pause", action="store_true", help="ask before each group")
    parser.add_argument("--wait", type=as_time, metavar="TIME", help="follow each group, at most for this time")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    """Renew the groups that are behind. Returns 1 where one was turned back, or is not as it should be afterwards."""
    environment, account = open_target(args)
    wish = Wish(**{item.name: getattr(args, item.name) for item in fields(Wish)})
    kubectl = way(args.project, environment, account)
    hyperpod = existing_cluster(account, environment.cluster.name)
    existing = software(hyperpod)
    server, old_kubelets = behind(account, hyperpod, kubernetes_nodes(kubectl))
    going = going_groups(environment, existing, old_kubelets, wish)
    under_way = [name for name, now in existing.items() if now.is_active]
    jobs = jobs_on_nodes(kubectl)
    if args.idle_only:
        going = [name for name in going if not is_busy(account, environment, name, kubectl, jobs)]
    write_note(f"software of {environment.name} → {account}")
    for name, kubelet in old_kubelets.items():
        write_note(f"  {name}: nodes have kubelet {kubelet}, the control plane is {server}")
    for line in announced(environment, existing, under_way, going, wish):
        write_note(f"  {line}")
    if going:
        check_alarms(account, [rollout(own_settings(environment, name), wish) for name in going])
        for line in warnings(account, environment, going, kubectl, jobs):
            write_note(f"  {line}")
        if not args.yes:
            confirm(environment.name, f"renew the software of {', '.join(going)}")
    upgrade = Upgrade(environment, account, kubectl, server, wish)
    between = partial(confirm, "next") if args.pause else None
    try:
        results = list(upgrade.groups(existing, going, jobs, between))
    except KeyboardInterrupt:
        write_note(
            f"\nWhat has begun continues in AWS. `podwright upgrade {environment.name} nodes` follows it and continues."
        )
        raise
    _write(environment, existing, results, args)
    return 0 if all(item["ok"] for item in results) else 1


def _write(
    environment: Environment, before: Mapping[str, Software], result: Sequence[dict[str, Any]], args: argparse.Namespace
) -> None:
    """Print what was renewed, as JSON or as a table."""
    if args.json:
        ok = all(item["ok"] for item in result)
        write_json({"environment": environment.name, "groups": list(result), "ok": ok})
        return
    if not result:
        states = (f"{name} {now.current or '–'} {now.state}".rstrip() for name, now in before.items())
        write_line(f"{environment.name}: no group to renew; {', '.join(states)}")
        return
    table = new_table(f"Software of {environment.name}", ("group", "release", "status", "took", "verdict"))
    for item in result:
        verdict = "; ".join([*(["as asked for"] if item["ok"] else item["problems"]), *item["notes"]])
        release = f"{item['from'] or '–'} → {item['to'] or '–'}"
        status = coloured(item["status"], ("Succeeded",))
        table.add_row(item["group"], release, status, f"{item['seconds']:.0f} s", verdict)
    write_line(table)
    if not all(item["ok"] for item in result):
        write_line(_NEXT.format(name=environment.name))
