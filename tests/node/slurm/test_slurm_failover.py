"""The programs by which slurmctld tells an SNS topic who is in charge."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from podwright.lifecycle_scripts.podwright_node.slurm import failover as slurm_failover
from slurm_node import SlurmNode

BUNDLE = Path(__file__).parents[3] / "lifecycle_scripts"
TOPIC = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:failover"


@pytest.fixture
def slurm_node(tmp_path: Path) -> Iterator[SlurmNode]:
    location = SlurmNode(tmp_path)
    with location.log:
        yield location


def controller(location: SlurmNode, topic: str | None = TOPIC) -> Node:
    return replace(location.node(failover_topic=topic), bundle=BUNDLE)


def test_both_programs_tell_the_topic(slurm_node: SlurmNode) -> None:
    slurm_node.command("aws", "")
    node = controller(slurm_node)
    slurm_failover.install(node)
    assert slurm_failover.is_installed(node)
    for program in slurm_failover.settings(node, {}).values():
        path = f"{slurm_node.bin}:{os.environ['PATH']}"
        subprocess.run([str(node.path(program))], env={"PATH": path}, check=True, capture_output=True)
    on, off = (line for line in slurm_node.asked if line.startswith("aws sns publish"))
    host = os.uname().nodename
    assert f"--region us-gov-west-1 --topic-arn {TOPIC} --subject test: {host} is the Slurm controller in charge " in on
    assert f"--subject test: {host} is no longer the Slurm controller in charge " in off


def test_a_topic_that_is_out_of_reach_is_a_failed_program_with_the_reason(slurm_node: SlurmNode) -> None:
    slurm_node.command("aws", "echo 'Could not connect to the endpoint URL' >&2; exit 255")
    node = controller(slurm_node)
    slurm_failover.install(node)
    program = str(node.path(slurm_failover.PROGRAMS["SlurmctldPrimaryOnProg"]))
    failed = subprocess.run(
        [program], env={"PATH": f"{slurm_node.bin}:{os.environ['PATH']}"}, capture_output=True, text=True
    )
    assert failed.returncode == 255
    assert "Could not connect" in failed.stderr


def test_programs_of_the_image_stay_and_without_a_topic_there_are_none(slurm_node: SlurmNode) -> None:
    node = controller(slurm_node)
    assert list(slurm_failover.settings(node, {"slurmctldprimaryonprog": "/theirs"})) == ["SlurmctldPrimaryOffProg"]
    assert slurm_failover.STEP.applies_to(node)
    without = controller(slurm_node, None)
    assert slurm_failover.settings(without, {}) == {}
    assert not slurm_failover.STEP.applies_to(without)


def test_another_topic_and_a_lost_mode_are_seen(slurm_node: SlurmNode) -> None:
    node = controller(slurm_node)
    slurm_failover.install(node)
    assert not slurm_failover.is_installed(controller(slurm_node, f"{TOPIC}-2"))
    node.path(slurm_failover.PROGRAMS["SlurmctldPrimaryOffProg"]).chmod(0o644)
    assert not slurm_failover.is_installed(node)
