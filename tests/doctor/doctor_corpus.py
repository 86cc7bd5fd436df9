"""The bundles on which doctor is measured: clusters of doctor_world.py, broken in the ways of doctor/cases/*.toml.

The cases are worded from public reports, not from doctor's knowledge file; doctor/labels.csv says for each what is
wrong with it, and which report it follows. The second set was written when doctor had been fixed with the first: it
asked how doctor does on causes that nobody fixed it for. The third is worded from our own lifecycle scripts.
docs/operator/doctor.md has the first answers to each.

A case names only what differs from a cluster that is well:

- `on`: `eks` (default) or `slurm`; `size`: instances of the accelerated group (4); `scripts`: `podwright` for our
  own lifecycle scripts, else those of AWS's samples
- `cluster`, `state`: fields of DescribeCluster, and of the accelerated group in it; `empty`: no instance
  was ever made; `absent`: no cluster was
- `nodes`: of the accelerated group, from the first: `status`, `message`, `age` in minutes, `gone`, `labels`,
  `annotations`, `taint`, `conditions`; `of` names another group
- `events`: of the cluster: `text`, `level`, `failure`, `scope`, `minutes`, `metadata`, `node` (a number),
  `ghost` for an instance that is no more
- `lifecycle`, `health`, `deep`: logs: `lines`, `node`, `of`; a lifecycle log breaks off where the lines end
- `pods`, `kube_events`, `workloads`: what pod, kube_event and workload of KubernetesWorld take, and `node`
- `stacks`: `stack`, `resource`, `type`, `status`, `reason`; `nested` below another; `itself`: the stack, no resource;
  `then` and `again`: deployed well since
- `addons`: by name; `patches`: a `file`, a `path` in it and the `value` there
- `unseen`: sources that nobody could look at, with the reason
"""

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from doctor_kubernetes import KubernetesWorld
from doctor_world import CASES, Node, Tree

KINDS = ("one", "two", "healthy", "unknown")
UNSEEN_FILES = {
    "pods": "kubernetes/pods.json",
    "kubernetes_events": "kubernetes/events.json",
    "kubernetes_nodes": "kubernetes/nodes.json",
    "workloads": "kubernetes/workloads.json",
    "lifecycle_logs": "logs/LifecycleConfig/",
    "health_logs": "logs/SagemakerHealthMonitoringAgent/",
    "pod_logs": "kubernetes/logs/",
    "stack_events": "stack-events.json",
    "events": "events.json",
    "event_details": "event-details.json",
}


@dataclass(frozen=True)
class Label:
    """What is right to say of a bundle."""

    name: str
    set: str
    """`first`, `second` or `third`."""
    kind: str
    """`one`, `two`, `healthy` or `unknown`."""
    classes: frozenset[str]
    """The classes of its causes; empty for `healthy` and `unknown`."""
    source: str
    date: str
    """When the report was written; for a page without a date, when it was cited."""


@cache
def labels() -> tuple[Label, ...]:
    """The table of labels, in its order."""
    with (CASES.parent / "labels.csv").open(newline="") as file:
        return tuple(
            Label(row["name"], row["set"], row["kind"], frozenset(row["classes"].split()), row["source"], row["date"])
            for row in csv.DictReader(file)
        )


@cache
def cases() -> dict[str, Tree]:
    """The cases by name."""
    found: dict[str, Tree] = {}
    for path in sorted(CASES.glob("case-*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            if case["name"] in found:
                raise ValueError(f"{path.name}: there are two cases {case['name']}")
            found[case["name"]] = case
    return found


def bundles(seed: int = 0) -> Iterator[tuple[Label, dict[str, str]]]:
    """Every bundle with its label, as `Bundle.of` takes it. Another seed means other ids, times and noise."""
    for label in labels():
        yield label, bundle(label.name, seed)


def bundle(name: str, seed: int = 0) -> dict[str, str]:
    """The files of one bundle by path."""
    case = cases()[name]
    world = KubernetesWorld(f"{name}/{seed}", case.get("on", "eks"), case.get("size", 4), case.get("scripts", ""))
    _nodes(world, case)
    _answers(world, case)
    _logs(world, case)
    _kubernetes(world, case)
    unseen: dict[str, str] = case.get("unseen", {})
    texts = world.texts(unseen)
    hidden = tuple(UNSEEN_FILES[source] for source in unseen)
    return {path: text for path, text in texts.items() if not path.startswith(hidden)} if hidden else texts


def _nodes(world: KubernetesWorld, case: Tree) -> None:
    counts: dict[str, int] = {}
    if case.get("empty") or case.get("absent"):
        _empty(world, absent=case.get("absent", False))
    for item in case.get("nodes", ()):
        group = item.get("of", world.group)
        number = counts.setdefault(group, 0)
        counts[group] += 1
        node = replace(world.members(group)[number], launched=world.ago(item.get("age", 26)))
        if item.get("age") or item.get("status"):
            world.nodes[world.nodes.index(world.members(group)[number])] = node
        kept = [found for found in world.files["nodes.json"]["ClusterNodeSummaries"] if found["InstanceId"] != node.id]
        if item.get("status"):
            message = world.fill(item.get("message", ""), node)
            kept.append(world.summary(node, item["status"], message))
            details = {**kept[-1], "NodeLogicalId": world.uuid(), "PrivatePrimaryIp": node.ip}
            world.files["node-details.json"][node.id] = details
        if item.get("status") or item.get("gone"):
            world.files["nodes.json"]["ClusterNodeSummaries"] = kept
        if item.get("gone") or item.get("status") in ("Failure", "Pending", "ShuttingDown"):
            _group(world, group)["CurrentCount"] -= 1
        if item.get("gone") or (item.get("status") in ("Failure", "Pending") and not item.get("joined")):
            _never_joined(world, node)
        elif world.orchestrator == "eks":
            _kube_node(world, node, item)


def _empty(world: KubernetesWorld, *, absent: bool) -> None:
    """No instance was ever made; where the request was refused, there is no cluster either."""
    world.logs.clear()
    world.files["nodes.json"]["ClusterNodeSummaries"].clear()
    for group in world.files["cluster.json"]["InstanceGroups"]:
        group["CurrentCount"] = 0
    for path, content in world.files.items():
        if path.startswith("kubernetes/"):
            content["items"].clear()
    if absent:
        world.files["cluster.json"] = {"InstanceGroups": [], "NodeProvisioningMode": ""}


def _group(world: KubernetesWorld, name: str) -> Tree:
    groups = world.files["cluster.json"]["InstanceGroups"]
    return next(group for group in groups if group["InstanceGroupName"] == name)


def _never_joined(world: KubernetesWorld, node: Node) -> None:
    """A node that Kubernetes and the logs of the healthy cluster know nothing of."""
    world.logs = {path: lines for path, lines in world.logs.items() if node.id not in path}
    for path in ("kubernetes/nodes.json", "kubernetes/pods.json", "kubernetes/events.json"):
        if path in world.files:
            items = world.files[path]["items"]
            world.files[path]["items"] = [item for item in items if node.name not in str(item)]


def _kube_node(world: KubernetesWorld, node: Node, item: Tree) -> None:
    found = next(
        found for found in world.files["kubernetes/nodes.json"]["items"] if found["metadata"]["name"] == node.name
    )
    found["metadata"]["labels"] |= item.get("labels", {})
    if "annotations" in item:
        found["metadata"]["annotations"] = {key: world.fill(text, node) for key, text in item["annotations"].items()}
    if "taint" in item:
        found["spec"]["taints"].append(item["taint"])
    for condition in item.get("conditions", ()):
        others = [known for known in found["status"]["conditions"] if known["type"] != condition["type"]]
        since = world.ago(item.get("minutes", 20))
        filled = {key: world.fill(text, node) for key, text in condition.items()}
        found["status"]["conditions"] = [*others, {**filled, "lastTransitionTime": since}]
    for resource, amount in item.get("allocatable", {}).items():
        found["status"]["allocatable"][resource] = amount


def _answers(world: KubernetesWorld, case: Tree) -> None:
    if case.get("absent"):
        for path in ("cluster.json", "nodes.json", "node-details.json", "events.json", "event-details.json"):
            del world.files[path]
    else:
        _describe(world, case)
    for item in case.get("events", ()):
        world.event(item, _node(world, item) or world.nodes[-1], item.get("minutes", 14))
    for item in case.get("stacks", ()):
        _stack(world, item)
    for name, addon in case.get("addons", {}).items():
        known = world.files["addons.json"].setdefault(name, {"addonName": name, "addonVersion": "v1.0.0"})
        known |= _filled(world, addon)
    for item in case.get("patches", ()):
        _patch(world, item)


def _describe(world: KubernetesWorld, case: Tree) -> None:
    cluster = world.files["cluster.json"]
    cluster |= {key: _filled(world, value) for key, value in case.get("cluster", {}).items()}
    _group(world, world.group).update({key: _filled(world, value) for key, value in case.get("state", {}).items()})
    if cluster["NodeProvisioningMode"] != "Continuous":
        world.files["events.json"]["Events"].clear()
        world.files["event-details.json"].clear()


def _filled(world: KubernetesWorld, value: Any) -> Any:
    """A value of a case, its words filled in; `@-30` is the moment 30 minutes before the bundle was taken."""
    if isinstance(value, str):
        return world.ago(-float(value[1:])) if value.startswith("@") else world.fill(value)
    if isinstance(value, list):
        return [_filled(world, item) for item in value]
    if isinstance(value, dict):
        return {world.fill(key): _filled(world, item) for key, item in value.items()}
    return value


def _patch(world: KubernetesWorld, item: Tree) -> None:
    place: Any = world.files.setdefault(item["file"], {})
    *steps, last = item["path"]
    for step in steps:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    place[world.fill(last) if isinstance(last, str) else last] = _filled(world, item["value"])


_ENDS = {
    "CREATE_FAILED": ("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "create"),
    "UPDATE_FAILED": ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", "update"),
    "DELETE_FAILED": ("DELETE_IN_PROGRESS", "DELETE_FAILED", "delete"),
    "UPDATE_COMPLETE": ("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", ""),
}


def _stack(world: KubernetesWorld, item: Tree) -> None:
    """A stack whose newest operation failed, unless it was deployed again since."""
    name, minutes = f"{world.environment}-{item['stack']}", item.get("minutes", 40)
    stacks = world.files["stacks.json"]["Stacks"]
    own = {"resource": name, "type": "AWS::CloudFormation::Stack"}
    if item.get("nested"):
        parent = next(stack for stack in stacks if stack["StackName"] == f"{world.environment}-{item['nested']}")
        world.stack(item["stack"], minutes + 60, parent["StackId"])
    stack = next((stack for stack in stacks if stack["StackName"] == name), None)
    if stack is None:
        world.stack(item["stack"], minutes + 60)
        stack = stacks[-1]
    running, end, verb = _ENDS[item["status"]]
    noun = "creation" if verb == "create" else verb
    if verb == "create":
        world.files["stack-events.json"][name] = []
    begun = {**own, "status": f"{verb.upper()}_IN_PROGRESS", "reason": "User Initiated"}
    world.stack_event(name, minutes + 12, begun)
    if item.get("itself"):
        reason = world.fill(item["reason"])
    else:
        world.stack_event(name, minutes + 1, item)
        if item.get("others", True):
            cancelled = {"resource": "NodesReady", "type": "Custom::NodesReady", "status": item["status"]}
            world.stack_event(name, minutes + 0.5, cancelled | {"reason": f"Resource {noun} cancelled"})
        reason = f"The following resource(s) failed to {verb}: [{item['resource']}]."
    if verb == "delete":
        world.stack_event(name, minutes, {**own, "status": end, "reason": reason})
    else:
        world.stack_event(name, minutes, {**own, "status": running, "reason": reason})
        world.stack_event(name, minutes - 6, {**own, "status": end})
    stack |= {"StackStatus": end, "StackStatusReason": reason, "LastUpdatedTime": world.ago(minutes - 6)}
    if item.get("nested"):
        above = {"stack": item["nested"], "resource": item["stack"].title(), "type": "AWS::CloudFormation::Stack"}
        embedded = f"Embedded stack {stack['StackId']} was not successfully {verb}d: {reason}"
        _stack(world, {**above, "status": item["status"], "reason": embedded, "minutes": minutes - 7})
    if "then" in item:
        again = item.get("again", minutes - 20)
        world.stack_event(name, again + 8, {**own, "status": "UPDATE_IN_PROGRESS", "reason": "User Initiated"})
        world.stack_event(name, again, {**own, "status": item["then"]})
        stack |= {"StackStatus": item["then"], "StackStatusReason": "", "LastUpdatedTime": world.ago(again)}


def _node(world: KubernetesWorld, item: Tree) -> Node | None:
    """The node of an item: a number in its group; -1 for none; a ghost is an instance that is no more."""
    number = item.get("node", 0)
    if number < 0:
        return None
    node = world.members(item.get("of", world.group))[number]
    return replace(node, id=f"i-{world.hex(17)}", ip=world.ip()) if item.get("ghost") else node


def _logs(world: KubernetesWorld, case: Tree) -> None:
    for item in case.get("lifecycle", ()):
        node = _node(world, item) or world.nodes[0]
        log = world.log("LifecycleConfig", node)
        log.clear()
        boot = world.booted()
        boot = boot[: item.get("after", len(boot) // 2)]
        end = world.booted()[-2:] if item.get("ends_well") else []
        start = node.launched + timedelta(minutes=3)
        world.write(log, [*boot, *item["lines"], *end], start, node)
    for item in case.get("health", ()):
        node = _node(world, item) or world.nodes[0]
        world.write(
            world.log("SagemakerHealthMonitoringAgent", node), item["lines"], world.ago(item.get("minutes", 18)), node
        )
    for item in case.get("deep", ()):
        node = _node(world, item) or world.nodes[0]
        log = world.logs.setdefault(f"logs/DeepHealthCheckResults/{world.uuid()}.log", [])
        world.write(log, item["lines"], world.ago(item.get("minutes", 50)), node)


def _kubernetes(world: KubernetesWorld, case: Tree) -> None:
    for item in case.get("pods", ()):
        for number in range(item.get("copies", 1)):
            named = {**item, "name": item["name"].replace("#", str(number))}
            world.pod(named, _node(world, item))
    for item in case.get("kube_events", ()):
        world.kube_event(item, _node(world, item), item.get("minutes", 8))
    for item in case.get("workloads", ()):
        world.workload(item)
