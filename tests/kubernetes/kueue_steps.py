"""Plays streams of jobs on a real Kueue and in the simulator, step by step, and compares what both decide."""

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kubernetes import client, config, watch

from api_server import ApiServer
from made_policies import API, NAMESPACE, MadePolicy, Object, job, larger, made_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue.admitted import domains, work_in
from podwright.planning.simulation.kueue.events import UNPARK_SECONDS, Run
from podwright.planning.simulation.kueue.history import Job
from podwright.planning.simulation.kueue.policy import policy
from podwright.planning.simulation.traces.workload_list import condition
from podwright.sandbox.control_plane.control_plane import ControlPlane
from waiting import until

CONFIGURATIONS: Final[dict[bool, Object]] = {
    False: {"fairSharing": None},
    True: {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}},
}
"""What the manager is configured with, without and with fair sharing."""
_CLIENTS: Final = 8
_PROBE: Final = "probe"
"""Of the queues and jobs of our own, whose names begin with it."""
_CYCLES: Final = 6
"""In so many cycles without a change Kueue has looked at all that any queue has waiting."""
_AT_ONCE_SECONDS: Final = 0.1
_WAIT_SECONDS: Final = 900
_PREEMPTOR: Final = re.compile(r"\(UID: ([^,)]+)")
Put = tuple[str, int, tuple[tuple[str, str], ...], tuple[tuple[str, int], ...]]
"""A pod set: its name, pods, flavors by resource, and pods by the last value of their domains."""


class State(NamedTuple):
    """What has become of a job."""

    of: str
    """`waits`, `runs`, `preempted` while its pods end, or `finished`."""
    pod_sets: tuple[Put, ...] = ()
    reason: str = ""
    """Of the preemption."""
    preemptor: str = ""
    """Its name, or its uid."""


@dataclass
class Difference:
    """The first in a policy; what comes after it is not compared."""

    made: MadePolicy
    step: str
    real: dict[str, State]
    simulated: dict[str, State]

    def __str__(self) -> str:
        names = [name for name in self.simulated if self.simulated[name] != self.real.get(name)]
        lines = [f"  {name}: Kueue {self.real.get(name)}, simulated {self.simulated[name]}" for name in names]
        return "\n".join([f"{self.made.name} after {self.step}:", *lines])

    def is_like(self, other: "Difference") -> bool:
        """Whether Kueue decided the same in another play of the policy, in which only the names are others."""
        return repr((self.step, self.real)).replace(self.made.name, "") == repr((other.step, other.real)).replace(
            other.made.name, ""
        )


@dataclass
class Outcome:
    """Of many policies."""

    policies: int = 0
    steps: int = 0
    preemptions: int = 0
    admissions: int = 0
    growths: int = 0
    """How often a slice has taken another's place."""
    differences: list[Difference] = field(default_factory=list)
    by_chance: int = 0
    """Policies about which Kueue itself decided otherwise when they were played again."""
    real_seconds: float = 0.0
    simulated_seconds: float = 0.0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class Cluster:
    """A real Kueue, with all of its Workloads as they are now."""

    def __init__(self, plane: ControlPlane) -> None:
        self.server = ApiServer.of(plane.kubeconfig)
        self.workloads: dict[str, Object] = {}
        self.changes = 0
        """How often something became of a job of a policy."""
        self._probes = 0
        self._clients = ThreadPoolExecutor(_CLIENTS)
        self._changed = threading.Condition()
        self._objects = client.CustomObjectsApi(config.new_client_from_config(str(plane.kubeconfig)))
        self._is_closed = False
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        self._make_probes()

    def all(self, act: Callable[[Any], Object], items: Iterable[Any]) -> list[Object]:
        """What several requests at a time are answered."""
        return list(self._clients.map(act, items))

    def create(self, item: Object) -> Object:
        """Make an object; a Node has its status from the beginning."""
        made = self.server.create(item)
        if item["kind"] == "Node":
            self.server.merge(item, {"status": item["status"]}, subresource="status")
        return made

    def finish(self, name: str) -> Object:
        """End a job."""
        return self._conclude(name, ("Finished", "True"))

    def release(self, name: str) -> Object:
        """End the pods of a preempted job, as its kind's controller would say."""
        return self._conclude(name, ("QuotaReserved", "False"), ("Admitted", "False"), admission=None)

    def settle(self, *, freed: bool) -> None:
        """Return once Kueue changes nothing more.

        Whatever is slow is slow for these jobs of our own as well: one that waits for what became free last, and then a
        number of jobs that take a cycle each.
        """
        if freed:
            self.finish(f"{_PROBE}-{self._probes}")
            self._probes += 1
            self._await([f"{_PROBE}-{self._probes}"], "QuotaReserved", "True")
            self._park_probe()
        while True:
            before = self.changes
            names = [f"{_PROBE}-{number}-of-{time.monotonic_ns()}" for number in range(_CYCLES)]
            self.all(self.create, [_probe(name, f"{_PROBE}-cycles") for name in names])
            self._await(names, "Admitted", "True")
            if self.changes == before:
                return

    def close(self) -> None:
        """Stop to watch."""
        self._clients.shutdown()
        self._is_closed = True
        # It is with the next event that the watch ends.
        self.create(_probe(f"{_PROBE}-last", _PROBE))
        self._follower.join()

    def _make_probes(self) -> None:
        """Queues and jobs of our own. Webhooks of Workloads have nothing to add here, and would take half the time."""
        for kind in ("Mutating", "Validating"):
            name = f"kueue-{kind.lower()}-webhook-configuration"
            item = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration"}
            item = self.server.read(item | {"metadata": {"name": name}})
            remaining = [each for each in item["webhooks"] if "workload" not in each["name"]]
            self.server.merge(item, {"webhooks": remaining})
        self.create(_object("ResourceFlavor", _PROBE, {}))
        for name, cpu in ((_PROBE, 1), (f"{_PROBE}-cycles", 1_000_000)):
            flavors = [{"name": _PROBE, "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
            groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
            self.create(_object("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups}))
            self.create(_object("LocalQueue", name, {"clusterQueue": name}))
        self.create(_probe(f"{_PROBE}-0", _PROBE))
        self._await([f"{_PROBE}-0"], "Admitted", "True")
        self._park_probe()

    def _park_probe(self) -> None:
        name = f"{_PROBE}-{self._probes + 1}"
        # Kueue looks at each: what is like one that is parked would be parked as it comes.
        self.create(_probe(name, _PROBE, priority=self._probes))
        self._await([name], "QuotaReserved", "False")

    def _conclude(self, name: str, *changes: tuple[str, str], **status: None) -> Object:
        """Change conditions of a Workload."""
        current, now = self.workloads[name], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        before = current.get("status", {}).get("conditions", ())
        remaining = [each for each in before if each["type"] not in dict(changes)]
        new = [
            {"type": kind, "status": value, "reason": "Played", "message": "", "lastTransitionTime": now}
            for kind, value in changes
        ]
        return self.server.merge(current, {"status": {"conditions": remaining + new, **status}}, subresource="status")

    def _await(self, names: Sequence[str], kind: str, status: str) -> None:
        """Return once all of these have a condition."""

        def has(name: str) -> bool:
            conditions = self.workloads.get(name, {}).get("status", {}).get("conditions", ())
            return any(each["type"] == kind and each["status"] == status for each in conditions)

        with self._changed:
            met = self._changed.wait_for(lambda: all(has(name) for name in names), _WAIT_SECONDS)
        assert met, f"{names} did not come to {kind} {status}"

    def _follow(self) -> None:
        group, version = API.split("/")
        events: Any = watch.Watch().stream(
            self._objects.list_namespaced_custom_object, group, version, NAMESPACE, "workloads", resource_version="0"
        )
        for event in events:
            item = event["object"]
            name, former = item["metadata"]["name"], self.workloads.get(item["metadata"]["name"])
            with self._changed:
                self.workloads[name] = item
                # Kueue may write a new reason for waiting in every cycle, forever.
                is_change = former is None or state_of(former) != state_of(item)
                self.changes += is_change and not name.startswith(_PROBE)
                self._changed.notify_all()
            if self._is_closed:
                return


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _probe(name: str, queue: str, priority: int = 0) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return _object("Workload", name, {"queueName": queue, "priority": priority, "podSets": pod_sets})


class Chance(NamedTuple):
    """What Kueue leaves to time."""

    later: float
    """Seconds until a preempted job waits again: whoever makes room for itself is looked at all the time."""
    before: int
    """Cycles until something happens: some heads of queues try one flavor after the other, forever."""
    after: int
    """Cycles from then until what is parked is looked at again."""


_CHANCES: Final = [Chance(*each) for each in itertools.product((0.0, 0.01), range(3), range(3))]


@dataclass
class Step:
    """Something that happens: a job comes (`create`), one ends (`finish`), or pods of a preempted one (`release`)."""

    kind: str
    subject: Any
    """The Workload to create, or the name of one."""
    workload: Object = field(default_factory=dict)
    """It, as the cluster has it then."""
    time: float = 0.0
    chance: Chance = _CHANCES[0]
    reserved: dict[str, float | None] = field(default_factory=dict)
    """The seconds in which jobs got their quota from Kueue, by name."""

    def __str__(self) -> str:
        return f"{self.kind} {self.subject if isinstance(self.subject, str) else self.subject['metadata']['name']}"


class Stream:
    """The jobs of one policy, and the simulator beside the cluster."""

    def __init__(self, made: MadePolicy) -> None:
        self.made = made
        self.steps: list[Step] = []
        self._begin()

    def _begin(self) -> None:
        decides = policy([*self.made.objects, *self.made.nodes], CONFIGURATIONS[self.made.is_fair])
        self.run = Run(decides, Assumptions(grace_seconds=float("inf"), repeated_seconds=0.0))
        self.jobs: dict[str, Job] = {}

    def choose(self, *, frees: bool) -> bool:
        """Choose what happens next; returns whether anything can."""
        evicted = sorted(name for name, each in self.jobs.items() if each.work.evicted and each.finished is None)
        running = sorted(name for name, each in self.jobs.items() if each.work.reserved is not None)
        if not frees:
            growing = self._growing()
            grows = growing and self.made.chance.random() < 0.5
            before = growing[self.made.chance.choice(sorted(growing))] if grows else None
            self.steps.append(Step("create", larger(self.made, before) if before else job(self.made)))
        elif evicted:
            self.steps.append(Step("release", evicted[0]))
        elif running:
            self.steps.append(Step("finish", self.made.chance.choice(running)))
        return not frees or bool(running)

    def _growing(self) -> dict[str, Object]:
        """Jobs that run with all their pods, and of which no other slice has come; by name."""
        if not self.made.is_elastic:
            return {}
        created = [step.subject for step in self.steps if step.kind == "create"]
        return {
            item["metadata"]["name"]: item
            for item in created
            if self._state(self.jobs[item["metadata"]["name"]]).of == "runs"
            and not self._slices_after(item["metadata"]["name"])
            and all("minCount" not in pods for pods in item["spec"]["podSets"])
        }

    def _slices_after(self, name: str) -> list[str]:
        """The slice that has come to take the place of a job's, and has not ended."""
        return [
            other
            for other, each in self.jobs.items()
            if each.work.replaces == f"{NAMESPACE}/{name}" and each.finished is None
        ]

    def act(self, cluster: Cluster) -> Object:
        """Let it happen in the cluster. Returns the Workload."""
        step, after = self.steps[-1], []
        if step.kind != "create" and self.jobs[step.subject].finished is None:
            after = self._slices_after(step.subject)
        if after and step.kind == "finish":
            # As the controller of an elastic job ends what has no use any more; this first, or it might start.
            cluster.finish(after[0])
        # And of two slices without quota it ends the older one.
        return getattr(cluster, "finish" if after else step.kind)(step.subject)

    def simulate(self, workload: Object, time: float) -> None:
        """Let it happen in the simulator."""
        self.steps[-1].workload, self.steps[-1].time = workload, time
        self._play(self.steps[-1])

    def _play(self, step: Step) -> None:
        self.run.repeat(step.time, step.chance.before)
        if step.kind == "create":
            work = work_in(self.run.policy, step.workload)
            work.created = step.time
            self.jobs[work.name] = Job(work, float("inf"))
            self.run.submit(self.jobs[work.name])
        elif step.kind == "finish":
            self.run.finish(self.jobs[step.subject], step.time)
        else:
            self.run.release(self.jobs[step.subject], step.time, step.chance.later)
        self.run.advance(step.time + _AT_ONCE_SECONDS)
        self.run.repeat(step.time + _AT_ONCE_SECONDS, step.chance.after)
        self.run.advance(step.time + UNPARK_SECONDS)
        for name, seconds in step.reserved.items():
            self.jobs[name].work.reserved = seconds

    def compare(self, workloads: dict[str, Object]) -> Difference | None:
        """What is different in the last step, whatever Kueue leaves to time."""
        mine, step = {name: workloads[name] for name in self.jobs}, self.steps[-1]
        names = {item["metadata"]["uid"]: name for name, item in mine.items()}
        real = {name: _of(item, names) for name, item in mine.items()}
        for number, step.chance in enumerate((*_CHANCES, _CHANCES[0])):
            if number:
                self._begin()
                for each in self.steps:
                    self._play(each)
            if real == self._states():
                break
        simulated = self._states()
        if real != simulated:
            return Difference(self.made, str(step), real, simulated)
        step.reserved = {name: condition(mine[name], "QuotaReserved") for name in self._holding()}
        for name, seconds in step.reserved.items():
            self.jobs[name].work.reserved = seconds
        return None

    def _holding(self) -> list[str]:
        return [name for name, each in self.jobs.items() if each.work.reserved is not None]

    def _states(self) -> dict[str, State]:
        return {name: self._state(each) for name, each in self.jobs.items()}

    def _state(self, job: Job) -> State:
        work = job.work
        if job.finished is not None:
            return State("finished")
        if work.reserved is None:
            return State("waits")
        rows = []
        for pods, count, flavors in zip(work.pod_sets, work.counts, work.flavors, strict=True):
            placed = [(each.domain[-1], each.pods) for each in work.placements if each.pod_set == pods.name]
            rows.append((pods.name, count, tuple(sorted(flavors.items())), tuple(sorted(placed))))
        if not work.evicted:
            return State("runs", tuple(rows))
        preemption = next(each for each in reversed(self.run.preemptions) if each.victim is job)
        return State("preempted", tuple(rows), preemption.reason, preemption.preemptor.work.name)


def _of(workload: Object, names: Mapping[str, str]) -> State:
    """What a Workload says, with the name of who has preempted it."""
    state = state_of(workload)
    return state._replace(preemptor=names.get(state.preemptor, state.preemptor))


def state_of(workload: Object) -> State:
    """What a Workload says."""
    if condition(workload, "Finished") is not None:
        return State("finished")
    status = workload.get("status", {})
    if not (admission := status.get("admission")):
        return State("waits")
    rows = []
    for each in admission["podSetAssignments"]:
        placed = [(values[-1], count) for values, count in domains(each.get("topologyAssignment") or {"slices": []})]
        flavors = tuple(sorted((each.get("flavors") or {}).items()))
        rows.append((each["name"], each.get("count", 0), flavors, tuple(sorted(placed))))
    preempted = next(
        (each for each in status["conditions"] if each["type"] == "Preempted" and each["status"] == "True"), None
    )
    if condition(workload, "Evicted") is None or preempted is None:
        return State("runs", tuple(rows))
    preemptor = _PREEMPTOR.search(preempted["message"])
    return State("preempted", tuple(rows), preempted["reason"], preemptor[1] if preemptor else preempted["message"])


def compare(cluster: Cluster, seeds: Iterable[int], *, is_fair: bool, comes: int, turns: int) -> Outcome:
    """Play the policies of all seeds at once, and those that are different again with fewer beside them.

    Args:
        cluster: Configured with fair sharing, or without.
        seeds: Of policies that the cluster does not have yet.
        is_fair: How it is configured.
        comes: How many jobs come at first.
        turns: How often pods end after that.
    """
    outcome = play(cluster, [made_policy(seed, is_fair=is_fair) for seed in seeds], comes, turns)
    for mark in "xy":
        if outcome.differences:
            policies = [made_policy(each.made.seed, is_fair=is_fair, mark=mark) for each in outcome.differences]
            repeated = {each.made.seed: each for each in play(cluster, policies, comes, turns).differences}
            first, outcome.differences = outcome.differences, []
            for each in first:
                again = repeated.get(each.made.seed)
                if again is not None and each.is_like(again):
                    outcome.differences.append(each)
                else:
                    outcome.by_chance += 1
    return outcome


def play(cluster: Cluster, policies: Sequence[MadePolicy], comes: int, turns: int) -> Outcome:
    """Play all policies at once: so many jobs come in each, then so many times pods end twice and a job comes."""
    outcome = Outcome(policies=len(policies))
    cluster.all(cluster.create, [item for each in policies for item in each.nodes])
    # Cohorts before what is in them, and queues before who waits in them.
    for kind in ("Topology", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue"):
        cluster.all(cluster.create, [item for each in policies for item in each.objects if item["kind"] == kind])
    _await_nodes(cluster, {item["metadata"]["name"] for each in policies for item in each.nodes})
    streams = [Stream(each) for each in policies]
    for frees in [False] * comes + [True, True, False] * turns:
        acting = [stream for stream in streams if stream.choose(frees=frees)]
        # Jobs that come in one second are told apart by chance.
        time.sleep(1 - time.time() % 1 if not frees else 0)
        start = time.time()
        answers = cluster.all(lambda stream: stream.act(cluster), acting)
        cluster.settle(freed=frees)
        observed, middle = dict(cluster.workloads), time.time()
        outcome.real_seconds += middle - start
        outcome.steps += len(acting)
        for stream, workload in zip(acting, answers, strict=True):
            stream.simulate(workload, start)
            if difference := stream.compare(observed):
                outcome.differences.append(difference)
                streams.remove(stream)
        outcome.simulated_seconds += time.time() - middle
    # Who still waits would have its turn in every cycle of what is played next.
    queues = [item for each in policies for item in each.objects if item["kind"] == "ClusterQueue"]
    cluster.all(lambda item: cluster.server.merge(item, {"spec": {"stopPolicy": "Hold"}}), queues)
    runs = [stream.run for stream in streams]
    outcome.preemptions = sum(len(run.preemptions) for run in runs)
    jobs = [each for run in runs for each in run.jobs.values()]
    outcome.admissions = sum(len(each.turns) for each in jobs)
    outcome.growths = sum(bool(each.work.replaces and each.turns) for each in jobs)
    return outcome


def _await_nodes(cluster: Cluster, names: set[str]) -> None:
    """Return once all nodes are ready and no longer kept from pods because they were new."""

    def ready() -> bool:
        nodes = [each for each in cluster.server.items("v1", "Node", "") if each["metadata"]["name"] in names]
        keys = {taint["key"] for each in nodes for taint in each["spec"].get("taints", ())}
        return len(nodes) == len(names) and not any(key.startswith("node.kubernetes.io/") for key in keys)

    until(ready)
