"""List the container images of an environment, or mirror them to the registry (ECR) of the account.

The list comes from the manifests of all enabled charts. It does not have the images of EKS add-ons: EKS selects them,
and serves them from its own ECR registry in every region.
"""

import argparse
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config.catalog.charts import chart
from ...config.catalog.images import Image, ecr_registry, eks_registry
from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.loading.artifacts import Artifacts, ChartArchive, read_artifacts, write_artifacts
from ...config.settings.environment import Environment
from ...planning.helm.mirrors import mirror_of
from ...planning.helm.own_images import own_images
from ...planning.helm.wanted_charts import chart_archives, wanted_charts
from ..arguments import account_for, add_environment, load
from ..aws.account import Account
from ..aws.calls import get, make
from ..output.console import write_answer, write_line
from ..output.moving import under_way
from ..programs.helm import images_of
from .registry import Registry, copy, digest_of
from .stand_ins import stand_ins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright images`."""
    parser.add_argument(
        "action", choices=["list", "mirror"], help="print the images, or mirror them to ECR of the account"
    )
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print the images as JSON")


def run(args: argparse.Namespace) -> int:
    """List or mirror."""
    environment = load(args).environment
    if environment.cluster.orchestrator != "eks":
        raise CommandError(
            f"{environment.name} has no EKS cluster and runs no pods", "nothing has to be mirrored for it"
        )
    sandboxed = args.sandbox or environment.account == SANDBOX_ACCOUNT
    archives = stand_ins(environment) if sandboxed else chart_archives(args.project, environment)
    if args.action == "mirror":
        account = account_for(args, environment)
        return mirror(environment, args.project, archives, account)
    under_way("rendering the charts")
    run_images = images(environment, archives, read_artifacts(args.project))
    document = {"environment": environment.name, "images": [image.to_json() for image in run_images]}
    stand_in = f"These are the sandbox's stand-ins for {', '.join(archives)}, not the real charts."
    shown = [
        *(f"{image.original}\n    {image.served}" for image in run_images),
        *([stand_in] if sandboxed else []),
        f"EKS add-ons: chosen by EKS, from {eks_registry(environment.region) or 'its registry'}",
    ]
    write_answer(args.json, document, shown)
    return 0


@dataclass(frozen=True, slots=True)
class RunImage:
    """An image that an environment runs."""

    original: Image
    """As the chart names it."""
    mirrored: Image | None
    """Its copy in the account's registry, with its digest."""

    @property
    def served(self) -> str:
        """Where nodes pull it from, in words."""
        if self.mirrored:
            return f"mirrored: {self.mirrored}"
        region = self.original.ecr_region
        return f"AWS's ECR in {region}" if region else f"{self.original.registry}, over the internet"

    def to_json(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        return {
            "image": str(self.original),
            "mirror": str(self.mirrored) if self.mirrored else None,
            "ecr_region": self.original.ecr_region,
        }


def images(environment: Environment, archives: Mapping[str, ChartArchive], artifacts: Artifacts) -> list[RunImage]:
    """The images of every chart of the environment, rendered with the values that a deployment uses.

    Args:
        environment: The environment.
        archives: Its charts by name.
        artifacts: What `artifacts.lock` holds.
    """
    result = set(own_images(environment))
    for desired in wanted_charts(environment):
        result |= {
            Image.parse(reference)
            for reference in images_of(archives[desired.chart.name], desired.chart, desired.values)
        }
    copies = mirror_of(environment, artifacts)
    return [RunImage(image, copies.get(str(image))) for image in sorted(result, key=str)]


def mirror(environment: Environment, root: Path, archives: Mapping[str, ChartArchive], account: Account) -> int:
    """Copy every image that is not in ECR to the account's registry, and write the digests to the lock."""
    if account.endpoint:
        raise CommandError("the sandbox has no container registry", "mirror for an environment in AWS")
    artifacts = read_artifacts(root)
    registry = ecr_registry(environment.account, environment.region)
    target = Registry(registry, _ecr_authorization(account))
    digests = dict(artifacts.mirrors.get(registry, {}))
    foreign = [item.original for item in images(environment, archives, artifacts) if item.original.ecr_region is None]
    for image in foreign:
        under_way(f"copying {image}")
        try:
            digests[str(image)] = _mirror_one(image, account, Registry(image.registry), target)
        except OSError as error:
            raise CommandError(f"{image} cannot be copied: {error}", "run this again; what is copied stays") from None
        write_line(f"{image} → {image.mirrored_in(registry)}@{digests[str(image)]}")
        # After each, so that an interrupted run keeps what it has copied.
        artifacts = artifacts.model_copy(update={"mirrors": artifacts.mirrors | {registry: dict(digests)}})
        write_artifacts(root, artifacts)
    ours, settable = own_images(environment), {name for item in archives for name in chart(item).image_values}
    fixed = [image for image in foreign if not {image.name, str(image)} & settable and image not in ours]
    for image in fixed:
        write_line(f"warning: no chart has a value for {image.name}; nodes still pull it from {image.registry}")
    return 1 if fixed else 0


def _mirror_one(image: Image, account: Account, source: Registry, target: Registry) -> str:
    """The digest of an image's copy, which is made unless it exists. Raises CommandError where it is another one."""
    repository = image.mirrored_in(target.host).repository
    settings = {"imageTagMutability": "IMMUTABLE", "imageScanningConfiguration": {"scanOnPush": True}}
    existing = ("RepositoryAlreadyExistsException",)
    made = make(account, "ecr", "create_repository", existing, repositoryName=repository, **settings)
    if not made and target.has(repository, "manifests", image.digest or image.tag):
        # A tag that is there cannot be written again. It is what was copied, or somebody else's, which must not pass.
        present = digest_of(image.mirrored_in(target.host), target)
        if present != digest_of(image, source):
            raise CommandError(
                f"{target.host}/{repository} has {image.tag} as {present}, and upstream has moved that tag since",
                "delete the copy if you want the new image",
            )
        return present
    return copy(image, source, target, repository)


def _ecr_authorization(account: Account) -> str:
    token = get(account, "ecr", "get_authorization_token")["authorizationData"][0]["authorizationToken"]
    assert base64.b64decode(token).startswith(b"AWS:")
    return f"Basic {token}"
