"""Rules on one FSx for Lustre file system."""

from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.groups import RestrictedLustre
from ....config.settings.storage import Lustre
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule


def _new_ssd(lustre: Lustre) -> bool:
    return lustre.existing is None and lustre.type == "ssd"


def _new_tiered(lustre: Lustre) -> bool:
    return lustre.existing is None and lustre.type == "intelligent_tiering"


@rule("STO001", ERROR, on=Lustre, source="fsx-lustre", final=True)
def throughput(lustre: Lustre) -> Problems:
    """Invalid SSD throughput."""
    allowed = limits().lustre.throughput
    if _new_ssd(lustre) and lustre.throughput not in allowed:
        yield Problem(
            "throughput",
            f"throughput is {lustre.throughput} MB/s per TiB; allowed: {listed(allowed)}",
            # The next larger one: what was asked for is reached.
            f"use {next((each for each in allowed if each >= lustre.throughput), allowed[-1])}",
        )


@rule("STO002", ERROR, on=Lustre, source="fsx-api", final=True)
def capacity(lustre: Lustre) -> Problems:
    """Invalid SSD capacity."""
    if _new_ssd(lustre) and not lustre.efa:
        yield from _capacity(lustre.capacity_gib)


@rule("STO003", ERROR, on=Lustre, source="fsx-efa fsx-api", final=True)
def efa_capacity(lustre: Lustre) -> Problems:
    """Invalid SSD capacity with EFA."""
    gib, step = lustre.capacity_gib, limits().lustre.efa_capacity_step_gib.get(lustre.throughput)
    if _new_ssd(lustre) and lustre.efa and step and (gib is None or gib % step):
        yield Problem(
            "capacity_gib",
            f"capacity_gib is {gib or 'not given'}; with EFA at {lustre.throughput} MB/s per TiB allowed: "
            f"multiples of {step}",
            f"use {_around(gib, step)}" if gib else f"set {step} or more",
        )


@rule("STO004", ERROR, on=Lustre, source="fsx-metadata", final=True)
def metadata(lustre: Lustre) -> Problems:
    """Invalid metadata IOPS."""
    iops, known = lustre.metadata_iops, limits().lustre
    if _new_tiered(lustre) and iops not in known.tiering_metadata_iops:
        yield Problem(
            "metadata_iops",
            f"metadata_iops is {iops}; with intelligent tiering allowed: {listed(known.tiering_metadata_iops)}",
            f"use {known.tiering_metadata_iops[0]}",
        )
    step, most = known.metadata_iops_step, known.metadata_iops_max
    if (
        _new_ssd(lustre)
        and iops != "automatic"
        and iops not in known.metadata_iops
        # Besides multiples of the step FSx offers a few smaller values.
        and (iops % step or not 0 < iops <= most)
    ):
        yield Problem(
            "metadata_iops",
            f"metadata_iops is {iops}; allowed: automatic, {listed(known.metadata_iops)}, and multiples "
            f"of {step} up to {most}",
            "use automatic, or one of these",
        )


@rule("STO005", ERROR, on=Lustre, source="fsx-api", final=True)
def version(lustre: Lustre) -> Problems:
    """Metadata configuration on Lustre 2.12."""
    needed = limits().lustre.metadata_version
    wants = {
        "efa": lustre.efa,
        "intelligent tiering": lustre.type != "ssd",
        "metadata_iops": lustre.metadata_iops != "automatic",
    }
    if lustre.existing is None and lustre.version != needed and any(wants.values()):
        yield Problem(
            "version",
            f"version is {lustre.version}, which has no metadata configuration, and "
            f"{listed((name for name, desired in wants.items() if desired), 'and')} cannot do without",
            f"use {needed}",
        )


@rule("STO006", ERROR, on=Lustre, source="fsx-lustre", final=True)
def throughput_capacity(lustre: Lustre) -> Problems:
    """Invalid throughput capacity of intelligent tiering."""
    total, step, most = (
        lustre.throughput_capacity or 0,
        limits().lustre.tiering_throughput_step,
        limits().lustre.tiering_throughput_max,
    )
    if _new_tiered(lustre) and (total % step or not 0 < total <= most):
        yield Problem(
            "throughput_capacity",
            f"throughput_capacity is {lustre.throughput_capacity or 'not given'} MB/s; allowed: "
            f"multiples of {step} up to {most}",
            # Rounded up to a step, and no further than FSx goes.
            f"use {min(max(step, -(-total // step) * step), most)}",
        )


@rule("STO007", ERROR, on=Lustre, source="fsx-cache", final=True)
def read_cache(lustre: Lustre) -> Problems:
    """Missing or invalid read cache size."""
    cache = lustre.read_cache
    if not _new_tiered(lustre) or cache is None:
        return
    if cache.mode != "provisioned":
        if cache.size_gib is not None:
            yield Problem(
                ("read_cache", "size_gib"),
                f"size_gib is {cache.size_gib}, and mode {cache.mode} has no size of yours",
                "remove it, or set `mode: provisioned`",
            )
        return
    step = limits().lustre.tiering_throughput_step
    # The cache grows with the throughput, a range for each unit of it.
    units = max(1, (lustre.throughput_capacity or 0) // step)
    least, most = (size * units for size in limits().lustre.read_cache_gib)
    if cache.size_gib is None or not least <= cache.size_gib <= most:
        yield Problem(
            ("read_cache", "size_gib"),
            f"size_gib is {cache.size_gib or 'not given'}; allowed at {units} × {step} MB/s: {least} to {most} GiB",
            "set a size in that range",
        )


@rule("STO008", ERROR, on=Lustre, source="fsx-repositories", final=True)
def tiered_repositories(lustre: Lustre) -> Problems:
    """S3 repositories on intelligent tiering."""
    if _new_tiered(lustre) and lustre.repositories:
        yield Problem(
            "repositories",
            f"{len(lustre.repositories)} S3 repositories on a file system with intelligent tiering, which takes none",
            "use type ssd for the data that S3 holds, under additional_lustre, or copy it with jobs",
        )


@rule("STO009", ERROR, on=Lustre, source="fsx-backups fsx-lustre", final=True)
def repository_backups(lustre: Lustre) -> Problems:
    """Backups beside S3 repositories."""
    if lustre.existing is None and lustre.repositories and lustre.backups:
        yield Problem(
            "backups",
            "the file system has S3 repositories, and FSx backs up no file system that has one",
            "remove backups and export to S3 (`export: [new, changed, deleted]`), or put the repositories on a second "
            "file system under additional_lustre",
        )


@rule("STO010", ERROR, on=Lustre, source="fsx-association", final=True)
def repository_paths(lustre: Lustre) -> Problems:
    """Overlapping repository folders."""
    for index, later in enumerate(lustre.repositories):
        for earlier in lustre.repositories[:index]:
            # Either may hold the other.
            if within(later.path, earlier.path) or within(earlier.path, later.path):
                yield Problem(
                    ("repositories", index, "path"),
                    f"{later.path} overlaps {earlier.path}; a folder belongs to one repository",
                    "choose separate folders",
                )


@rule("STO011", WARNING, on=Lustre, source="fsx-repositories")
def repository_prefixes(lustre: Lustre) -> Problems:
    """Overlapping export prefixes."""
    exporting = [(index, each) for index, each in enumerate(lustre.repositories) if each.export_events]
    for position, (index, later) in enumerate(exporting):
        for _, earlier in exporting[:position]:
            if within(later.s3, earlier.s3) or within(earlier.s3, later.s3):
                yield Problem(
                    ("repositories", index, "s3"),
                    f"{later.s3} overlaps {earlier.s3}, and both export: files of one "
                    "folder may overwrite those of the other",
                    "export to separate prefixes",
                )


@rule("STO012", WARNING, on=Lustre, source="")
def other_class(lustre: Lustre) -> Problems:
    """Setting of another storage class."""
    if lustre.existing:
        return
    foreign = {"ssd": ("throughput_capacity", "read_cache"), "intelligent_tiering": ("capacity_gib", "throughput")}[
        lustre.type
    ]
    for field in foreign:
        if field in lustre.model_fields_set and getattr(lustre, field) is not None:
            yield Problem(field, f"{field} has no effect on type {lustre.type}", "remove it, or change type")


@rule("STO013", WARNING, on=Lustre, source="")
def existing(lustre: Lustre) -> Problems:
    """Setting without effect on an existing file system."""
    if lustre.existing:
        # These say where and how it is mounted, which is this environment's own.
        for field in sorted(lustre.model_fields_set - {"zone", "mount", "existing", "efa", "claims"}):
            if getattr(lustre, field) not in (None, ()):
                yield Problem(
                    field,
                    f"{field} has no effect: {lustre.existing.id} exists and is only mounted",
                    "remove it; change the file system where it was made",
                )


@rule("STO014", INFO, on=Lustre, source="fsx-backups")
def single_copy(lustre: Lustre) -> Problems:
    """SSD data without backups or an export."""
    if _new_ssd(lustre) and not lustre.backups and not any(each.export_events for each in lustre.repositories):
        yield Problem(
            (),
            "the file system has neither backups nor an export to S3: if its zone is lost, its data are lost",
            "write checkpoints to S3, or add `backups: {}`",
        )


@rule("STO015", ERROR, on=RestrictedLustre, source="cfn-cluster fsx-lustre", final=True)
def restricted(lustre: RestrictedLustre) -> Problems:
    """Invalid scratch size of a restricted group."""
    if lustre.throughput not in (allowed := limits().lustre.throughput):
        yield Problem(
            "throughput",
            f"throughput is {lustre.throughput} MB/s per TiB; allowed: {listed(allowed)}",
            "use one of these",
        )
    yield from _capacity(lustre.capacity_gib)


def _capacity(gib: int | None) -> Problems:
    first, step = limits().lustre.capacity_first_gib, limits().lustre.capacity_step_gib
    if gib is None or (gib != first and gib % step):
        yield Problem(
            "capacity_gib",
            f"capacity_gib is {gib or 'not given'}; allowed: {first} and multiples of {step}",
            f"use {_around(gib, step, first)}" if gib else f"set {first} or more",
        )


def _around(value: int, step: int, first: int = 0) -> str:
    """The allowed values around `value`, if `first` and multiples of `step` are allowed."""
    below = value // step * step
    # The first allowed value is smaller than a step.
    return listed(sorted({below or first, below + step} - {0}))


def within(inner: str, outer: str) -> bool:
    """Whether a path or prefix is the same as another or lies below it."""
    # With a slash at the end /data does not hold /database.
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")
