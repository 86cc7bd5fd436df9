"""A node is ready as fast as its longest chain of steps allows."""

from pathlib import Path

import boot


def test_the_longest_chain_decides(folder: Path) -> None:
    # The bench takes the whole delays on an idle machine, and holds them to 1.15. Here a busy one gets three tries.
    tries: list[tuple[boot.Boot, tuple[str, ...]]] = []
    for _ in range(3):
        serial, parallel = boot.boot(serial=True, pace=0.4), boot.boot(serial=False, pace=0.4)
        seconds, chain = boot.longest_chain(serial.steps)
        tries.append((parallel, chain))
        # There is something to gain, and it is gained.
        if parallel.seconds <= 1.4 * seconds and serial.seconds > 1.5 * parallel.seconds:
            return
    raise AssertionError(tries)


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
