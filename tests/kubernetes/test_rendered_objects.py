"""Whatever podwright renders for Kubernetes, applied to a real API server in the order of a deployment."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
import yaml

from api_server import MANAGER, ApiServer, Object, until
from needs import require
from podwright.config.catalog.charts import KUEUE, chart
from podwright.config.loading.artifacts import stand_in_archive
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.kubernetes.filled import filled
from podwright.operations.kubernetes.job_manifests import job_manifests
from podwright.operations.programs.helm import render
from podwright.planning.helm.wanted_charts import wanted_charts
from podwright.planning.kubernetes.deployed_values import known_values, value_paths
from podwright.planning.quota.team_names import team_namespace
from podwright.sandbox.kubernetes import custom_kinds
from synthesis import NAMES, ROOT, environment

PROJECT = Project.at(ROOT)
CHART = ROOT / f".podwright/charts/kueue-{chart(KUEUE).version}"
WITH_KUEUE = [name for name in NAMES if environment(name).governance.engine == "kueue"]
# What a definition says of itself once the server serves it.
SERVED = {"NamesAccepted", "Established"}
_TRIES = 20
_OF_THE_SERVER = {"managedFields", "resourceVersion"}


def definitions(names: Iterable[str]) -> list[Object]:
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
def own_kinds(server: ApiServer) -> None:
    """The kinds as `sandbox/kubernetes/crd_schemas` has them."""
    install(server, definitions(custom_kinds.names()))


@pytest.fixture(scope="module")
def kueue_itself(server: ApiServer, own_kinds: None) -> None:
    """Kueue's kinds as its chart has them, in place of ours. Nothing converts their versions here."""
    require(CHART.is_dir(), f"Kueue's chart at {CHART}, where .ci/run puts it")
    text = render(stand_in_archive(KUEUE, CHART), chart(KUEUE), {})
    objects = filter(None, yaml.load_all(text, yaml.CSafeLoader))
    kinds = [item for item in objects if item["kind"] == "CustomResourceDefinition"]
    for kind in kinds:
        kind["spec"].pop("conversion", None)
    install(server, kinds)


def objects(name: str) -> list[Object]:
    """What `podwright render` writes of an environment, then what `podwright render jobs` does.

    A deployment applies the same (tests/snapshot/test_snapshots.py).
    """
    known = known_values(environment(name), "amazonaws.com")
    specified = {path: known.get(path, f"value-{index}") for index, path in enumerate(value_paths(environment(name)))}
    rendered, missing = filled(environment(name), specified, {})
    assert not missing
    return [*rendered, *(item for items in job_manifests(PROJECT.load(name)).values() for item in items)]


def existing_namespaces(settings: Environment) -> set[str]:
    """Those that something else makes: charts, the service with a team's quota, and who was there before."""
    governance = settings.governance
    names = {desired.chart.namespace for desired in wanted_charts(settings, {})}
    if governance.engine == "hyperpod":
        names |= {team_namespace("hyperpod", team) for team in governance.teams}
    if governance.engine == "yunikorn" and governance.yunikorn.existing:
        names.add(governance.yunikorn.existing)
    return names


@contextmanager
def applied(server: ApiServer, name: str) -> Iterator[list[Object]]:
    """The objects of an environment, each applied once; all but namespaces are gone afterwards."""
    for namespace in existing_namespaces(environment(name)):
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    items = objects(name)
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


@pytest.mark.parametrize("name", custom_kinds.names())
def test_our_kinds_are_served(server: ApiServer, own_kinds: None, name: str) -> None:
    (definition,) = definitions([name])
    assert conditions(server.read(definition)) == SERVED


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_accepted_and_a_second_apply_changes_nothing(
    server: ApiServer, own_kinds: None, name: str
) -> None:
    with applied(server, name) as items:
        assert [change for item in items if (change := change_of_a_second_apply(server, item))] == []
        for item in items:
            if item["kind"] == "ValidatingAdmissionPolicy":
                until(lambda item=item: "typeChecking" in server.read(item).get("status", {}))
                assert server.read(item)["status"]["typeChecking"] == {}


@pytest.mark.parametrize("name", WITH_KUEUE)
def test_kueue_itself_knows_every_field_of_ours(server: ApiServer, kueue_itself: None, name: str) -> None:
    with applied(server, name) as items:
        assert [change for item in items if (change := change_of_a_second_apply(server, item))] == []


@pytest.mark.parametrize("field", ["spec", "metadata"])
def test_a_field_that_nobody_knows_is_refused(server: ApiServer, field: str) -> None:
    """So that the tests above mean something."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unknown", "namespace": "default"}}
    item = item | ({"spec": {}} if field == "spec" else {"metadata": item["metadata"] | {"nmae": "x"}})
    with pytest.raises(Exception, match="field not declared in schema"):
        server.apply(item)
