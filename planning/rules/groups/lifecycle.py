"""Rules on lifecycle scripts of your own."""

from ....config.catalog.limits import limits
from ....config.settings.groups import Lifecycle
from ..framework.rule import ERROR, Problem, Problems, rule


@rule("LIF002", ERROR, on=Lifecycle, source="api-lifecycle", final=True)
def one_entry(lifecycle: Lifecycle) -> Problems:
    """Not exactly one entry script."""
    if lifecycle.on_create and lifecycle.on_init_complete:
        yield Problem(
            "on_init_complete",
            f"on_create is {lifecycle.on_create} and on_init_complete is {lifecycle.on_init_complete}; SageMaker "
            "takes one",
            "keep on_create to set up the whole node, or on_init_complete to extend the set-up of the image",
        )
    elif not lifecycle.on_create and not lifecycle.on_init_complete:
        yield Problem(
            (), "neither on_create nor on_init_complete is set, so no script would run", "name the entry script"
        )


@rule("LIF003", ERROR, on=Lifecycle, source="api-lifecycle")
def source_bucket(lifecycle: Lifecycle) -> Problems:
    """Lifecycle scripts in a bucket without the sagemaker- prefix."""
    bucket = lifecycle.source.removeprefix("s3://").partition("/")[0]
    prefix = limits().cluster.lifecycle_bucket_prefix
    if not bucket.startswith(prefix):
        yield Problem(
            "source",
            f"source is in bucket {bucket}; HyperPod documents lifecycle scripts only in buckets whose name begins "
            f"with {prefix}, as its managed node policy reads no other",
            "copy the scripts to such a bucket, or accept this: podwright's own role reads the bucket that you name",
        )


@rule("LIF004", ERROR, on=Lifecycle, source="api-lifecycle")
def file_name(lifecycle: Lifecycle) -> Problems:
    """Entry script with a path."""
    for field in ("on_create", "on_init_complete"):
        name = getattr(lifecycle, field) or ""
        if "/" in name or name != name.strip() or not name.isprintable():
            yield Problem(
                field,
                f"{field} is {name!r}; allowed: the name of a file directly under source",
                "move source or the script",
            )
