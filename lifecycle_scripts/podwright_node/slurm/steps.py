"""The steps of a node that Slurm orchestrates."""

from __future__ import annotations

from . import (
    accounting,
    associations,
    configuration,
    containers,
    daemons,
    failover,
    health,
    imex,
    refresh,
    topology,
    users,
)

STEPS = (
    users.STEP,
    daemons.CONFIGURED,
    topology.STEP,
    accounting.STEP,
    failover.STEP,
    configuration.STEP,
    health.STEP,
    imex.STEP,
    containers.STEP,
    daemons.STEP,
    daemons.LOGIN_STEP,
    associations.STEP,
    refresh.STEP,
)
