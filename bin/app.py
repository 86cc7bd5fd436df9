"""The CDK app: each environment of the project is a stage.

The only place that reads CDK context. Its keys: `environment` narrows to one name or file; `project` is the project's
folder (default: where the CLI runs); `pipeline` narrows to what is promoted and adds what promotes it; `chart` =
`stand-in` installs charts of our own in place of the real ones, and `account` replaces the account of the file: both
are for the sandbox and for tests.
"""

import os
import sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path

if __name__ == "__main__" and not sys.flags.optimize:
    # -O is jsii's way to leave out its checks of argument types, a tenth of a synthesis, which our type checker and
    # Node make as well. Without byte code for it (bin/setup makes it), compiling the CDK would cost more than that.
    spec = find_spec("aws_cdk")
    if spec and spec.origin and Path(cache_from_source(spec.origin, optimization=1)).exists():
        os.execv(sys.executable, [sys.executable, "-O", *sys.orig_argv[1:]])

import gc
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Final

from podwright.operations.programs.node import end_node, use_bundled_node

use_bundled_node()
# With more threads Node spends a second of two cores on handing garbage around and on optimizing WebAssembly.
os.environ["NODE_OPTIONS"] = f"--v8-pool-size=1 {os.environ.get('NODE_OPTIONS', '')}"
# Creation stack traces show Node's internals, take a sixth of a synthesis, and carry this machine's paths.
os.environ.setdefault("CDK_DISABLE_STACK_TRACE", "1")
# Nobody reads how long Node's own functions took.
os.environ.setdefault("CDK_NO_PERF_BUILTINS", "1")
# A synthesis keeps nearly all that it makes until it ends, so looking for garbage finds none.
gc.disable()
# Importing the CDK starts Node and waits until it has loaded; meanwhile the rest can be imported.
import jsii  # noqa: E402, F401

# The one thread that asks Node for anything until the stacks are made: it answers one at a time.
node = ThreadPoolExecutor(max_workers=1)
loaded_cdk = node.submit(import_module, "aws_cdk")


def begin() -> tuple["cdk.App", dict[str, str | None]]:
    """The app, and what its context says."""
    app = cdk.App(context=FEATURE_FLAGS)
    context = app.node.try_get_context
    return app, {key: context(key) for key in ("environment", "project", "pipeline", "chart", "account")}


def add_validator(app: "cdk.App") -> None:
    """Add the validator that `synth` would make by itself, for which Node takes a second."""
    if os.environ.get("CDK_VALIDATION") != "false":
        cdk.Validations.of(app).add_plugins(cdk.CloudFormationValidatePlugin())


from podwright.config.errors import InvalidFile  # noqa: E402
from podwright.config.findings import Finding, errors, write_findings  # noqa: E402
from podwright.config.loading.artifacts import chart_archive, chart_findings, read_artifacts  # noqa: E402
from podwright.config.loading.load import LoadedEnvironment  # noqa: E402
from podwright.config.loading.project import Project  # noqa: E402
from podwright.operations.artifacts.assets import needed  # noqa: E402
from podwright.operations.artifacts.charts import stand_in  # noqa: E402
from podwright.operations.artifacts.kernels import missing_programs, needed_programs  # noqa: E402
from podwright.planning.helm.mirrors import mirror_findings, mirror_of  # noqa: E402
from podwright.planning.helm.wanted_charts import wanted_charts  # noqa: E402
from podwright.planning.node.archives import archive_findings, locked_files  # noqa: E402
from podwright.planning.rules import findings  # noqa: E402
from podwright.planning.rules.project.project import project_findings  # noqa: E402

loaded_cdk.result()

import aws_cdk as cdk  # noqa: E402

if TYPE_CHECKING:
    from podwright.stacks.stage import TrainingStage
from podwright.stacks.feature_flags import FEATURE_FLAGS  # noqa: E402

NODE_MODULES: Final = ("aws_cdk.lambda_layer_kubectl_v35", "cdk8s")
"""Those that Node has to load as well."""

begun = node.submit(begin)
loaded_there = node.submit(lambda: [import_module(module) for module in NODE_MODULES])
validator = node.submit(lambda: add_validator(begun.result()[0]))


def main() -> int:
    """Synthesize; returns the exit code: 2 for a file that cannot be read, 1 for failed rules, 0 otherwise."""
    app, context = begun.result()
    root, wanted = Path(context["project"] or "."), context["environment"]
    try:
        project = Project.at(root)
        environments = [project.load(wanted)] if wanted else list(project.load_all())
        if context["pipeline"]:
            environments = promoted(project)
        found = [finding for loaded in environments for finding in findings(loaded.environment, loaded.source)]
        if len(environments) > 1:
            compared = project_findings({loaded.environment.name: loaded for loaded in environments})
            found += [finding for items in compared.values() for finding in items]
        write_findings(found, sys.stderr)
        if errors(found):
            return 1
        loaded_there.result()
        # Node makes the validator meanwhile; these ask it for nothing.
        from podwright.stacks.stage import import_parts

        for loaded in environments:
            import_parts(loaded.environment)
        validator.result()
        sandboxed = context["chart"] == "stand-in"
        stages = [
            add_stage(app, root, loaded, account=context["account"], sandboxed=sandboxed) for loaded in environments
        ]
        if context["pipeline"]:
            from podwright.stacks.promotion import add_promotion

            add_promotion(app, project, [loaded.environment for loaded in environments], stages)
    except InvalidFile as error:
        write_findings(error.findings, sys.stderr)
        return 2
    app.synth()
    # All that is left has to go with the process; Python would look through it for garbage once more.
    gc.freeze()
    return 0


def promoted(project: Project) -> list[LoadedEnvironment]:
    """The environments that the project's pipeline deploys. Raises InvalidFile where it cannot deploy one."""
    from podwright.planning.delivery.promotable import promotable

    return promotable(project)


def add_stage(
    app: cdk.App, root: Path, loaded: LoadedEnvironment, *, account: str | None, sandboxed: bool
) -> "TrainingStage":
    """Add the stage of one environment. What is missing for a deployment stops `cdk deploy`, but not `cdk ls`."""
    from podwright.stacks.stage import TrainingStage

    environment = loaded.environment.model_copy(update={"account": account}) if account else loaded.environment
    artifacts, wanted = read_artifacts(root), needed(environment)
    charts = [item.chart for item in wanted_charts(environment)]
    missing: list[Finding] = []
    if not sandboxed:
        missing = [
            *archive_findings(root, wanted),
            *missing_programs(root, environment),
            *(finding for chart in charts for finding in chart_findings(root, chart)),
            *mirror_findings(environment, artifacts),
        ]
    stage = TrainingStage(
        app,
        environment.name,
        environment=environment,
        charts={item.name: stand_in(item) if sandboxed or missing else chart_archive(root, item) for item in charts},
        mirror=mirror_of(environment, artifacts),
        node_archives=locked_files(root, [*wanted, *needed_programs(environment)]),
    )
    for finding in missing:
        where = stage.eks or stage.cluster or stage.storage
        cdk.Annotations.of(where).add_error(f"{finding.id}: {finding.message}; {finding.hint}")
    return stage


if __name__ == "__main__":
    try:
        code = main()
    finally:
        end_node()
    sys.exit(code)
