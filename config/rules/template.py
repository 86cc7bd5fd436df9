"""Rules on the limits of CloudFormation templates, before anything is synthesized."""

import json

from ..environment import Environment
from ..limits import limits
from .rule import ERROR, Problem, Problems, rule
from .zones import sections

# Measured on synthesized templates; see docs/measurements.md.
_BYTES_PER_GROUP = 2_600
_BYTES_BESIDE_GROUPS = 60_000
_INDENTATION = 1.4
_PER_FILE_SYSTEM, _PER_REPOSITORY, _BESIDE_FILE_SYSTEMS = 14, 1, 40


@rule("TPL001", ERROR, on=Environment, source="cfn-quotas", final=True)
def template_size(environment: Environment) -> Problems:
    """A cluster template of more than CloudFormation takes."""
    most = limits().cloudformation.template_bytes
    sizes = {
        str(path[-1]): int(_INDENTATION * len(json.dumps(group.model_dump(mode="json")))) + _BYTES_PER_GROUP
        for path, group in sections(environment)
    }
    total = sum(sizes.values()) + _BYTES_BESIDE_GROUPS
    if total > most:
        largest = max(sizes, key=lambda name: sizes[name])
        yield Problem(
            "instance_groups",
            f"the cluster's template would have about {total:,} bytes, {sizes[largest]:,} of them from {largest}; "
            f"CloudFormation takes {most:,}",
            "use fewer groups, or fewer and shorter labels and taints",
        )


@rule("TPL002", ERROR, on=Environment, source="cfn-quotas", final=True)
def storage_resources(environment: Environment) -> Problems:
    """A storage stack of more resources than CloudFormation takes."""
    most = limits().cloudformation.resources
    lustres = environment.storage.lustres.values()
    repositories = sum(len(lustre.repositories) for lustre in lustres)
    total = _BESIDE_FILE_SYSTEMS + _PER_FILE_SYSTEM * len(lustres) + _PER_REPOSITORY * repositories
    if total > most:
        yield Problem(
            ("storage", "additional_lustre"),
            f"{len(lustres)} file systems with {repositories} repositories make about {total} "
            f"resources; CloudFormation takes {most} in a stack",
            "spread them over several environments",
        )
