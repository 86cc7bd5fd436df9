"""Whatever podwright renders for Kubernetes, applied to a real API server in the order of a deployment."""

import copy
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from api_server import MANAGER, ApiServer, Object, upstream_definitions
from job_environment import GROUPED_CASES, LWS_DEFINITION, UPSTREAM_CASES, rendered
from job_shapes import SHAPES, Shape
from needs import require
from podwright.config.settings.environment import Environment
from podwright.operations.effects.compare import differences
from podwright.operations.kubernetes.applied_objects import APPLIED
from podwright.planning.delivery.effects import Effect, change_facts
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.kubectl import read_objects
from podwright.sandbox.kubernetes import custom_kinds
from rendered_environments import namespaces_of_others, rendered_jobs, rendered_objects
from synthesis import NAMES, environment, environment_of, value_paths
from waiting import until

EVERYTHING = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
storage: {lustre: {zone: usw2-az2}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200:
    instance_type: ml.p5en.48xlarge
    count: 8
    zone: usw2-az2
    taints: [{key: example.com/gpu, value: only, effect: NoSchedule}]
  Trainium: {instance_type: ml.trn2.48xlarge, count: 4, zone: usw2-az2}
governance:
  engine: ENGINE
  priorities: {inference: 100, training: 70}
  wait_for_pods: {timeout_seconds: 600}
  teams:
    llm:
      quota: {h200: 4, Trainium: 2}
      preempt: never
      borrow_limit_percent: 50
      access:
        roles: {arn:aws:iam::111122223333:role/Llm: edit}
        service_accounts: {trainer: {checkpoints: true}}
        storage: {work: {path: /teams/llm}, data: {path: /datasets, read_only: true}}
        caps: {accelerators: 16, efa: 64, vcpu: 96.5, memory_gib: 512.5, pods: 20, others: {services: 3}}
        limits: {request: {vcpu: 0.25}, limit: {vcpu: 2, memory_gib: 0.5}, most: {memory_gib: 64.5}}
        network: {from_namespaces: [metrics], to_namespaces: [mlflow], to_ranges: [10.1.0.0/16]}
        pod_security: restricted
    vision: {quota: {h200: {accelerators: 7}}, share: dont_lend}
"""
# What a definition says of itself once the server serves it.
SERVED = {"NamesAccepted", "Established"}
_TRIES = 20
_OF_THE_SERVER = {"managedFields", "resourceVersion"}


def own_definitions(names: Iterable[str] = custom_kinds.names()) -> list[Object]:
    contents = map(custom_kinds.content, names)
    return [custom_kinds.definition(content["group"], content["kind"]) for content in contents]


def conditions(item: Object) -> set[str]:
    return {one["type"] for one in item.get("status", {}).get("conditions") or () if one["status"] == "True"}


def install(server: ApiServer, items: list[Object]) -> None:
    """Apply definitions, and wait until the server serves all of them."""
    for item in items:
        server.apply(item)
    for item in items:
        until(lambda item=item: conditions(server.read(item)) >= SERVED)


@pytest.fixture(scope="module")
def kinds(plane: ControlPlane, server: ApiServer) -> None:
    """Upstream's kinds as its operators bring them, and ours."""
    plane.definitions.apply(upstream_definitions())
    install(server, own_definitions())


@pytest.fixture(scope="module")
def resting() -> list[Object]:
    """Objects that a second apply left as they were; environments have many of them in common."""
    return []


@contextmanager
def applied(server: ApiServer, settings: Environment, jobs: list[Object]) -> Iterator[list[Object]]:
    """The objects of an environment and jobs, each applied once; all but namespaces are gone afterwards."""
    for namespace in namespaces_of_others(settings):
        server.apply(namespace)
    items = [*rendered_objects(settings), *jobs]
    try:
        for item in items:
            server.apply(item)
        yield items
    finally:
        for item in reversed(items):
            if item["kind"] != "Namespace":
                server.delete(item)


def others(item: Object) -> list[Object]:
    """What others than podwright own of an object: controllers write their findings into most kinds."""
    return [entry for entry in item["metadata"]["managedFields"] if entry["manager"] != MANAGER]


def specified(item: Object) -> Object:
    """An object without what the server and controllers say of it."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in _OF_THE_SERVER}
    return {**item, "metadata": metadata, "status": None}


def change_of_a_second_apply(server: ApiServer, item: Object) -> tuple[Object, Object] | None:
    """What an object says before and after it is applied again; None where that is the same version of it.

    Controllers may write in between. And some kinds, such as claims of volumes, are stored again the first time,
    because the server completes them when it reads them. Neither changes what an object says.
    """
    for _ in range(_TRIES):
        before, after = server.read(item), server.apply(item)
        if before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]:
            return None
        if others(before) == others(after) and specified(before) != specified(after):
            return specified(before), specified(after)
    raise AssertionError(f"{item['kind']} {item['metadata']['name']} never rests")


def assert_rest(server: ApiServer, items: list[Object], resting: list[Object]) -> None:
    """Check that a second apply changes nothing; objects in `resting` have been checked, and the new ones join them."""
    new = [item for item in items if item not in resting]
    assert [change for item in new if (change := change_of_a_second_apply(server, item))] == []
    resting += new


def edited(item: Object) -> Iterator[Object]:
    """An object once for each field with one value, in which that has another value of its type."""
    changed = copy.deepcopy(item)
    for parent, field in _fields(
        [part for key, part in changed.items() if key not in ("apiVersion", "kind", "metadata")]
    ):
        before = parent[field]
        if isinstance(before, bool):
            parent[field] = not before
        elif isinstance(before, str):
            # Quantities and addresses begin with a number, and stay such with another digit before it.
            parent[field] = f"1{before}" if before[:1].isdigit() else f"{before}x"
        else:
            parent[field] = before + 1
        yield changed
        parent[field] = before


def _fields(value: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from _fields(item)
        elif isinstance(value, dict):
            yield value, key


def of_every_field(server: ApiServer) -> Iterator[Object]:
    """Each object of the environments with a field that no earlier one has; it is applied while it is out."""
    earlier: set[tuple[Any, ...]] = set()
    for name in NAMES:
        settings = environment(name)
        items = rendered_objects(settings)
        for item in (*namespaces_of_others(settings), *(item for item in items if item["kind"] == "Namespace")):
            server.apply(item)
        for item in items:
            if (fields := set(value_paths(item, (item["kind"],)))) - earlier:
                earlier |= fields
                server.apply(item)
                yield item
                if item["kind"] != "Namespace":
                    server.delete(item)


def is_immutable(server: ApiServer, item: Object) -> bool | None:
    """Whether an API server refuses a change because the field does not change; None where it takes no such value."""
    try:
        server.apply(item, dry_run=True)
    except ApiException as error:
        return True if re.search("immutable|cannot change", str(error.body)) else None
    return False


@pytest.mark.parametrize("name", custom_kinds.names())
def test_our_kinds_are_served(server: ApiServer, kinds: None, name: str) -> None:
    (definition,) = own_definitions([name])
    assert conditions(server.read(definition)) == SERVED


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_accepted_and_a_second_apply_changes_nothing(
    server: ApiServer, kinds: None, resting: list[Object], name: str
) -> None:
    with applied(server, environment(name), rendered_jobs(name)) as items:
        assert_rest(server, items, resting)
        for item in items:
            if item["kind"] == "ValidatingAdmissionPolicy":
                until(lambda item=item: "typeChecking" in server.read(item).get("status", {}))
                assert server.read(item)["status"]["typeChecking"] == {}


def test_diff_says_refused_of_what_an_api_server_refuses_to_change(server: ApiServer, kinds: None) -> None:
    """Each field of everything that is deployed, changed by itself."""
    answers: dict[str, tuple[bool | None, bool]] = {}
    for item in of_every_field(server):
        for changed in edited(item):
            sides = ({"Manifest": {f"{item['kind']}[one]": side}} for side in (item, changed))
            first, *more = differences(*sides)
            # What has another name is another item of its list.
            if not more and first.pattern not in answers:
                expected = change_facts(APPLIED, first.pattern, first.change).effect is Effect.REFUSED
                answers[first.pattern] = is_immutable(server, changed), expected
    known = {pattern: pair for pattern, pair in answers.items() if pair[0] is not None}
    assert {pattern: pair for pattern, pair in known.items() if pair[0] != pair[1]} == {}
    refused = {pattern.split("[")[0] for pattern, pair in answers.items() if pair[0]}
    assert refused >= {
        f"Manifest/{kind}" for kind in ("Job", "LocalQueue", "PersistentVolumeClaim", "RoleBinding", "Topology")
    }
    assert len(known) > 60


def test_upstream_defines_no_kind_of_ours_and_every_other_as_the_store_knows_it(server: ApiServer, kinds: None) -> None:
    upstream = {item["metadata"]["name"]: item for item in upstream_definitions()}
    assert upstream.keys() & {item["metadata"]["name"] for item in own_definitions()} == set()
    for kind in custom_kinds.upstream_kinds():
        spec = upstream[f"{kind['plural']}.{kind['group']}"]["spec"]
        names = spec["names"]
        assert [names["kind"], spec["scope"], names.get("shortNames", [])] == [
            kind["kind"],
            kind["scope"],
            kind["short_names"],
        ]
        assert set(kind["versions"]) <= {version["name"] for version in spec["versions"] if version["served"]}


@pytest.mark.parametrize("name", UPSTREAM_CASES)
def test_upstream_knows_every_field_of_a_job(server: ApiServer, kinds: None, name: str) -> None:
    kind, settings = UPSTREAM_CASES[name]
    (job,) = rendered(kind, **settings)
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": job["metadata"]["namespace"]}})
    assert server.apply(job)["spec"]
    server.delete(job)


@pytest.mark.parametrize(
    "shape",
    [each for each in SHAPES if each.plan.job.kind in ("pytorch", "mpi", "ray_cluster", "jobset")],
    ids=lambda shape: shape.anchor,
)
def test_upstream_knows_every_field_of_a_shape_of_the_documentation(
    server: ApiServer, kinds: None, shape: Shape
) -> None:
    taken(server, shape.objects)


def test_upstream_knows_every_field_of_the_documented_groups_with_a_leader(server: ApiServer) -> None:
    require(LWS_DEFINITION.is_file(), "LeaderWorkerSet's definition, where .ci/run puts it")
    install(server, read_objects(LWS_DEFINITION))
    (shape,) = (each for each in SHAPES if each.plan.job.kind == "leader_worker_set")
    taken(server, shape.objects)


def taken(server: ApiServer, objects: list[Object]) -> None:
    """Apply a job, which is gone afterwards, and then one with a field that nobody knows."""
    (job,) = objects
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": job["metadata"]["namespace"]}})
    assert server.apply(job)["spec"]
    server.delete(job)
    with pytest.raises(Exception, match=r"unknown field|field not declared in schema"):
        server.apply(job | {"spec": job["spec"] | {"unknown": 1}})


@pytest.mark.parametrize("name", GROUPED_CASES)
def test_upstream_knows_every_field_of_groups_with_a_leader(server: ApiServer, name: str) -> None:
    require(LWS_DEFINITION.is_file(), "LeaderWorkerSet's definition, where .ci/run puts it")
    install(server, read_objects(LWS_DEFINITION))
    kind, settings = GROUPED_CASES[name]
    (job,) = rendered(kind, **settings)
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": job["metadata"]["namespace"]}})
    assert server.apply(job)["spec"]["leaderWorkerTemplate"]["size"] == settings["nodes"]
    server.delete(job)
    with pytest.raises(Exception, match=r"unknown field|field not declared in schema"):
        server.apply(job | {"spec": job["spec"] | {"grups": 1}})


@pytest.mark.parametrize("engine", ["hyperpod", "kueue", "kai", "yunikorn"])
def test_settings_that_no_environment_has_are_accepted(
    server: ApiServer, kinds: None, resting: list[Object], engine: str
) -> None:
    settings = environment_of(EVERYTHING.replace("ENGINE", engine))
    with applied(server, settings, []) as items:
        assert {"NetworkPolicy", "LimitRange", "PersistentVolume", "DaemonSet"} <= {item["kind"] for item in items}
        assert_rest(server, items, resting)


@pytest.mark.parametrize("field", ["spec", "metadata"])
def test_a_field_that_nobody_knows_is_refused(server: ApiServer, field: str) -> None:
    """So that the tests above mean something."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unknown", "namespace": "default"}}
    item = item | ({"spec": {}} if field == "spec" else {"metadata": item["metadata"] | {"nmae": "x"}})
    with pytest.raises(Exception, match="field not declared in schema"):
        server.apply(item)
