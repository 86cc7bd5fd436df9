"""The steps about the software under a job."""

from __future__ import annotations

from . import job_variables, software_efa, software_gdrcopy, software_libraries, software_matrix, software_packages

STEPS = (
    software_efa.STEP,
    software_packages.STEP,
    software_libraries.NCCL,
    software_gdrcopy.STEP,
    software_libraries.PLUGIN,
    software_libraries.TESTS,
    software_matrix.STEP,
    job_variables.STEP,
)
