"""The bundles on which doctor is measured: enough of each kind, told apart by labels, sourced, and well formed."""

from collections import Counter
from datetime import date

import pytest

from doctor_corpus import UNSEEN_FILES, bundle, bundles, cases, labels
from podwright.operations.doctor.bundle import SOURCES, Bundle
from podwright.operations.doctor.classes import CLASSES

MADE = tuple(bundles())
LEAST = {
    "first": {"one": 45, "two": 12, "healthy": 12, "unknown": 12},
    "second": {"one": 45, "two": 10, "healthy": 10, "unknown": 10},
    "third": {"one": 10, "healthy": 2},
}
CAUSES = {"one": 1, "two": 2, "healthy": 0, "unknown": 0}


@pytest.mark.parametrize("name", LEAST)
def test_enough_of_each_kind(name: str) -> None:
    counts = Counter(label.kind for label in labels() if label.set == name)
    assert counts.keys() == LEAST[name].keys()
    assert not [kind for kind, least in LEAST[name].items() if counts[kind] < least]


def test_there_is_no_other_set() -> None:
    assert {label.set for label in labels()} == set(LEAST)


def test_every_case_has_one_label_and_every_label_a_case() -> None:
    names = [label.name for label in labels()]
    assert len(names) == len(set(names))
    assert set(names) == set(cases())


def test_labels_name_as_many_classes_of_doctor_as_their_kind_says() -> None:
    for label in labels():
        assert len(label.classes) == CAUSES[label.kind], label.name
        assert label.classes <= CLASSES.keys(), label.name


def test_every_class_is_looked_for() -> None:
    assert frozenset().union(*(label.classes for label in labels())) == CLASSES.keys()


def test_every_bundle_names_its_report_and_when_it_was_written_or_cited() -> None:
    for label in labels():
        assert "https://" in label.source or label.source.startswith("docs/operator/"), label.name
        assert date(2014, 1, 1) < date.fromisoformat(label.date), label.name


def test_bundles_are_well_formed_and_whole() -> None:
    known = tuple(source.file for source in SOURCES.values())
    for label, files in MADE:
        read = Bundle.of(files)
        assert all(path == "bundle.json" or path.startswith(known) for path in files), label.name
        for source in SOURCES:
            if SOURCES[source].file.endswith(".json"):
                read.json(source)
            else:
                assert all(line.time for path in read.logs(source) for line in read.lines(path)), label.name


def test_no_word_in_braces_is_left_unfilled() -> None:
    words = (
        "{instance}",
        "{group}",
        "{cluster}",
        "{region}",
        "{account}",
        "{pci}",
        "{letters}",
        "{request}",
        "{node}",
        "{booted}",
    )
    for label, files in MADE:
        assert not [word for word in words for text in files.values() if word in text], label.name


def test_what_nobody_could_look_at_is_not_in_the_bundle() -> None:
    for label, files in MADE:
        for source in Bundle.of(files).index.unseen:
            assert not [path for path in files if path.startswith(UNSEEN_FILES[source])], label.name


def test_a_seed_makes_the_same_bundle_and_another_seed_other_ids_times_and_noise() -> None:
    name = "dpkg-lock"
    assert bundle(name) == bundle(name)
    first, second = Bundle.of(bundle(name, 0)), Bundle.of(bundle(name, 1))
    assert first.index.cluster != second.index.cluster
    assert first.index.taken != second.index.taken
    assert set(first.files) != set(second.files)


@pytest.mark.parametrize("name", ["quiet", "quiet-slurm"])
def test_a_cluster_that_is_well_has_all_its_instances_running(name: str) -> None:
    read = Bundle.of(bundle(name))
    groups = read.json("cluster")["InstanceGroups"]
    assert all(group["CurrentCount"] == group["TargetCount"] for group in groups)
    nodes = read.items("nodes", "ClusterNodeSummaries")
    assert len(nodes) == sum(group["CurrentCount"] for group in groups)
    assert {node["InstanceStatus"]["Status"] for node in nodes} == {"Running"}
