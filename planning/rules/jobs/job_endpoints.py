"""Rules on endpoints of models: what JumpStart chooses by itself, and caches that need something of the cluster."""

from ....config.findings import listed
from ....config.settings.environment import Environment
from ..framework.rule import ERROR, Problem, Problems, rule


@rule("JOB037", ERROR, on=Environment, source="hyperpod-jumpstart", final=True)
def one_type_for_jumpstart(environment: Environment) -> Problems:
    """JumpStart model on a mixed instance group."""
    for name, job in environment.jobs.items():
        group = environment.instance_groups.get(job.group)
        if job.kind == "jumpstart" and group and len(group.types) > 1:
            yield Problem(
                ("jobs", name, "group"),
                f"{job.group} has {listed(group.types, 'and')}, and a model of JumpStart names one type",
                "name a group of one type",
            )


@rule("JOB038", ERROR, on=Environment, source="hyperpod-kv-cache")
def cache_has_its_memory(environment: Environment) -> Problems:
    """Shared KV cache without tiered checkpoint memory."""
    for name, job in environment.jobs.items():
        cache = job.kv_cache if job.kind in ("inference", "jumpstart") else None
        if cache and cache.shared == "tieredstorage" and not environment.cluster.checkpoint_memory_percent:
            yield Problem(
                ("jobs", name, "kv_cache", "shared"),
                "shared is tieredstorage, which uses the memory that managed tiered checkpointing reserves, and "
                "the cluster reserves none",
                "add `cluster: {tiered_checkpoints: {memory_percent: 20}}`, or use redis",
            )
