"""The CDK app: each environment of the project is a stage.

The only place that reads CDK context and the process environment. Context keys: `environment` narrows to one name or
file, `project` is the project's folder (default: where the CLI runs), `chart` is `stand-in` for a sandbox or a test.
"""

import sys
from pathlib import Path

from podwright.operations.node import use_bundled_node

use_bundled_node()

import aws_cdk as cdk  # noqa: E402  jsii starts Node when it is imported

from podwright.config.findings import InvalidFile, errors, write_findings  # noqa: E402
from podwright.config.project import Project  # noqa: E402
from podwright.config.rules import findings  # noqa: E402
from podwright.stacks.feature_flags import FEATURE_FLAGS  # noqa: E402
from podwright.stacks.stage import TrainingStage  # noqa: E402


def main() -> int:
    """Synthesize; returns the exit code: 2 for a file that cannot be read, 1 for failed rules, 0 otherwise."""
    app = cdk.App(context=FEATURE_FLAGS)
    root = Path(app.node.try_get_context("project") or ".")
    wanted = app.node.try_get_context("environment")
    try:
        project = Project.at(root)
        environments = [project.load(wanted)] if wanted else list(project.load_all())
    except InvalidFile as error:
        write_findings(error.findings, sys.stderr)
        return 2
    failed = False
    for loaded in environments:
        found = findings(loaded.environment, loaded.source)
        write_findings(found, sys.stderr)
        failed = failed or bool(errors(found))
        if not failed:
            TrainingStage(app, loaded.environment.name, environment=loaded.environment)
    if failed:
        return 1
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
