"""The steps of a node that Slurm orchestrates."""

from __future__ import annotations

from . import (
    slurm_accounting,
    slurm_associations,
    slurm_configuration,
    slurm_containers,
    slurm_daemons,
    slurm_failover,
    slurm_health,
    slurm_imex,
    slurm_refresh,
    slurm_topology,
    slurm_users,
)

STEPS = (
    slurm_users.STEP,
    slurm_daemons.CONFIGURED,
    slurm_topology.STEP,
    slurm_accounting.STEP,
    slurm_failover.STEP,
    slurm_configuration.STEP,
    slurm_health.STEP,
    slurm_imex.STEP,
    slurm_containers.STEP,
    slurm_daemons.STEP,
    slurm_daemons.LOGIN_STEP,
    slurm_associations.STEP,
    slurm_refresh.STEP,
)
