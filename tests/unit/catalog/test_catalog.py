import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from podwright.config.catalog.instance_type import InstanceType
from podwright.config.catalog.instance_types import (
    OVERRIDABLE,
    InvalidOverride,
    UnknownInstanceType,
    catalog,
    conflicts,
)


def test_a_row_holds_what_ec2_sagemaker_and_nvidia_say():
    h200 = catalog().get("ml.p5en.48xlarge")

    assert (h200.accelerator_count, h200.accelerator_name, h200.accelerator_vendor) == (8, "H200", "nvidia")
    assert (h200.accelerator_memory_mib, h200.memory_gib, h200.vcpu, h200.threads_per_core) == (144384, 2048, 192, 2)
    assert (h200.network_gbps, h200.network_cards, h200.efa_interfaces, h200.efa_generation) == (3200, 16, 16, 3)
    assert (h200.nvlink_generation, h200.nvlink_domain, h200.nvswitch, h200.imex) == (4, 8, True, False)
    assert h200.mig_profiles == ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")
    assert (h200.nvme_gb, h200.architecture, h200.training_plan) == (30400, "x86_64", True)


def test_a_neuron_type_counts_the_cores_of_all_its_devices():
    trn2 = catalog().get("ml.trn2.48xlarge")

    assert (trn2.accelerator_vendor, trn2.accelerator_count, trn2.neuron_cores) == ("neuron", 16, 128)
    assert trn2.accelerator_memory_mib * trn2.accelerator_count == 1536 * 1024
    assert (trn2.nvlink_generation, trn2.nvlink_domain, trn2.mig_profiles) == (0, 0, ())


def test_a_cpu_type_has_no_accelerator_fabric_or_profiles():
    m5 = catalog().get("ml.m5.4xlarge")

    assert (m5.accelerator_count, m5.accelerator_name, m5.accelerator_vendor) == (0, "", "none")
    assert (m5.efa_interfaces, m5.efa_generation, m5.efa_only, m5.nvlink_domain, m5.nvme_gb) == (0, 0, False, 0, 0)


def test_what_no_source_knows_of_gb200_is_none_and_can_be_set():
    unknown = catalog().get("ml.p6e-gb200.36xlarge")
    assert (unknown.eni_primary_card, unknown.nvlink_domain, unknown.max_pods_ec2) == (None, None, None)
    assert unknown.imex
    assert not unknown.nvswitch

    known = catalog({"ml.p6e-gb200.36xlarge": {"efa_interfaces": "8", "nvlink_domain": 72}}).get(unknown.name)

    assert (known.efa_interfaces, known.nvlink_domain) == (8, 72)
    assert known.overridden == {"efa_interfaces", "nvlink_domain"}
    assert known.sources == unknown.sources
    assert catalog().get(unknown.name).overridden == frozenset()


def is_consistent(row: InstanceType) -> bool:
    """Whether the fields of a row fit one another."""
    return (
        (row.accelerator_vendor == "none") == (row.accelerator_count == 0) == (not row.accelerator_name)
        and (row.neuron_cores > 0) == (row.accelerator_vendor == "neuron")
        and bool(row.accelerator_memory_mib) == bool(row.accelerator_count)
        and bool(row.efa_interfaces) == bool(row.efa_generation) == row.efa_only
        and row.efa_interfaces <= row.network_cards <= row.eni_max
        and (not row.mig_profiles or row.accelerator_vendor == "nvidia")
        and row.nvlink_domain in (None, 0, row.accelerator_count)
        and bool(row.nvlink_generation) == (row.nvlink_domain != 0) == (row.nvswitch or row.imex)
    )


def test_every_row_is_consistent_and_says_where_it_comes_from():
    assert [row for row in catalog() if not is_consistent(row)] == []
    assert [row.name for row in catalog() if not row.sources] == []
    for source in (source for row in catalog() for source in row.sources):
        assert date.fromisoformat(source.date)
        assert source.url.startswith("https://")


def test_a_row_whose_fields_do_not_fit_is_noticed():
    h200, m5 = catalog().get("ml.p5en.48xlarge"), catalog().get("ml.m5.4xlarge")
    wrong = [
        replace(h200, accelerator_vendor="none"),
        replace(h200, neuron_cores=2),
        replace(h200, accelerator_memory_mib=0),
        replace(h200, efa_only=False),
        replace(h200, network_cards=8),
        replace(m5, mig_profiles=("1g.18gb",)),
        replace(h200, nvlink_domain=4),
        replace(h200, nvswitch=False),
    ]
    assert [row for row in wrong if is_consistent(row)] == []


@pytest.mark.parametrize(
    ("name", "orchestrator", "interface_type", "total"),
    [
        ("ml.p5.48xlarge", "slurm", "efa", 32),
        ("ml.p5.48xlarge", "eks", "efa", 81),  # both published by AWS
        ("ml.p5.48xlarge", "slurm", "efa-only", 1),
        ("ml.p5.48xlarge", "eks", "efa-only", 50),
        ("ml.p5en.48xlarge", "eks", "efa", 65),
        ("ml.p4d.24xlarge", "eks", "efa", 53),
        ("ml.p6-b300.48xlarge", "slurm", "efa", 17),
        ("ml.p6-b300.48xlarge", "eks", "efa", 66),  # one card carries no EFA
        ("ml.m5.4xlarge", "slurm", "efa", 1),
        ("ml.m5.4xlarge", "eks", "efa", 30),
        ("ml.g5.xlarge", "eks", "efa-only", 15),
    ],
)  # no EFA, so the interface type has no effect
def test_addresses_of_a_node(name, orchestrator, interface_type, total):
    assert catalog().get(name).addresses(orchestrator, interface_type).total == total


def test_addresses_show_their_arithmetic_and_name_their_inference():
    both = catalog().get("ml.p5.48xlarge").addresses("eks")
    assert both.arithmetic == "50 of the primary card + 31 other cards = 81"
    assert both.basis == (
        "SageMaker Developer Guide, prerequisites for HyperPod, 2026-11-21; "
        "published for P5, by inference for other types"
    )

    fewer = catalog().get("ml.p5.48xlarge").addresses("eks", "efa-only")
    assert fewer.arithmetic == "50 of the primary card + 0 of 32 EFA-only interfaces = 50"


def test_addresses_and_pods_can_be_set():
    row = catalog({"ml.p5.48xlarge": {"addresses_eks": "96", "addresses_slurm": "33", "pod_limit": "100"}}).get(
        "ml.p5.48xlarge"
    )

    assert [row.addresses("eks", "efa-only").total, row.addresses("slurm").total, row.max_pods] == [96, 33, 100]
    assert row.addresses("eks").basis == row.pods().basis == "set by the environment"


@pytest.mark.parametrize(
    ("name", "hyperpod", "ec2"),
    [
        # maxPods of ml.g5.xlarge was seen on a HyperPod node; the EC2 column is the EKS AMI's own list.
        ("ml.g5.xlarge", 14, 58),
        ("ml.p5.48xlarge", 49, 100),
        ("ml.p4d.24xlarge", 49, 737),
        ("ml.p5en.48xlarge", 49, 198),
        ("ml.p6-b300.48xlarge", 49, 198),
        ("ml.g5.48xlarge", 49, 345),
        ("ml.trn1.32xlarge", 49, 247),
        ("ml.m5.4xlarge", 29, 234),
        ("ml.t3.medium", 5, 17),
    ],
)
def test_pods_of_a_node(name, hyperpod, ec2):
    row = catalog().get(name)
    assert (row.pods().total, row.max_pods, row.max_pods_ec2) == (hyperpod, hyperpod, ec2)


@pytest.mark.parametrize(
    ("name", "desired", "cpus"),
    [
        ("ml.p5en.48xlarge", None, 192),
        ("ml.p5en.48xlarge", 2, 192),
        ("ml.p5en.48xlarge", 1, 96),
        ("ml.p6e-gb200.36xlarge", None, 144),
        ("ml.p6e-gb200.36xlarge", 2, 144),
    ],
)
def test_a_group_may_have_one_thread_a_core(name, desired, cpus):
    assert catalog().get(name).cpus(desired) == cpus


def test_ultraservers_hold_as_many_accelerators_as_their_members():
    servers = catalog().ultraservers

    assert {name: (row.instances, row.accelerators) for name, row in servers.items()} == {
        "ml.u-p6e-gb200x36": (9, 36),
        "ml.u-p6e-gb200x72": (18, 72),
        "u-trn2x64": (4, 64),
    }
    for row in servers.values():
        assert row.hyperpod == (row.instance_type in catalog())
        if row.hyperpod:
            assert row.instances * catalog().get(row.instance_type).accelerator_count == row.accelerators


def test_an_unknown_type_names_the_closest():
    with pytest.raises(UnknownInstanceType, match=r"did you mean ml\.p5\.48xlarge or") as error:
        catalog().get("ml.p5.48xlrge")
    assert error.value.close[0] == "ml.p5.48xlarge"
    assert catalog().find("ml.p5.48xlrge") is None
    assert "ml.p5.48xlrge" not in catalog()


@pytest.mark.parametrize(
    ("field", "provided", "message"),
    [
        ("efa", 8, "efa is not a fact of an instance type"),
        ("efa_interface", 8, "did you mean efa_interfaces"),
        ("name", "x", "is not a fact"),
        ("sources", (), "is not a fact"),
        ("overridden", (), "is not a fact"),
        ("efa_interfaces", "many", "efa_interfaces of ml.p5.48xlarge is 'many'; allowed: a whole number from 0"),
        ("efa_interfaces", "-1", "a whole number from 0"),
        ("efa_interfaces", 3.5, "a whole number from 0"),
        ("efa_interfaces", None, "a whole number from 0"),
        ("efa_interfaces", True, "a whole number from 0"),
        ("memory_gib", "nan", "a number from 0"),
        ("memory_gib", "inf", "a number from 0"),
        ("nvswitch", "perhaps", "yes or no"),
        ("nvswitch", 1, "yes or no"),
        ("architecture", "arm", "x86_64 or arm64"),
        ("architecture", ["arm64"], "x86_64 or arm64"),
        ("accelerator_name", 5, "text"),
        ("mig_profiles", [1], "a list of names"),
    ],
)
def test_an_override_is_refused_with_what_is_allowed(field, provided, message):
    with pytest.raises(InvalidOverride, match=message) as error:
        catalog({"ml.p5.48xlarge": {field: provided}})
    assert (error.value.instance_type, error.value.field) == ("ml.p5.48xlarge", field)


@pytest.mark.parametrize(
    ("field", "provided", "value"),
    [
        ("efa_interfaces", "16", 16),
        ("memory_gib", "1.5", 1.5),
        ("nvswitch", "no", False),
        ("nvswitch", "true", True),
        ("eni_primary_card", None, None),
        ("eni_primary_card", "4", 4),
        ("architecture", "arm64", "arm64"),
        ("mig_profiles", ["1g.10gb"], ("1g.10gb",)),
        ("mig_profiles", "1g.10gb 7g.80gb", ("1g.10gb", "7g.80gb")),
    ],
)
def test_an_override_may_be_text_as_yaml_wrote_it(field, provided, value):
    assert getattr(catalog({"ml.p5.48xlarge": {field: provided}}).get("ml.p5.48xlarge"), field) == value


def test_a_type_that_aws_added_since_can_be_defined_but_not_by_a_typo():
    facts = {field: getattr(catalog().get("ml.p5en.48xlarge"), field) for field in OVERRIDABLE}

    new = catalog({"ml.p7.48xlarge": {**facts, "efa_interfaces": 8}}).get("ml.p7.48xlarge")
    assert (new.efa_interfaces, new.vcpu, new.sources) == (8, 192, ())

    with pytest.raises(InvalidOverride, match=r"did you mean ml\.p5\.48xlarge.*add vcpu, threads_per_core") as error:
        catalog({"ml.p5.48xlrge": {"efa_interfaces": 8}})
    assert error.value.field is None


def test_each_conflict_is_one_and_the_catalog_holds_the_chosen_value():
    for conflict in conflicts():
        chosen = getattr(catalog().get(conflict.type), conflict.field)
        assert (list(chosen) if isinstance(chosen, tuple) else chosen) == conflict.chosen
        assert conflict.chosen in conflict.values.values()
        assert any(value != conflict.chosen for value in conflict.values.values())
        assert conflict.why


def _in_fresh_python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_import_brings_in_the_standard_library_only():
    loaded = _in_fresh_python(
        "import sys, podwright.config; known = set(sys.modules); "
        "import podwright.config.catalog.instance_types; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - known})"
    ).split()
    assert set(loaded) - set(sys.stdlib_module_names) == {"podwright"}


def test_the_import_and_the_loading_take_few_calls():
    """About 6,000 and 8,000 calls, which take some milliseconds each."""
    code = (
        "import json, pathlib, sys; sys.path.insert(0, sys.argv[1]); from waiting import counted; "
        # pydantic, which every command imports, loads these parts of the standard library in any case.
        "import dataclasses, typing, podwright.config; from importlib import import_module; "
        "module, importing = counted(lambda: import_module('podwright.config.catalog.instance_types')); "
        "_, loading = counted(module.catalog); "
        "print(importing, loading)"
    )
    importing, loading = map(int, _in_fresh_python(code, str(Path(__file__).parents[2] / "shared")).split())
    assert importing < 15_000
    assert loading < 15_000
