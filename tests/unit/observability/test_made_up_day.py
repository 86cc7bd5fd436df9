"""The day that a preview shows: what is of the environment's file, and what happens in it."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import load_environment
from podwright.planning.monitoring.synthetic.cluster import SyntheticCluster
from podwright.planning.monitoring.synthetic.day import NODES, made_up_day, with_failed_nodes
from podwright.planning.monitoring.synthetic.metrics import history

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
NAMES = sorted(file.stem for file in ENVIRONMENTS.glob("*.yaml"))
DAY = 86_400.0
START = 1_800_000_000.0


def day(name: str) -> SyntheticCluster:
    environment = load_environment(ENVIRONMENTS / f"{name}.yaml").environment
    return with_failed_nodes(made_up_day(environment, START, START + DAY, step=900))


def test_a_day_is_seeded_from_the_file() -> None:
    environment = load_environment(ENVIRONMENTS / "prod.yaml").environment
    types, made = environment_types(environment.instance_types), day("prod")
    for node in made.nodes:
        row = types.find(node.instance_type)
        assert row
        assert (node.gpus, node.efa) == (row.accelerator_count, row.efa_interfaces)
    present = Counter(node.group for node in made.nodes if node.left > made.end)
    assert present == {name: min(group.count, NODES) for name, group in environment.instance_groups.items()}
    # Ten and six of sixteen nodes, of which three are drawn.
    assert {team.name: team.gpus["ml.p5en.48xlarge"] for team in made.teams} == {"research": 15, "product": 9}
    assert {job.name for job in made.jobs} == {"pretrain", "fine-tune", "pretrain-debug"}
    assert {job.priority for job in made.jobs if job.name == "fine-tune"} == {"fine-tuning"}
    assert made.budget_usd == 400_000


@pytest.mark.parametrize("name", NAMES)
def test_each_node_has_one_job_at_a_time(name: str) -> None:
    made = day(name)
    for node in made.nodes:
        for earlier, later in pairwise(made.jobs_on(node.name)):
            assert earlier.end <= later.start


@pytest.mark.parametrize("name", [name for name in NAMES if any(node.gpus for node in day(name).nodes)])
def test_a_day_has_checkpoints_a_preemption_and_nodes_that_fail(name: str) -> None:
    made = day(name)
    assert made.preemptions
    assert any(job.waits(timestamp) for job in made.jobs for timestamp in made.moments) or any(
        job.elastic for job in made.jobs
    )
    first = made.jobs[0]
    busy = [made.activity(first, first.start + second) for second in range(30, 7200, 60)]
    assert busy.count(min(busy)) == 5
    assert [node.group for node in made.nodes if node.left < made.end]
    assert {change.metric for change in made.changes} >= {"podwright_node_fault"}


@pytest.mark.parametrize("name", ["prod", "two-teams", "sandbox"])
def test_samples_of_a_series_are_in_order(name: str) -> None:
    """Prometheus refuses a history in which they are not: jobs and their pods go from node to node."""
    last: dict[str, float] = {}
    for line in history(day(name)).splitlines():
        if not line.startswith("#"):
            series, _, timestamp = line.rsplit(" ", 2)
            assert last.get(series, 0) < float(timestamp), series
            last[series] = float(timestamp)
