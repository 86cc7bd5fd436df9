"""Rules on what pods of jobs take from namespace and node, and on what their kind has no field for."""

from collections.abc import Iterator
from typing import Any, Final

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, dotted, listed
from ....config.redact import is_secret
from ....config.settings.environment import Environment
from ....config.settings.jobs.patch import fields, patch_of
from ...jobs.plan import JobPlan
from ...quota.amounts import CPU, MEMORY, in_words
from ..framework.rule import ERROR, Problem, Problems, rule
from ..groups.groups import known
from .jobs import plans

_POD_FIELDS: Final = ("scratch", "security", "pull", "pull_secrets", "tolerations", "init")
_FILES: Final = (("secrets", "*", "path"), ("secrets", "*", "secrets_manager"), ("config_maps", "*", "path"))
# Settings that a kind's object has no field for, and what to do without each.
_WITHOUT: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "recipe": (
        *((name,) for name in (*_POD_FIELDS, "secrets", "config_maps", "affinity", "requests", "patch")),
        ("mounts", "*", "sub_path"),
        ("mounts", "*", "read_only"),
    ),
    "inference": (
        *((name,) for name in (*_POD_FIELDS, "mounts")),
        *_FILES,
        ("affinity", "near"),
        ("affinity", "apart"),
    ),
    "jumpstart": (
        *((name,) for name in (*_POD_FIELDS, "mounts", "secrets", "config_maps", "affinity", "requests", "image")),
        *((name,) for name in ("command", "service_account", "vcpu", "memory_gib", "shm_gib")),
    ),
    "space": (
        *((name,) for name in ("scratch", "pull", "pull_secrets", "init")),
        *_FILES,
        ("mounts", "*", "sub_path"),
        ("mounts", "*", "read_only"),
    ),
    "train": (("pull",), ("init",)),
    # Nothing runs but Ray itself; people send their jobs.
    "ray_cluster": (("command",),),
    "hyperpod_pytorch": (("security", "fs_group"), ("affinity", "near"), ("affinity", "apart")),
}
# What a patch may not say, since rules and quotas would not hear of it, and the setting that says it.
_HAS_A_SETTING: Final = {
    "apiVersion": "kind",
    "kind": "kind",
    "namespace": "team",
    "resources": "accelerators, vcpu, memory_gib and requests",
    "resourcesPerNode": "accelerators, vcpu, memory_gib and requests",
    "replicas": "nodes",
    # A Master is a pod more, of a pod set of its own.
    "Master": "nodes",
    "minReplicas": "nodes and elastic",
    "maxReplicas": "nodes and elastic",
    "numNodes": "nodes",
    "parallelism": "nodes",
    "completions": "nodes",
    "size": "nodes",
    "schedulerName": "team",
    "priorityClassName": "priority",
    "privileged": "security.privileged",
    "hostNetwork": "host_network",
    "hostPath": "scratch",
    "nodeName": "group",
}
_QUEUE_LABELS: Final = ("kueue.x-k8s.io/", "kai.scheduler/", "yunikorn.apache.org/")


@rule("JOB027", ERROR, on=Environment, source="")
def no_secrets_in_variables(environment: Environment) -> Problems:
    """Secret in environment variables."""
    for name, job in environment.jobs.items():
        everywhere = {("env",): job.env} | {("init", key, "env"): each.env for key, each in job.init.items()}
        for path, variables in everywhere.items():
            for variable, value in variables.items():
                if is_secret(variable, value):
                    yield Problem(
                        ("jobs", name, *path, variable),
                        f"the value of {variable} looks like a secret; this file, the job object and everybody who may "
                        "read either has it",
                        "revoke it if it is real, put a new one into a Secret, and write "
                        f"`secrets: {{NAME: {{env: {{{variable}: KEY}}}}}}`",
                    )


@rule("JOB028", ERROR, on=Environment, source="job-kinds", final=True)
def its_kind_has_a_field(environment: Environment) -> Problems:
    """Setting that the job kind does not support."""
    for name, job in environment.jobs.items():
        without = _WITHOUT.get(job.kind, ())
        specified = _specified(job.model_dump(mode="json", exclude_defaults=True))
        refused = dict.fromkeys(path[: len(each)] for path in specified for each in without if _fits(path, each))
        for path in refused:
            yield Problem(
                ("jobs", name, *path),
                f"{dotted(path)} is set, and a job of kind {job.kind} has no field for it",
                "remove it, or take a kind whose pods are written in full: hyperpod_pytorch, pytorch, ray, mpi, job",
            )
        if job.kind == "train":
            yield from _mounted_once(name, job)
        if job.kind == "train" and job.scratch and job.security.run_as_user:
            yield Problem(
                ("jobs", name, "scratch"),
                "the folder of a node is made for root, and a TrainJob has no container before its own that would open "
                f"it to user {job.security.run_as_user}",
                "leave run_as_user out, or take another kind",
            )


def _mounted_once(name: str, job: Any) -> Problems:
    """Claims that a TrainJob mounts at several paths: its patch has one mount of each volume."""
    claims: dict[str, str] = {}
    for path, mount in job.mounts.items():
        if mount.claim in claims:
            yield Problem(
                ("jobs", name, "mounts", path),
                f"claim {mount.claim} is mounted at {claims[mount.claim]} already; a TrainJob mounts a volume once",
                "mount the folder above both, or take another kind",
            )
        claims.setdefault(mount.claim, path)


def _specified(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all settings within a dumped job, mappings before what is in them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from _specified(item, (*path, key))


def _fits(path: Path, pattern: tuple[str, ...]) -> bool:
    return len(path) == len(pattern) and all(want in ("*", part) for part, want in zip(path, pattern, strict=True))


@rule("JOB029", ERROR, on=Environment, source="ascp secrets-store-sync")
def driver_brings_secrets(environment: Environment) -> Problems:
    """Secrets Manager secret without a CSI driver."""
    for name, job in environment.jobs.items():
        managed = [key for key, secret in job.secrets.items() if secret.secrets_manager]
        for key in managed if job.kind != "sbatch" else ():
            yield Problem(
                ("jobs", name, "secrets", key, "secrets_manager"),
                "the Secrets Store CSI driver and AWS's provider bring it into pods, and podwright installs neither: "
                "pods would wait forever",
                "install both, with syncSecret.enabled where secrets become variables, and accept this with that as "
                "the reason; or use a Secret of the namespace",
            )


@rule("JOB030", ERROR, on=Environment, source="ascp", final=True)
def may_read_secrets(environment: Environment) -> Problems:
    """Unused secret of AWS Secrets Manager."""
    for name, job in environment.jobs.items():
        managed = [key for key, secret in job.secrets.items() if secret.secrets_manager]
        if managed and job.service_account is None and job.kind != "sbatch":
            yield Problem(
                ("jobs", name, "secrets", managed[0], "secrets_manager"),
                "pods read it with the role of their service account, and the job names none",
                "set service_account to one of access.service_accounts whose `policies` allow "
                "secretsmanager:GetSecretValue and secretsmanager:DescribeSecret",
            )


@rule("JOB031", ERROR, on=Environment, source="k8s-strategic-merge", final=True)
def patch_says_what_no_setting_says(environment: Environment) -> Problems:
    """Patch that repeats a setting."""
    for name, job in environment.jobs.items():
        for path, field, _ in fields(patch_of(job.patch)) if job.patch else ():
            setting = _HAS_A_SETTING.get(field, "")
            if path == "metadata.name":
                setting = "the key under jobs"
            elif field.startswith(_QUEUE_LABELS):
                setting = "team and priority"
            if setting:
                yield Problem(
                    ("jobs", name, "patch"),
                    f"it changes {path}, of which quotas and rules would not know",
                    f"say it by {setting}",
                )


@rule("JOB032", ERROR, on=Environment, source="k8s-pods", final=True)
def requests_within_limits(environment: Environment, types: Catalog) -> Problems:
    """Request above its limit."""
    for name, _, plan in plans(environment, types):
        for resource, field in {CPU: "vcpu", MEMORY: "memory_gib"}.items():
            asked, most = plan.pod.resources[resource], plan.pod.limits.get(resource)
            if most is not None and asked > most:
                yield Problem(
                    ("jobs", name, "requests", field),
                    f"a pod asks for {in_words(resource, asked)} and may use {in_words(resource, most)}",
                    f"lower it, or raise {field}",
                )


@rule("JOB033", ERROR, on=Environment, source="api-volume")
def scratch_has_a_disk(environment: Environment, types: Catalog) -> Problems:
    """Local scratch on nodes without a local disk."""
    for name, job, _ in plans(environment, types):
        group = environment.instance_groups[job.group]
        without = [row.name for row in known(group, types) if not row.nvme_gb]
        if job.scratch and without and not group.volumes:
            yield Problem(
                ("jobs", name, "scratch"),
                f"{listed(without, 'and')} has no local NVMe and {job.group} no further volume: scratch would fill the "
                "root volume",
                f"add `volumes: [{{size_gib: 500}}]` to {job.group}, or mount a claim",
            )


@rule("JOB034", ERROR, on=Environment, source="k8s-pods", final=True)
def each_once(environment: Environment, types: Catalog) -> Problems:
    """Duplicate mount path or variable."""
    for name, job, plan in plans(environment, types):
        for what, positions in (("path", _paths(plan)), ("variable", _variables(job))):
            first: dict[str, Path] = {}
            for position, value in positions:
                if value in first:
                    yield Problem(
                        ("jobs", name, *position),
                        f"{value} is a {what} of {dotted(first[value])} already",
                        f"take another {what}, or remove one of the two",
                    )
                first.setdefault(value, position)


def _paths(plan: JobPlan) -> Iterator[tuple[Path, str]]:
    """Where pods see something, each with the setting that says so."""
    job = plan.job
    if plan.pod.shm_mib:
        yield ("shm_gib",), "/dev/shm"
    for path in job.mounts:
        yield ("mounts", path), path
    if job.scratch:
        yield ("scratch",), job.scratch
    for section in ("secrets", "config_maps"):
        for key, each in getattr(job, section).items():
            if each.path:
                yield (section, key, "path"), each.path


def _variables(job: Any) -> Iterator[tuple[Path, str]]:
    """Variables of the job's own, each with the setting that says so."""
    for variable in job.env:
        yield ("env", variable), variable
    for section in ("secrets", "config_maps"):
        for key, each in getattr(job, section).items():
            for variable in each.env:
                yield (section, key, "env", variable), variable
