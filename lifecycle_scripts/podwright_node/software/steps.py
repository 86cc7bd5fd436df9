"""The steps about the software under a job."""

from __future__ import annotations

from . import efa, gdrcopy, job_variables, libraries, matrix, packages

STEPS = (
    efa.STEP,
    packages.STEP,
    libraries.NCCL,
    gdrcopy.STEP,
    libraries.PLUGIN,
    libraries.TESTS,
    matrix.STEP,
    job_variables.STEP,
)
