"""References to container images."""

import pytest

from podwright.config.catalog.images import Image, ecr_registry, eks_registry

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("reference", "registry", "repository", "tag", "digest"),
    [
        ("nginx", "docker.io", "library/nginx", "latest", ""),
        ("nginx:1.27", "docker.io", "library/nginx", "1.27", ""),
        ("mpioperator/mpi-operator:0.5", "docker.io", "mpioperator/mpi-operator", "0.5", ""),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.16.1", "nvcr.io", "nvidia/k8s-device-plugin", "v0.16.1", ""),
        ("localhost:5000/a/b", "localhost:5000", "a/b", "latest", ""),
        (f"quay.io/jetstack/cert-manager@{DIGEST}", "quay.io", "jetstack/cert-manager", "", DIGEST),
        (f"quay.io/a/b:v1@{DIGEST}", "quay.io", "a/b", "v1", DIGEST),
    ],
)
def test_a_reference_is_taken_apart(reference: str, registry: str, repository: str, tag: str, digest: str) -> None:
    image = Image.parse(reference)
    assert image == Image(registry, repository, tag, digest)
    assert Image.parse(str(image)) == image


@pytest.mark.parametrize(
    ("reference", "region"),
    [
        ("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/coredns:v1", "us-west-2"),
        ("961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn/eks/coredns:v1", "cn-northwest-1"),
        ("public.ecr.aws/neuron/neuron-device-plugin:2", None),
        ("12.dkr.ecr.us-west-2.amazonaws.com/a:1", None),
    ],
)
def test_private_registries_of_ecr_are_known(reference: str, region: str | None) -> None:
    assert Image.parse(reference).ecr_region == region


def test_a_mirror_keeps_the_old_name_in_the_path() -> None:
    registry = ecr_registry("111122223333", "us-west-2")
    mirrored = Image.parse(f"nvcr.io/nvidia/k8s-device-plugin:v0.16.1@{DIGEST}").mirrored_in(registry)
    assert str(mirrored) == (
        "111122223333.dkr.ecr.us-west-2.amazonaws.com/podwright/nvcr.io/nvidia/k8s-device-plugin:v0.16.1@" + DIGEST
    )


def test_eks_serves_its_images_from_every_region() -> None:
    assert eks_registry("us-west-2") == "602401143452.dkr.ecr.us-west-2.amazonaws.com"
    assert eks_registry("eu-south-2") == "455263428931.dkr.ecr.eu-south-2.amazonaws.com"
    assert eks_registry("mars-north-1") is None
