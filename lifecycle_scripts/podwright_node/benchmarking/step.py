"""Measures the node with the benchmark kernels, decides what follows from the verdict, and publishes both.

The record stays on the node (`RECORD`), goes to S3 and becomes metrics. It is written twice: when the node is measured,
and again with the decision when that has been carried out. A run that is killed in between resumes from there, so a
node is measured once in the life of its root volume. Slurm may have started the node before these scripts run; it gives
the node no jobs while it is measured. On EKS a DaemonSet makes labels of the record.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.object_store import TIMEOUTS, Store
from ..runner.retry import retry
from ..runner.steps import Step
from ..slurm import node_state
from .metrics import documents
from .replacements import claim

RECORD = "/var/lib/podwright/benchmarks.json"
PATIENCE_SECONDS = 60
"""How long publishing a record, or telling Slurm, is tried."""


def wanted(node: Node) -> bool:
    """Whether the group of the node has benchmarks."""
    return bool(node.facts["benchmarks"]) and node.group_facts.get("benchmarks", "skip") != "skip"


def settled(node: Node) -> bool:
    """Whether the node was measured, what follows was done, and it may take work."""
    decision = (_record(node) or {}).get("decision")
    return decision is not None and decision["action"] != "exit"


def measure(node: Node) -> None:
    """Measure, decide, carry out, publish."""
    record = _record(node)
    if record is None:
        _in_slurm(node, node_state.close, "jobs may run while this node is measured")
        record = _measured(node)
        _keep(node, record)
    if record.get("decision") is None:
        record = {**record, "decision": _carried_out(node, decision(node, record))}
        _publish(node, record)
        _keep(node, record)
    if record["decision"]["action"] == "exit":
        raise Failure(
            f"the benchmarks failed: {failures(record)}",
            f"HyperPod replaces this node ({record['decision']['reason']}); `podwright bench show` prints all results",
        )


# It fails only where `benchmarks: gate` asks for a new node.
STEP = Step("benchmarks", applies_to=Only(also=wanted), check=settled, apply=measure, seconds=3600, severity="fatal")


def after(steps: Sequence[Step]) -> Step:
    """The step, behind all of `steps`: what is measured is a node as jobs will find it."""
    return replace(STEP, needs=tuple(step.name for step in steps))


def decision(node: Node, record: dict[str, Any]) -> dict[str, str]:
    """What follows for the node: `policy`, `action` and `reason`, as docs/benchmark.schema.json says.

    Only `gate` acts, only on a node that failed, and only while the count of replacements lets it. It ends the scripts
    with an error where HyperPod then replaces this one node: with continuous provisioning, on a node that is new.
    A node whose software is updated is marked instead, because an error would turn the whole update back.
    """
    policy, facts = node.group_facts["benchmarks"], node.facts["benchmarks"]
    if record["verdict"] != "fail":
        return _decided(policy, "keep", f"the verdict is {record['verdict']}")
    if policy != "gate":
        return _decided(policy, "keep", f"the group only reports {failures(record)}")
    if node.instance_id is None:
        return _decided(policy, "keep", "neither the board nor HyperPod's list tells the id of this instance")
    store = Store(node, facts["results_uri"])
    try:
        grant = claim(
            store,
            group=record["group"],
            thresholds=record["thresholds_version"],
            instance_id=node.instance_id,
            most=facts["max_replacements"],
            window_days=facts["window_days"],
        )
    except Failure as failure:
        return _decided(policy, "keep", f"replacements cannot be counted: {failure}")
    if not grant.granted:
        return _decided(policy, "keep", grant.reason)
    if not facts["continuous"]:
        return _decided(policy, "replace", f"{grant.reason}; provisioning is not continuous")
    try:
        why = _not_new(node, store, record)
    except Failure as failure:
        why = f"nothing tells whether this node is new: {failure}"
    return _decided(policy, "replace" if why else "exit", f"{grant.reason}; {why}" if why else grant.reason)


def failures(record: dict[str, Any]) -> str:
    """The measurements that failed, in a sentence."""
    failed = [item for item in record["results"] if item["outcome"] == "fail"]
    return ", ".join(f"{item['name']}{item['devices'] or ''} ({_said(item)})" for item in failed)


def _said(item: dict[str, Any]) -> str:
    return item["reason"] or f"{item['value']} {item['unit']}"


def _decided(policy: str, action: str, reason: str) -> dict[str, str]:
    return {"policy": policy, "action": action, "reason": reason}


def _not_new(node: Node, store: Store, record: dict[str, Any]) -> str:
    """Why this is not the first time that this instance is set up; empty when it is."""
    before = store.read(_name(record))
    if before and before.value.get("started") != record["started"]:
        return f"this instance was measured before, on {before.value.get('started')}"
    cluster = node.facts["cluster"]
    where = ("--cluster-name", cluster["name"], "--node-id", str(node.instance_id), "--region", cluster["region"])
    described = node.run("aws", "sagemaker", "describe-cluster-node", *where, "--output", "json", *TIMEOUTS, timeout=60)
    status = json.loads(described)["NodeDetails"]["InstanceStatus"]["Status"]
    # A new instance is Pending until its scripts are through; one whose software is updated is SystemUpdating.
    return "" if status == "Pending" else f"SageMaker says that it is {status}"


def _measured(node: Node) -> dict[str, Any]:
    """The record of a run. A fault of the kernels' own measures nothing, and costs no node."""
    began, started = time.monotonic(), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    mode, instance_type = node.facts["benchmarks"]["mode"], str(node.instance_type)
    own = {"cluster": node.facts["cluster"]["name"], "group": node.group, "instance_id": node.instance_id}
    try:
        driver = importlib.import_module("podwright_benchmarks")
        return {**driver.run(node.facts, instance_type, mode, node.bundle, node.root, node.log.say), **own}
    except Exception as error:  # noqa: BLE001
        reason = f"the benchmarks ended with {type(error).__name__}: {error}"
    node.log.say("warning", step=STEP.name, note=reason)
    lines = dict.fromkeys(("value", "fail_below", "warn_below", "bound"))
    nothing = {"name": "run", "devices": [], "unit": "", "higher_is_better": True, **lines, "source": ""}
    return {
        "version": 1,
        **own,
        "instance_type": instance_type,
        "started": started,
        "seconds": round(time.monotonic() - began, 3),
        "mode": mode,
        "thresholds_version": "",
        "results": [{**nothing, "outcome": "skip", "reason": reason}],
        "verdict": "skip",
    }


def _carried_out(node: Node, decided: dict[str, str]) -> dict[str, str]:
    """The decision, after Slurm knows of it. On EKS a DaemonSet reads the record."""
    node.log.say("verdict", step=STEP.name, **decided)
    if decided["action"] == "replace":
        failure = _in_slurm(node, node_state.replace, "this node is not marked for replacement")
        if failure:
            decided = {**decided, "action": "keep", "reason": f"{decided['reason']}; it could not be marked: {failure}"}
    if decided["action"] == "keep":
        _in_slurm(node, node_state.reopen, "this node may still be closed to jobs")
    return decided


def _in_slurm(node: Node, action: Callable[[Node], None], otherwise: str) -> Failure | None:
    """Tell Slurm, where there is one. What it does not take is logged, and no reason to lose the node."""
    if node.orchestrator != "slurm":
        return None
    try:
        retry(node, lambda: action(node), seconds=PATIENCE_SECONDS, what=f"{action.__name__} of this node in Slurm")
    except Failure as failure:
        node.log.say("warning", step=STEP.name, note=f"{otherwise}: {failure}")
        return failure
    return None


def _publish(node: Node, record: dict[str, Any]) -> None:
    """Put the record into S3 and its numbers into the log. What S3 does not take stays on the node."""
    for document in documents(record):
        node.log.metrics(document)
    if node.instance_id is None:
        return
    store = Store(node, node.facts["benchmarks"]["results_uri"])
    try:
        retry(
            node,
            lambda: store.write(_name(record), record),
            seconds=PATIENCE_SECONDS,
            what="publishing the results of the benchmarks",
        )
    except Failure as failure:
        node.log.say("warning", step=STEP.name, note=f"the results stay on the node only: {failure}")


def _name(record: dict[str, Any]) -> str:
    return f"results/{record['group']}/{record['instance_id']}.json"


def _record(node: Node) -> dict[str, Any] | None:
    text = node.read(RECORD)
    return json.loads(text) if text else None


def _keep(node: Node, record: dict[str, Any]) -> None:
    node.write(RECORD, json.dumps(record, indent=1) + "\n")
