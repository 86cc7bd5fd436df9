"""What a drill reads out of the course of a recovery."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drill_cluster import BOTH, BROKEN, FRESH, MARKED, OTHER, PENDING, REPLACED, WHOLE, DrillCluster, Moment, node, pod
from podwright.config.catalog.drills import drill_kinds
from podwright.config.settings.observability import Targets
from podwright.operations.drills.record import record
from podwright.operations.nodes.follow import Events, follow
from podwright.operations.nodes.snapshot import Job, job_of
from podwright.operations.nodes.timeline import Action, Timeline

PENDING_REBOOT = [node(BROKEN, "UnschedulablePendingReboot", tainted=True), node(OTHER)]
REBOOTED = [
    WHOLE,
    Moment(30, BOTH, PENDING_REBOOT, [pod("a", BROKEN), pod("b", OTHER)]),
    Moment(90, BOTH, [node(BROKEN, "UnschedulablePendingReboot", ready=False), node(OTHER)], [pod("b", OTHER)]),
    Moment(200, BOTH, [node(BROKEN, boot="2"), node(OTHER)], [pod("a", BROKEN, ready=False), pod("b", OTHER)]),
    Moment(260, BOTH, [node(BROKEN, boot="2"), node(OTHER)], [pod("a", BROKEN), pod("b", OTHER)]),
]


def followed(moments: list[Moment], action: Action, *, seconds: float = 3000, **kubernetes: bool) -> Any:
    drill_cluster, lines = DrillCluster(moments), list[str]()
    observer = drill_cluster.observer(**kubernetes)
    timeline = Timeline(observer.observe(), BROKEN, action, drill_cluster.now)
    drill_cluster.said = [
        {
            "EventId": "1",
            "EventTime": datetime(2026, 11, 21, tzinfo=UTC),
            "ResourceType": "Instance",
            "InstanceId": BROKEN,
            "Description": "is faulty",
            "EventLevel": "Warn",
        }
    ]
    follow(
        [(observer, timeline)],
        Events(drill_cluster, "prod", drill_cluster.now),
        seconds,
        lines.append,
        sleep=drill_cluster.sleep,
        clock=drill_cluster.clock,
    )
    return timeline, lines


def test_a_replacement_is_measured_from_fault_to_running_job() -> None:
    timeline, lines = followed(REPLACED, "replace")
    marks = {name: at - timeline.begun for name, at in timeline.marks.items()}
    assert marks == {"labelled": 20, "tainted": 20, "left": 60, "away": 60, "back": 1300, "resumed": 1400}
    assert (timeline.action, timeline.replacement) == ("replace", FRESH)
    assert timeline.reasons == {"reasons": "Xid-74"}
    took = {item.name: (item.seconds, item.missed) for item in timeline.intervals(Targets())}
    assert took == {
        "detection": (20, False),
        "replace": (1280, False),
        "resume": (100, False),
        "standstill": (1400, False),
    }
    assert f"Warn: {BROKEN}: is faulty" in lines[0]
    assert sum("is faulty" in line for line in lines) == 1


def test_a_target_that_is_missed_fails_the_drill() -> None:
    timeline, _ = followed(REPLACED, "replace")
    strict = Targets(detection_seconds=10, replacement_minutes=20, resume_minutes=1)
    assert [item.name for item in timeline.intervals(strict) if item.missed] == ["detection", "replace", "resume"]
    node = DrillCluster(REPLACED).observer().node
    assert record("prod", drill_kinds()["xid-replace"], node, timeline, Targets())["ok"]
    assert not record("prod", drill_kinds()["xid-replace"], node, timeline, strict)["ok"]
    assert not record("prod", drill_kinds()["xid-reboot"], node, timeline, Targets())["ok"], "another action"


def test_a_reboot_keeps_node_and_pods() -> None:
    timeline, _ = followed(REBOOTED, "reboot")
    marks = {name: at - timeline.begun for name, at in timeline.marks.items()}
    assert (timeline.action, timeline.replacement) == ("reboot", None)
    assert marks["back"] == 200
    assert marks["resumed"] == 260


def test_containers_that_restart_between_two_reads_were_interrupted() -> None:
    again = [node(BROKEN, boot="2"), node(OTHER)]
    quick = [*REBOOTED[:2], Moment(90, BOTH, again, [pod("a", BROKEN, restarts=1), pod("b", OTHER)])]
    timeline, _ = followed(quick, "reboot")
    assert (timeline.done, timeline.marks["resumed"] - timeline.begun) == (True, 90)
    # A label that no read saw was there before the reboot.
    unseen = [WHOLE, Moment(90, BOTH, again, [pod("a", BROKEN, restarts=1), pod("b", OTHER)])]
    timeline, _ = followed(unseen, "reboot")
    assert {mark: at - timeline.begun for mark, at in timeline.marks.items()} == dict.fromkeys(timeline.marks, 90)
    assert (timeline.action, timeline.done, "labelled" in timeline.marks) == ("reboot", True, True)
    untouched = [*quick[:2], Moment(90, BOTH, again, [pod("a", BROKEN), pod("b", OTHER)])]
    timeline, _ = followed(untouched, "reboot", seconds=600)
    assert not timeline.done


def test_a_node_that_is_only_marked_is_not_back() -> None:
    timeline, _ = followed([WHOLE, Moment(20, BOTH, MARKED, WHOLE.pods)], "replace", seconds=600)
    assert list(timeline.marks) == ["labelled", "tainted"]
    assert (timeline.action, timeline.done) == ("none", False)
    late = [item.name for item in timeline.intervals(Targets()) if item.missed]
    assert late == ["replace", "resume"]


def test_a_job_that_resumes_on_a_spare_waits_for_nobody() -> None:
    spare = [pod("a2", OTHER), pod("b", OTHER)]
    moments = [*REPLACED[:2], *(Moment(item.at, item.instances, item.nodes, spare) for item in REPLACED[2:])]
    timeline, _ = followed(moments, "replace")
    took = {item.name: item.seconds for item in timeline.intervals(Targets())}
    assert (took["resume"], took["standstill"]) == (0, 60)


def test_lost_pods_alone() -> None:
    moments = [
        WHOLE,
        Moment(5, BOTH, WHOLE.nodes, PENDING),
        Moment(45, BOTH, WHOLE.nodes, [pod("a2", BROKEN), pod("b", OTHER)]),
    ]
    timeline, _ = followed(moments, "none")
    took = {item.name: item.seconds for item in timeline.intervals(Targets())}
    assert took == {"resume": 45, "standstill": 45}
    assert timeline.action == "none"


def test_without_kubernetes_the_api_shows_a_replacement() -> None:
    timeline, _ = followed(REPLACED, "replace", kubernetes=False)
    assert timeline.replacement == FRESH
    assert timeline.marks["back"] - timeline.begun == 1200
    assert [item.name for item in timeline.intervals(Targets()) if item.missed] == []


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_that_every_node_has_are_no_jobs(kind: str) -> None:
    drill_cluster = DrillCluster([Moment(-1, BOTH, WHOLE.nodes, [pod("a", BROKEN, kind=kind)])])
    assert drill_cluster.observer().observe().jobs == {}


def test_a_ray_job_is_the_same_with_another_cluster() -> None:
    def of_cluster(cluster: str, labels: dict[str, str]) -> dict[str, Any]:
        owner = {"kind": "RayCluster", "name": cluster, "controller": True}
        return {"metadata": {"namespace": "team", "labels": labels, "ownerReferences": [owner]}}

    name = {"app.kubernetes.io/name": "tune"}
    assert (
        job_of(of_cluster("tune-t9xpz", name))
        == job_of(of_cluster("tune-p4hnh", name))
        == Job("team", "RayJob", "tune")
    )
    assert job_of(of_cluster("tune", name)) == Job("team", "RayCluster", "tune")
    assert job_of(of_cluster("other", {})) == Job("team", "RayCluster", "other")


def test_a_group_that_lost_another_node_meanwhile_is_not_whole() -> None:
    alone = [Moment(item.at, {FRESH: "Running"}, [node(FRESH)], item.pods) for item in REPLACED[5:]]
    timeline, _ = followed([*REPLACED[:5], *alone], "replace")
    assert timeline.replacement == FRESH
    assert "back" not in timeline.marks
