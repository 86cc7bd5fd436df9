"""An environment resolved with what its project has fetched and built."""

from pathlib import Path

from ...config.loading.artifacts import read_artifacts
from ...config.loading.lookups import lookup_key, read_lookups
from ...config.settings.environment import Environment
from ...planning.delivery.missing_artifacts import missing_artifacts
from ...planning.helm.mirrors import mirror_of
from ...planning.helm.wanted_charts import chart_archives
from ...planning.node.archives import environment_archives, locked_files
from ...planning.node.kernels import environment_programs
from ...planning.resolved import ResolvedEnvironment, resolve
from .stand_ins import stand_ins


def resolved_in(
    root: Path, environment: Environment, *, account: str | None = None, sandboxed: bool = False
) -> ResolvedEnvironment:
    """The environment with the charts, mirrored images and archives of the project in `root`.

    Where something is missing, it has stand-ins for its charts and says what: it can be shown, but not deployed.

    Args:
        root: The project's folder.
        environment: The environment.
        account: The account that it is deployed to, where that is not the file's own.
        sandboxed: Whether it is for the sandbox, which installs stand-ins for charts and misses nothing.

    Raises:
        InvalidFile: `artifacts.lock` or `podwright.context.json` is damaged.
    """
    if account:
        boundary = environment.iam.permissions_boundary
        moved = boundary and boundary.replace(f"::{environment.account}:", f"::{account}:")
        iam = environment.iam.model_copy(update={"permissions_boundary": moved})
        environment = environment.model_copy(update={"account": account, "iam": iam})
    # What AWS offers is not what the sandbox does.
    key = lookup_key(environment.account, environment.region)
    zones = {} if sandboxed else read_lookups(root).endpoint_zones.get(key, {})
    missing = [] if sandboxed else missing_artifacts(root, environment)
    return resolve(
        environment,
        charts=stand_ins(environment) if sandboxed or missing else chart_archives(root, environment),
        mirror=mirror_of(environment, read_artifacts(root)),
        node_archives=locked_files(root, [*environment_archives(environment), *environment_programs(environment)]),
        endpoint_zones=zones,
        missing=missing,
    )
