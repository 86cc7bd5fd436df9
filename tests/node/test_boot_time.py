"""The longest chain of needs, which `bin/bench --only boot` compares a boot with.

A test on a busy machine measures no boot. `tests/unit/nodes/test_node_steps.py` proves what makes a boot as fast as its
longest chain: a step waits for its own needs alone, and steps without needs run at the same time.
"""

import boot


def test_the_longest_chain_is_found() -> None:
    alone = {
        "network": 1.0,
        "name-resolution": 2.0,
        "limits": 2.5,
        "efa": 1.0,
        "lnet": 1.0,
        "lustre": 3.0,
        "clock": 7.0,
    }
    assert boot.longest_chain(alone) == (7.5, ("limits", "efa", "lnet", "lustre"))
