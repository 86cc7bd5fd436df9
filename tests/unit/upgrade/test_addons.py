"""The table of add-on versions, and which version an environment gets."""

from typing import get_args

import pytest
from pydantic import TypeAdapter

from podwright.config.settings.cluster import AddonName, AddonVersion, Eks
from podwright.config.settings.platform import Platform
from podwright.planning.kubernetes.addons import (
    GOVERNANCE_ADDONS,
    NODE_ADDONS,
    OBSERVABILITY_ADDON,
    PLATFORM_ADDONS,
    WORKLOAD_ADDONS,
    addon_pins,
    addon_version,
    unpinned_addons,
)


def test_every_addon_belongs_to_one_group() -> None:
    groups = (*NODE_ADDONS, *WORKLOAD_ADDONS, *GOVERNANCE_ADDONS, OBSERVABILITY_ADDON, *PLATFORM_ADDONS)
    assert sorted(groups) == sorted(get_args(AddonName))


def test_a_platform_names_the_addons_that_its_parts_are_in_their_order() -> None:
    role = "arn:aws:iam::111122223333:role/Inference"
    roles = dict.fromkeys(("execution_role", "load_balancer_role", "autoscaler_role", "s3_driver_role"), role)
    whole = Platform.model_validate(
        {
            "cert_manager": {},
            "training_operator": {},
            "inference": {**roles, "tls_bucket": "hyperpod-tls"},
            "spaces": {},
        }
    )
    assert whole.addons == PLATFORM_ADDONS
    assert whole.stands_alone
    assert Platform().addons == ()
    assert not Platform.model_validate({"gpu_operator": {}, "mpi_jobs": False}).stands_alone
    assert Platform.model_validate({"kuberay": {}}).stands_alone


@pytest.mark.parametrize("pin", addon_pins(), ids=lambda pin: f"{pin.addon}-{pin.kubernetes}")
def test_a_pin_is_a_version_with_a_source(pin) -> None:
    assert TypeAdapter(AddonVersion).validate_python(pin.version) == pin.version
    assert pin.addon in get_args(AddonName)
    assert pin.sources
    major, minor, patch = (int(part) for part in pin.version.removeprefix("v").partition("-")[0].split("."))
    if pin.addon == "kube-proxy":
        assert f"{major}.{minor}" == pin.kubernetes
    if pin.addon == "vpc-cni":
        assert (major, minor, patch) >= (1, 18, 3), "HyperPod refuses older ones"


def test_no_addon_has_two_pins_for_a_version() -> None:
    keys = [(pin.addon, pin.kubernetes) for pin in addon_pins()]
    assert len(keys) == len(set(keys))


def test_the_environment_knows_better() -> None:
    eks = Eks(version="1.34", addons={"coredns": "v1.99.0-eksbuild.1"})
    assert addon_version("coredns", eks) == "v1.99.0-eksbuild.1"
    assert addon_version("kube-proxy", eks) == "v1.34.6-eksbuild.13"


def test_what_nobody_documents_is_left_to_eks() -> None:
    assert unpinned_addons(Eks(version="1.34")) == ("eks-pod-identity-agent", "aws-fsx-csi-driver")
    assert addon_version("aws-fsx-csi-driver", Eks(version="1.34")) is None
    chosen = Eks(version="1.34", addons={"eks-pod-identity-agent": "v1.3.0-eksbuild.1"})
    assert unpinned_addons(chosen) == ("aws-fsx-csi-driver",)
    assert "vpc-cni" in unpinned_addons(Eks(version="1.36"))
