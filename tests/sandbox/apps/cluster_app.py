"""A cloud assembly with one small stack for each environment: a HyperPod cluster with Slurm, and nothing around it.

Written by hand, so that a deployment takes what the CDK CLI takes and no synthesis.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment


def stack(environment: Environment) -> dict[str, Any]:
    """The template."""
    role = f"arn:aws:iam::{environment.account}:role/nodes"
    groups = [
        {
            "InstanceGroupName": name,
            "InstanceType": group.types[0],
            "InstanceCount": group.count,
            "ExecutionRole": role,
            "SlurmConfig": {"NodeType": "Controller"}
            if name == "controller"
            else {"NodeType": "Compute", "PartitionNames": ["all"]},
        }
        for name, group in environment.groups.items()
    ]
    properties = {"ClusterName": environment.cluster.name, "InstanceGroups": groups}
    return {"Resources": {"Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}}}


def write(folder: Path, artifacts: dict[str, Any]) -> None:
    """The manifest of an assembly."""
    (folder / "manifest.json").write_text(json.dumps({"version": "48.0.0", "artifacts": artifacts}))


def main() -> None:
    """Write the assembly of the environments that the context names."""
    out, context = Path(os.environ["CDK_OUTDIR"]), json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}"))
    project = Project.at(Path.cwd())
    stages = dict[str, Any]()
    for name in [context["environment"]] if context.get("environment") else project.names:
        environment = project.load(name).environment
        nested = out / f"assembly-{name}"
        nested.mkdir(parents=True, exist_ok=True)
        (nested / "cluster.template.json").write_text(json.dumps(stack(environment)))
        location = f"aws://{environment.account}/{environment.region}"
        properties = {"templateFile": "cluster.template.json", "stackName": f"{name}-cluster"}
        artifact = {"type": "aws:cloudformation:stack", "environment": location, "properties": properties}
        write(nested, {f"{name}cluster": artifact | {"displayName": f"{name}/cluster"}})
        nesting = {"directoryName": nested.name, "displayName": name}
        stages[nested.name] = {"type": "cdk:cloud-assembly", "properties": nesting}
    write(out, stages)


if __name__ == "__main__":
    sys.exit(main())
