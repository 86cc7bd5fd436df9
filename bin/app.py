"""The CDK app: each environment of the project is a stage.

The only place that reads CDK context. Its keys: `environment` narrows to one name or file; `project` is the project's
folder (default: where the CLI runs); `pipeline` narrows to what is promoted and adds what promotes it; `counts` says
numbers of nodes, `at` when; for the sandbox and tests, `chart` = `stand-in` takes our own, and `account` is another.
"""

import gc
import os
import sys
from pathlib import Path

from podwright.config.errors import InvalidFile
from podwright.config.findings import errors, write_findings
from podwright.config.loading.project import Project
from podwright.operations.artifacts.resolved import resolved_in
from podwright.operations.programs.node import use_bundled_node
from podwright.planning.delivery.deployed_environment import deployed_environment
from podwright.planning.delivery.promotable import promotable
from podwright.planning.rules.project.project import all_findings

use_bundled_node()  # before aws_cdk, whose import starts Node
# With more threads Node spends a second of two cores on handing garbage around and on optimizing WebAssembly.
os.environ.setdefault("NODE_OPTIONS", "--v8-pool-size=1")
gc.disable()  # a synthesis keeps nearly all that it makes until it ends

import aws_cdk as cdk  # noqa: E402

from podwright.stacks.feature_flags import FEATURE_FLAGS  # noqa: E402
from podwright.stacks.promotion import add_promotion  # noqa: E402
from podwright.stacks.stage import TrainingStage  # noqa: E402


def main() -> int:
    """Synthesize; returns the exit code: 2 for a file that cannot be read, 1 for failed rules, 0 otherwise."""
    app = cdk.App(context=FEATURE_FLAGS)
    messages = app.node.try_get_context
    name, sandboxed = messages("environment"), messages("chart") == "stand-in"
    try:
        project = Project.at(Path(messages("project") or "."))
        selected = [project.load(name)] if name else project.load_all()
        chosen = promotable(project) if messages("pipeline") else list(selected)
        write_findings(findings := all_findings(chosen), sys.stderr)
        if errors(findings):
            return 1
        for loaded in chosen:
            environment = deployed_environment(loaded.environment, messages("counts"), messages("at"))
            resolved = resolved_in(project.root, environment, account=messages("account"), sandboxed=sandboxed)
            TrainingStage(app, environment.name, resolved=resolved)
        if messages("pipeline"):
            add_promotion(app, project, [loaded.environment for loaded in chosen])
    except InvalidFile as error:
        write_findings(error.findings, sys.stderr)
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
