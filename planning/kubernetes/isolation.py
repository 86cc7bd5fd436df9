"""What follows for the rest of an environment from what its teams say of their place in Kubernetes."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...config.settings.governance.team_access import TeamAccess
from ...config.settings.governance.teams import Governance
from ...config.settings.jobs.base import Job
from ...config.settings.jobs.pytorch import HyperPodPyTorchJob
from ..quota.team_names import team_namespace

# Above what the Debian Policy Manual (9.2.2) leaves to people and services, below 2^31, where some tools end.
_FIRST_GID: Final = 100_000_000
_GIDS: Final = 1_000_000_000
SCRATCH: Final = ("/opt/dlami/nvme/teams", "/opt/sagemaker/teams")
"""Folders of a node that have one for each team: on its local disks, and on its further volume."""
# Those of the Pod Security Standard `baseline`, and the one that RDMA libraries pin memory with.
CAPABILITIES: Final = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
"""What containers of teams may have besides the runtime's own."""


def team_access(governance: Governance) -> dict[str, TeamAccess]:
    """What teams say of their place in Kubernetes, by team; without the teams that say nothing."""
    return {name: team.access for name, team in governance.teams.items() if team.access}


def team_gid(team: str, access: TeamAccess | None) -> int:
    """Group id that owns the folders of a team: as its file says, else a number that only its name decides.

    It lies above the ids that systems and people have, and stays when teams come and go.
    """
    if access and access.gid is not None:
        return access.gid
    return _FIRST_GID + zlib.crc32(team.encode()) % _GIDS


def awaited_namespaces(governance: Governance) -> tuple[str, ...]:
    """The namespaces of teams that SageMaker makes, after it has answered that the quotas are there.

    None with the other engines, where namespaces are podwright's.
    """
    if governance.engine != "hyperpod":
        return ()
    return tuple(team_namespace("hyperpod", team) for team in sorted(governance.teams))


def names_identities(governance: Governance) -> bool:
    """Whether a team says who works in it, as a person or as a pod."""
    return any(access.roles or access.service_accounts for access in team_access(governance).values())


def isolates_networks(governance: Governance) -> bool:
    """Whether pods of a team are kept from some addresses: then the cluster's network has to obey policies."""
    accesses = [team.access or TeamAccess() for team in governance.teams.values()]
    return any(access.network is not None or not access.instance_metadata for access in accesses)


@dataclass(frozen=True, slots=True)
class PodFreedoms:
    """What the pods of teams may do to their nodes, as the environment's file says."""

    guarded: tuple[str, ...]
    """Teams whose pods are kept from their nodes: all but those with `pod_security: privileged`."""
    host_network: tuple[str, ...]
    """Guarded teams that have a job on the node's network in the file."""
    privileged: tuple[str, ...]
    """Guarded teams that have a job with privileged containers in the file."""


def runs_privileged(job: Job) -> bool:
    """Whether containers of a job may do more than those of teams: as it says, or as checkpointless training does."""
    checkpointless = isinstance(job, HyperPodPyTorchJob) and job.checkpoints.checkpointless
    return checkpointless or job.security.privileged or not set(job.security.capabilities) <= set(CAPABILITIES)


def pod_freedoms(governance: Governance, jobs: Iterable[Job]) -> PodFreedoms:
    """What the pods of each team may do to their nodes: what the file's own jobs need, and otherwise nothing."""
    jobs = list(jobs)
    free = {name for name, access in team_access(governance).items() if access.pod_security == "privileged"}
    guarded = sorted(governance.teams.keys() - free)
    on_network = {job.team for job in jobs if getattr(job, "uses_host_network", False)}
    privileged = {job.team for job in jobs if runs_privileged(job)}
    return PodFreedoms(
        tuple(guarded),
        tuple(name for name in guarded if name in on_network),
        tuple(name for name in guarded if name in privileged),
    )
