"""Whoever gets rights in a cluster is one that podwright or the file names: in its own objects and in charts.

Charts are the stand-ins, whose HyperPod chart has the switches of the real one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from podwright.config.catalog.kubernetes_groups import (
    KAI_READERS,
    KUEUE_READERS,
    NAMESPACE_READERS,
    NODE_MARKERS,
    NODE_READERS,
    team_group,
)
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.artifacts.stand_ins import stand_in
from podwright.operations.programs.helm import render
from podwright.planning.helm.wanted_charts import wanted_charts
from rendered_environments import rendered_objects

PROJECT = Project.at(Path(__file__).parents[2])
OURS = {NODE_READERS, NODE_MARKERS, KUEUE_READERS, KAI_READERS, NAMESPACE_READERS}
# Of Kueue's real chart, which the stand-in does not make; podwright lets it look after jobs of other kinds.
KUEUE_ACCOUNT = ("kueue-system", "kueue-controller-manager")
Object = dict[str, Any]


def objects(environment: Environment) -> Iterator[Object]:
    """Everything that a deployment applies: podwright's own objects, and what charts render."""
    yield from rendered_objects(environment)
    for desired in wanted_charts(environment):
        text = render(stand_in(desired.chart), desired.chart, desired.values)
        yield from filter(None, YAML(typ="safe").load_all(text))


def strangers(environment: Environment, items: list[Object]) -> list[str]:
    """Subjects of bindings that nobody named; a service account is named by the object that makes it."""
    teams = {team_group(team, role) for team in environment.governance.teams for role in ("edit", "view")}
    accounts = {KUEUE_ACCOUNT} | {
        (item["metadata"].get("namespace"), item["metadata"]["name"])
        for item in items
        if item["kind"] == "ServiceAccount"
    }
    subjects = [
        (item["metadata"]["name"], subject)
        for item in items
        if item["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in item.get("subjects", ())
    ]
    return [
        f"{binding}: {subject['kind']} {subject['name']}"
        for binding, subject in subjects
        if subject["name"] not in OURS | teams
        and (subject["kind"] != "ServiceAccount" or (subject.get("namespace"), subject["name"]) not in accounts)
    ]


@pytest.mark.parametrize("name", PROJECT.names)
def test_only_subjects_that_we_named_have_rights(name: str) -> None:
    environment = PROJECT.load(name).environment
    assert strangers(environment, list(objects(environment))) == []


def test_the_charts_switch_is_what_keeps_the_group_out() -> None:
    environment = PROJECT.load("two-teams").environment
    (desired,) = (item for item in wanted_charts(environment) if item.chart.name == "hyperpod-dependencies")
    # As the chart's own values say it, which its template does not read.
    values = {**desired.values, "namespaced-role-and-bindings": {"enable": False}}
    items = list(filter(None, YAML(typ="safe").load_all(render(stand_in(desired.chart), desired.chart, values))))
    assert strangers(environment, items) == [
        "hyperpod-scientist-user-namespace-level-role-binding: Group hyperpod-scientist-user-namespace-level"
    ]
