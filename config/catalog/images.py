"""Container images: taking references apart, and which registries a closed network reaches."""

import re
from functools import cache
from typing import NamedTuple

from .facts import table

MIRROR_PREFIX = "podwright"
"""First part of the ECR repositories that hold mirrored images."""
_ECR = re.compile(r"^[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$")


class Image(NamedTuple):
    """A reference to an image, with what the short form leaves out filled in."""

    registry: str
    """Host, docker.io when the reference names none."""
    repository: str
    """Path in the registry."""
    tag: str
    """Empty when the reference has a digest only."""
    digest: str
    """`sha256:` and 64 digits; empty when the reference has none."""

    @classmethod
    def parse(cls, reference: str) -> "Image":
        """Take a reference such as `mpioperator/mpi-operator:0.5` apart.

        Source of the grammar: the CNCF distribution project's reference package, as containerd uses it.
        """
        name, _, digest = reference.partition("@")
        head, _, rest = name.partition("/")
        # A first part is a host when it has a dot or a port, or is localhost.
        registry, path = (head, rest) if rest and ("." in head or ":" in head or head == "localhost") else ("", name)
        path, _, tag = path.partition(":")
        if not registry and "/" not in path:
            path = f"library/{path}"
        return cls(registry or "docker.io", path, tag or ("" if digest else "latest"), digest)

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def ecr_region(self) -> str | None:
        """The region when it lies in a private ECR registry, else None."""
        match = _ECR.match(self.registry)
        return match[1] if match else None

    def mirrored_in(self, registry: str) -> "Image":
        """Where a mirror in `registry` keeps this image. The old registry's name stays part of the path."""
        return Image(registry, f"{MIRROR_PREFIX}/{self.name}", self.tag, self.digest)


def ecr_registry(account: str, region: str) -> str:
    """Host of an account's private registry."""
    return f"{account}.dkr.ecr.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


@cache
def eks_registry(region: str) -> str | None:
    """Host of the registry from which EKS serves its own images in a region; None where AWS lists none."""
    return _listed_registry("eks_registries", region)


@cache
def gpu_operator_registry(region: str) -> str | None:
    """Host of the registry from which AWS serves the GPU operator's images in a region; None where AWS names none."""
    return _listed_registry("gpu_operator_registries", region)


def _listed_registry(name: str, region: str) -> str | None:
    account = next((row["account"] for row in table(name) if row["region"] == region), None)
    return ecr_registry(account, region) if account else None
