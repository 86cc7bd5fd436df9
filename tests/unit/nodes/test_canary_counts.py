"""How many nodes a canary deployment has, and how the app learns of it."""

from podwright.config.settings.environment import Environment
from podwright.planning.delivery.canary import canary_counts, counts_text, with_counts
from synthesis import environment_of

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
training_plans: {q1: {arn: "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", zone: usw2-az2}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 3}
  h200: {instance_type: ml.p5en.48xlarge, count: 16, min_count: 4, zone: usw2-az2}
  planned: {instance_type: ml.p5.48xlarge, count: 8, zone: usw2-az2, capacity: {training_plan: q1}}
  later: {instance_type: ml.p5.48xlarge, count: 0, zone: usw2-az2}
"""


def fleet() -> Environment:
    return environment_of(FILE)


def test_each_new_group_has_one_node_and_what_is_paid_or_there_stays() -> None:
    assert canary_counts(fleet(), {}) == {"system": 1, "h200": 1, "planned": 8, "later": 0}
    assert canary_counts(fleet(), {"system": 3}) == {"system": 3, "h200": 1, "planned": 8, "later": 0}


def test_the_app_gets_the_counts_in_a_word() -> None:
    text = counts_text(canary_counts(fleet(), {}))
    assert text == "h200=1,later=0,planned=8,system=1"
    changed = with_counts(fleet(), text).instance_groups
    assert {name: group.count for name, group in changed.items()} == {"system": 1, "h200": 1, "planned": 8, "later": 0}
    assert changed["h200"].min_count == 1
    assert with_counts(fleet(), None) == fleet()
