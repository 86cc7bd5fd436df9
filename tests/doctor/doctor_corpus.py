"""The bundles on which doctor is measured: clusters of doctor_cluster.py, broken in the ways of doctor/cases/*.toml.

The cases are worded from public reports, not from doctor's knowledge file; doctor/labels.csv says for each what is
wrong with it, and which report it follows. The second set was written when doctor had been fixed with the first: it
asked how doctor does on causes that nobody fixed it for. The third is worded from our own lifecycle scripts.
docs/operator/doctor.md has the first answers to each.

A case names only what differs from a cluster that is healthy:

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

from doctor_cluster import CASES, Node, Tree
from doctor_kubernetes import SimulatedEksCluster

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
    trees: dict[str, Tree] = {}
    for path in sorted(CASES.glob("case-*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            if case["name"] in trees:
                raise ValueError(f"{path.name}: there are two cases {case['name']}")
            trees[case["name"]] = case
    return trees


def bundles(seed: int = 0) -> Iterator[tuple[Label, dict[str, str]]]:
    """Every bundle with its label, as `Bundle.of` takes it. Another seed means other ids, times and noise."""
    for label in labels():
        yield label, bundle(label.name, seed)


def bundle(name: str, seed: int = 0) -> dict[str, str]:
    """The files of one bundle by path."""
    case = cases()[name]
    simulated = SimulatedEksCluster(
        f"{name}/{seed}", case.get("on", "eks"), case.get("size", 4), case.get("scripts", "")
    )
    _nodes(simulated, case)
    _answers(simulated, case)
    _logs(simulated, case)
    _kubernetes(simulated, case)
    unseen: dict[str, str] = case.get("unseen", {})
    texts = simulated.texts(unseen)
    hidden = tuple(UNSEEN_FILES[source] for source in unseen)
    return {path: text for path, text in texts.items() if not path.startswith(hidden)} if hidden else texts


def _nodes(simulated: SimulatedEksCluster, case: Tree) -> None:
    counts: dict[str, int] = {}
    if case.get("empty") or case.get("absent"):
        _empty(simulated, absent=case.get("absent", False))
    for item in case.get("nodes", ()):
        group = item.get("of", simulated.group)
        number = counts.setdefault(group, 0)
        counts[group] += 1
        node = replace(simulated.members(group)[number], launched=simulated.ago(item.get("age", 26)))
        if item.get("age") or item.get("status"):
            simulated.nodes[simulated.nodes.index(simulated.members(group)[number])] = node
        retained = [
            cluster_node_summary
            for cluster_node_summary in simulated.files["nodes.json"]["ClusterNodeSummaries"]
            if cluster_node_summary["InstanceId"] != node.id
        ]
        if item.get("status"):
            message = simulated.fill(item.get("message", ""), node)
            retained.append(simulated.summary(node, item["status"], message))
            details = {**retained[-1], "NodeLogicalId": simulated.uuid(), "PrivatePrimaryIp": node.ip}
            simulated.files["node-details.json"][node.id] = details
        if item.get("status") or item.get("gone"):
            simulated.files["nodes.json"]["ClusterNodeSummaries"] = retained
        if item.get("gone") or item.get("status") in ("Failure", "Pending", "ShuttingDown"):
            _group(simulated, group)["CurrentCount"] -= 1
        if item.get("gone") or (item.get("status") in ("Failure", "Pending") and not item.get("joined")):
            _never_joined(simulated, node)
        elif simulated.orchestrator == "eks":
            _kube_node(simulated, node, item)


def _empty(simulated: SimulatedEksCluster, *, absent: bool) -> None:
    """No instance was ever made; where the request was refused, there is no cluster either."""
    simulated.logs.clear()
    simulated.files["nodes.json"]["ClusterNodeSummaries"].clear()
    for group in simulated.files["cluster.json"]["InstanceGroups"]:
        group["CurrentCount"] = 0
    for path, content in simulated.files.items():
        if path.startswith("kubernetes/"):
            content["items"].clear()
    if absent:
        simulated.files["cluster.json"] = {"InstanceGroups": [], "NodeProvisioningMode": ""}


def _group(simulated: SimulatedEksCluster, name: str) -> Tree:
    groups = simulated.files["cluster.json"]["InstanceGroups"]
    return next(group for group in groups if group["InstanceGroupName"] == name)


def _never_joined(simulated: SimulatedEksCluster, node: Node) -> None:
    """A node that Kubernetes and the logs of the healthy cluster know nothing of."""
    simulated.logs = {path: lines for path, lines in simulated.logs.items() if node.id not in path}
    for path in ("kubernetes/nodes.json", "kubernetes/pods.json", "kubernetes/events.json"):
        if path in simulated.files:
            items = simulated.files[path]["items"]
            simulated.files[path]["items"] = [item for item in items if node.name not in str(item)]


def _kube_node(simulated: SimulatedEksCluster, node: Node, item: Tree) -> None:
    actual = next(
        actual
        for actual in simulated.files["kubernetes/nodes.json"]["items"]
        if actual["metadata"]["name"] == node.name
    )
    actual["metadata"]["labels"] |= item.get("labels", {})
    if "annotations" in item:
        actual["metadata"]["annotations"] = {
            key: simulated.fill(text, node) for key, text in item["annotations"].items()
        }
    if "taint" in item:
        actual["spec"]["taints"].append(item["taint"])
    for condition in item.get("conditions", ()):
        others = [known for known in actual["status"]["conditions"] if known["type"] != condition["type"]]
        since = simulated.ago(item.get("minutes", 20))
        filled = {key: simulated.fill(text, node) for key, text in condition.items()}
        actual["status"]["conditions"] = [*others, {**filled, "lastTransitionTime": since}]
    for resource, amount in item.get("allocatable", {}).items():
        actual["status"]["allocatable"][resource] = amount


def _answers(simulated: SimulatedEksCluster, case: Tree) -> None:
    if case.get("absent"):
        for path in ("cluster.json", "nodes.json", "node-details.json", "events.json", "event-details.json"):
            del simulated.files[path]
    else:
        _describe(simulated, case)
    for item in case.get("events", ()):
        simulated.event(item, _node(simulated, item) or simulated.nodes[-1], item.get("minutes", 14))
    for item in case.get("stacks", ()):
        _stack(simulated, item)
    for name, addon in case.get("addons", {}).items():
        known = simulated.files["addons.json"].setdefault(name, {"addonName": name, "addonVersion": "v1.0.0"})
        known |= _filled(simulated, addon)
    for item in case.get("patches", ()):
        _patch(simulated, item)


def _describe(simulated: SimulatedEksCluster, case: Tree) -> None:
    cluster = simulated.files["cluster.json"]
    cluster |= {key: _filled(simulated, value) for key, value in case.get("cluster", {}).items()}
    _group(simulated, simulated.group).update(
        {key: _filled(simulated, value) for key, value in case.get("state", {}).items()}
    )
    if cluster["NodeProvisioningMode"] != "Continuous":
        simulated.files["events.json"]["Events"].clear()
        simulated.files["event-details.json"].clear()


def _filled(simulated: SimulatedEksCluster, value: Any) -> Any:
    """A value of a case, its words filled in; `@-30` is the moment 30 minutes before the bundle was taken."""
    if isinstance(value, str):
        return simulated.ago(-float(value[1:])) if value.startswith("@") else simulated.fill(value)
    if isinstance(value, list):
        return [_filled(simulated, item) for item in value]
    if isinstance(value, dict):
        return {simulated.fill(key): _filled(simulated, item) for key, item in value.items()}
    return value


def _patch(simulated: SimulatedEksCluster, item: Tree) -> None:
    location: Any = simulated.files.setdefault(item["file"], {})
    *steps, last = item["path"]
    for step in steps:
        location = location[step] if isinstance(step, int) else location.setdefault(step, {})
    location[simulated.fill(last) if isinstance(last, str) else last] = _filled(simulated, item["value"])


_ENDS = {
    "CREATE_FAILED": ("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "create"),
    "UPDATE_FAILED": ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", "update"),
    "DELETE_FAILED": ("DELETE_IN_PROGRESS", "DELETE_FAILED", "delete"),
    "UPDATE_COMPLETE": ("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", ""),
}


def _stack(simulated: SimulatedEksCluster, item: Tree) -> None:
    """A stack whose newest operation failed, unless it was deployed again since."""
    name, minutes = f"{simulated.environment}-{item['stack']}", item.get("minutes", 40)
    stacks = simulated.files["stacks.json"]["Stacks"]
    own = {"resource": name, "type": "AWS::CloudFormation::Stack"}
    if item.get("nested"):
        parent = next(stack for stack in stacks if stack["StackName"] == f"{simulated.environment}-{item['nested']}")
        simulated.stack(item["stack"], minutes + 60, parent["StackId"])
    stack = next((stack for stack in stacks if stack["StackName"] == name), None)
    if stack is None:
        simulated.stack(item["stack"], minutes + 60)
        stack = stacks[-1]
    running, end, verb = _ENDS[item["status"]]
    noun = "creation" if verb == "create" else verb
    if verb == "create":
        simulated.files["stack-events.json"][name] = []
    started = {**own, "status": f"{verb.upper()}_IN_PROGRESS", "reason": "User Initiated"}
    simulated.stack_event(name, minutes + 12, started)
    if item.get("itself"):
        reason = simulated.fill(item["reason"])
    else:
        simulated.stack_event(name, minutes + 1, item)
        if item.get("others", True):
            cancelled = {"resource": "NodesReady", "type": "Custom::NodesReady", "status": item["status"]}
            simulated.stack_event(name, minutes + 0.5, cancelled | {"reason": f"Resource {noun} cancelled"})
        reason = f"The following resource(s) failed to {verb}: [{item['resource']}]."
    if verb == "delete":
        simulated.stack_event(name, minutes, {**own, "status": end, "reason": reason})
    else:
        simulated.stack_event(name, minutes, {**own, "status": running, "reason": reason})
        simulated.stack_event(name, minutes - 6, {**own, "status": end})
    stack |= {"StackStatus": end, "StackStatusReason": reason, "LastUpdatedTime": simulated.ago(minutes - 6)}
    if item.get("nested"):
        above = {"stack": item["nested"], "resource": item["stack"].title(), "type": "AWS::CloudFormation::Stack"}
        embedded = f"Embedded stack {stack['StackId']} was not successfully {verb}d: {reason}"
        _stack(simulated, {**above, "status": item["status"], "reason": embedded, "minutes": minutes - 7})
    if "then" in item:
        again = item.get("again", minutes - 20)
        simulated.stack_event(name, again + 8, {**own, "status": "UPDATE_IN_PROGRESS", "reason": "User Initiated"})
        simulated.stack_event(name, again, {**own, "status": item["then"]})
        stack |= {"StackStatus": item["then"], "StackStatusReason": "", "LastUpdatedTime": simulated.ago(again)}


def _node(simulated: SimulatedEksCluster, item: Tree) -> Node | None:
    """The node of an item: a number in its group; -1 for none; a ghost is an instance that is no more."""
    number = item.get("node", 0)
    if number < 0:
        return None
    node = simulated.members(item.get("of", simulated.group))[number]
    return replace(node, id=f"i-{simulated.hex(17)}", ip=simulated.ip()) if item.get("ghost") else node


def _logs(simulated: SimulatedEksCluster, case: Tree) -> None:
    for item in case.get("lifecycle", ()):
        node = _node(simulated, item) or simulated.nodes[0]
        log = simulated.log("LifecycleConfig", node)
        log.clear()
        boot = simulated.booted()
        boot = boot[: item.get("after", len(boot) // 2)]
        end = simulated.booted()[-2:] if item.get("ends_well") else []
        start = node.launched + timedelta(minutes=3)
        simulated.write(log, [*boot, *item["lines"], *end], start, node)
    for item in case.get("health", ()):
        node = _node(simulated, item) or simulated.nodes[0]
        simulated.write(
            simulated.log("SagemakerHealthMonitoringAgent", node),
            item["lines"],
            simulated.ago(item.get("minutes", 18)),
            node,
        )
    for item in case.get("deep", ()):
        node = _node(simulated, item) or simulated.nodes[0]
        log = simulated.logs.setdefault(f"logs/DeepHealthCheckResults/{simulated.uuid()}.log", [])
        simulated.write(log, item["lines"], simulated.ago(item.get("minutes", 50)), node)


def _kubernetes(simulated: SimulatedEksCluster, case: Tree) -> None:
    for item in case.get("pods", ()):
        for number in range(item.get("copies", 1)):
            named = {**item, "name": item["name"].replace("#", str(number))}
            simulated.pod(named, _node(simulated, item))
    for item in case.get("kube_events", ()):
        simulated.kube_event(item, _node(simulated, item), item.get("minutes", 8))
    for item in case.get("workloads", ()):
        simulated.workload(item)
