"""Usage in the tree of quotas: added and removed in any order, and who is beyond its own is known at any time."""

import random

from kueue_objects import GPU, Object, cluster_queue, flavor
from podwright.planning.simulation.kueue.policy import ClusterQueue, Policy, policy
from podwright.planning.simulation.kueue.tree import Node, share


def tree() -> Policy:
    parents = [("left", "all"), ("right", "all"), ("leaf", "left")]
    cohorts: list[Object] = [{"kind": "Cohort", "metadata": {"name": a}, "spec": {"parentName": b}} for a, b in parents]
    quotas = {"a": ("left", (8, 4, 2)), "b": ("leaf", (8, None, 4)), "c": ("right", (8, None, 0)), "d": ("all", 8)}
    queues = [cluster_queue(name, above, {"default": quota}) for name, (above, quota) in quotas.items()]
    return policy([*cohorts, *queues, flavor("default")])


def below(node: Node) -> list[Node]:
    return [node, *node.queues, *(each for child in node.cohorts for each in below(child))]


def test_usage_can_be_added_and_removed_in_any_order() -> None:
    decides, source = tree(), random.Random(1)
    fr = decides.index["default", GPU]
    root = decides.queues["a"].root()
    queues, held = list(decides.queues.values()), list[tuple[ClusterQueue, int]]()
    for _ in range(3000):
        if held and source.random() < 0.5:
            queue, amount = held.pop(source.randrange(len(held)))
            queue.remove(fr, amount)
        else:
            queue, amount = source.choice(queues), source.randrange(1, 9)
            queue.add(fr, amount)
            held.append((queue, amount))
        for node in below(root):
            own = sum(amount for queue, amount in held if queue is node)
            lent = sum(max(0, each.usage[fr] - each.local[fr]) for each in (*node.queues, *node.cohorts))
            assert node.usage[fr] == own + lent
            assert node.beyond.get(fr, 0) == max(0, node.usage[fr] - node.subtree[fr])
            assert (share(node, {GPU: [fr]}).unweighted > 0) == (bool(node.beyond) and node is not root)
            assert set(node.borrowers) == {each for each in (*node.queues, *node.cohorts) if each.beyond}
    for queue, amount in held:
        queue.remove(fr, amount)
    assert [node.usage[fr] for node in below(root)] == [0] * len(below(root))
