"""Rules on the limits of CloudFormation templates, before anything is synthesized."""

import json

from ....config.catalog.limits import limits
from ....config.findings import Path
from ....config.settings.environment import Environment
from ..capacity.zones import sections
from ..framework.rule import ERROR, Problem, Problems, rule

# Upper bounds of what our stacks synthesize; a test compares them with templates.
_BYTES_PER_GROUP, _BYTES_BESIDE_GROUPS, _INDENTATION = 2_000, 40_000, 1.1
_PER_FILE_SYSTEM, _BESIDE_FILE_SYSTEMS = 14, 10


def group_bytes(environment: Environment) -> dict[Path, int]:
    """About how many bytes each group takes in the cluster's template, rather too many than too few."""
    return {
        path: _BYTES_PER_GROUP + int(_INDENTATION * len(json.dumps(group.model_dump(mode="json"))))
        for path, group in sections(environment)
    }


def cluster_bytes(environment: Environment) -> int:
    """About how many bytes the cluster's template has."""
    return _BYTES_BESIDE_GROUPS + sum(group_bytes(environment).values())


def storage_resources(environment: Environment) -> int:
    """About how many resources the storage stack has."""
    lustres = environment.storage.lustres.values()
    file_systems = len(lustres) + (environment.storage.home is not None)
    repositories = sum(len(lustre.repositories) for lustre in lustres)
    return _BESIDE_FILE_SYSTEMS + _PER_FILE_SYSTEM * file_systems + repositories


@rule("TPL001", ERROR, on=Environment, source="cfn-quotas", final=True)
def template_size(environment: Environment) -> Problems:
    """Cluster template exceeds CloudFormation's limits."""
    total, most = cluster_bytes(environment), limits().cloudformation.template_bytes
    if total > most:
        path, largest = max(group_bytes(environment).items(), key=lambda item: item[1])
        yield Problem(
            path,
            f"the cluster's template would have about {total:,} bytes, {largest:,} of them for {path[-1]}; "
            f"CloudFormation takes {most:,}",
            "use fewer groups, or fewer and shorter labels and taints",
        )


@rule("TPL002", ERROR, on=Environment, source="cfn-quotas", final=True)
def resource_count(environment: Environment) -> Problems:
    """Storage stack exceeds CloudFormation's resource limit."""
    total, most = storage_resources(environment), limits().cloudformation.resources
    if total > most:
        yield Problem(
            ("storage", "additional_lustre"),
            f"{len(environment.storage.lustres)} file systems make a stack of about {total} resources; CloudFormation "
            f"takes {most}",
            "spread them over several environments",
        )
