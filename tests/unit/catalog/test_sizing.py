"""The planner: the arithmetic that people do on paper, and no layout that could not run."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.config.catalog.instance_types import catalog
from podwright.operations import cli
from podwright.planning.sizing import (
    GB,
    CannotSize,
    Layout,
    Machine,
    Model,
    SizingRequest,
    layouts,
    machine,
    minimum,
    problems,
    smallest,
    usable_memory_gb,
    warnings,
)

TYPES = catalog()
H100 = machine(TYPES, "ml.p5.48xlarge")
U72 = machine(TYPES, "ml.u-p6e-gb200x72")
MIXTURE = Model(parameters=600e9, active=40e9, experts=18)


def test_seventy_billion_need_eighteen_gpus_of_eighty_gigabytes() -> None:
    model = Model(parameters=70e9, bytes_per_parameter=20)
    assert (model.state, minimum(model, H100), smallest(model, H100)) == (1400 * GB, 18, 3)


def test_eighteen_experts_lie_on_the_instances_of_one_ultraserver() -> None:
    """The reference layout of an UltraServer: an expert on each instance, tensor parallelism inside it."""
    assert smallest(MIXTURE, U72, 0.1) == 18
    best, *_ = layouts(MIXTURE, U72, 18, 0.1)
    assert best == Layout(tensor=4, pipeline=1, expert=18, data=18)
    assert best.gb(MIXTURE) == pytest.approx((592.94e9 / 72 * 18 + 7.06e9 / 4 * (6 + 12 / 18)) / GB, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "accelerators", "domain", "link", "hyperpod"),
    [
        ("ml.p5.48xlarge", 8, 8, "NVLink", True),
        ("ml.p6e-gb200.36xlarge", 4, 72, "NVLink", True),
        ("ml.u-p6e-gb200x36", 4, 36, "NVLink", True),
        ("u-trn2x64", 16, 64, "NeuronLink", False),
        ("ml.trn2.48xlarge", 16, 16, "NeuronLink", True),
        ("ml.g5.48xlarge", 8, 8, "PCIe", True),
    ],
)
def test_machines(name: str, accelerators: int, domain: int, link: str, hyperpod: bool) -> None:
    resolved_machine = machine(TYPES, name)
    assert (
        resolved_machine.accelerators,
        resolved_machine.domain,
        resolved_machine.link,
        resolved_machine.hyperpod,
    ) == (accelerators, domain, link, hyperpod)


def test_spares_leave_the_domain() -> None:
    assert machine(TYPES, "ml.u-p6e-gb200x72", spares=2).domain == 64


@pytest.mark.parametrize(
    ("name", "spares", "text"),
    [
        ("ml.p5.48xlarg", 0, "known are"),
        ("ml.m5.large", 0, "no accelerators"),
        ("ml.p5.48xlarge", 1, "no UltraServer"),
        ("ml.u-p6e-gb200x36", 9, "at most 8 of 9"),
    ],
)
def test_what_is_no_machine(name: str, spares: int, text: str) -> None:
    with pytest.raises(CannotSize, match=text):
        machine(TYPES, name, spares)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Model(parameters=10e9, active=11e9), "at most all"),
        (Model(parameters=10e9, active=1e9, experts=4, top_k=2), "at least 5 B"),
        (Model(parameters=10e9, active=9e9, experts=4, top_k=4), "fewer than all"),
    ],
)
def test_numbers_that_contradict_each_other(model: Model, text: str) -> None:
    with pytest.raises(CannotSize, match=text):
        _ = model.parts


def test_experts_that_are_not_given_never_need_less_memory() -> None:
    known, unknown = MIXTURE, Model(parameters=600e9, active=40e9)
    layout = Layout(4, 1, 18, 18)
    assert sum(known.parts) == pytest.approx(600e9)
    assert unknown.parts == (40e9, 560e9)
    assert layout.gb(unknown) > layout.gb(known)


@pytest.mark.parametrize(
    ("layout", "instances", "text"),
    [
        (Layout(3, 1, 1, 8), 3, "TP 3 does not divide the 8 accelerators"),
        (Layout(8, 1, 1, 4), 3, "32 ranks, and there are 24"),
        (Layout(1, 1, 3, 16), 2, "EP 3 × ETP 1 = 3 does not divide the 16 ranks of a stage"),
        (Layout(4, 1, 4, 2), 1, "EP 4 × ETP 4 = 16 does not divide the 8 ranks of a stage"),
        (Layout(1, 1, 8, 8), 1, "EP 8 does not divide 12 experts"),
        (Layout(8, 1, 1, 1), 1, "TP 8 does not divide 12 attention heads"),
        (Layout(1, 8, 1, 1), 1, "PP 8 does not divide 12 layers"),
        (Layout(1, 1, 1, 8), 1, "375.0 GB on an accelerator, and 80.0 GB are there"),
    ],
)
def test_why_a_layout_is_illegal(layout: Layout, instances: int, text: str) -> None:
    model = Model(parameters=50e9, active=10e9, experts=12, layers=12, heads=12)
    assert any(text in problem for problem in problems(layout, model, H100, instances))


def test_a_dense_model_has_no_experts_to_divide() -> None:
    assert any("dense" in problem for problem in problems(Layout(1, 1, 2, 8), Model(parameters=1e9), H100, 1))


def test_without_experts_nothing_is_said_of_them() -> None:
    assert not [problem for problem in problems(Layout(3, 1, 1, 8), Model(parameters=1e9), H100, 3) if "EP" in problem]


def test_full_sharding_fits_where_the_optimizer_alone_does_not() -> None:
    ten = Model(parameters=10e12)
    assert smallest(ten, H100, 0.2) is None
    full = Model(parameters=10e12, replicated_bytes=0)
    actual = smallest(full, H100, 0.2)
    assert actual
    assert actual * 8 == 2816


def models() -> st.SearchStrategy[Model]:
    def mixture(size: float, share: float, experts: int, top_k: int) -> Model:
        least = min(1.0, top_k / experts)
        return Model(parameters=size, active=size * (least + (1 - least) * share), experts=experts, top_k=top_k)

    sizes = st.floats(1e8, 3e12)
    dense = st.builds(
        Model,
        parameters=sizes,
        layers=st.sampled_from([None, 32, 61, 80, 126]),
        heads=st.sampled_from([None, 8, 40, 64]),
        bytes_per_parameter=st.floats(2, 24),
        replicated_bytes=st.floats(0, 2),
    )
    experts = st.builds(
        mixture, sizes, st.floats(0.01, 1), st.sampled_from([4, 18, 64, 72, 160, 256]), st.sampled_from([1, 2])
    )
    return dense | experts


def machines() -> st.SearchStrategy[Machine]:
    names = ["ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.p6-b200.48xlarge", "ml.trn2.48xlarge", "ml.g5.12xlarge"]
    units = st.builds(
        lambda name, spares: machine(TYPES, name, spares),
        st.sampled_from(["ml.u-p6e-gb200x36", "ml.u-p6e-gb200x72", "u-trn2x64"]),
        st.integers(0, 3),
    )
    return st.sampled_from(names).map(lambda name: machine(TYPES, name)) | units


@given(models(), machines(), st.integers(1, 40), st.floats(0, 0.6))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_every_layout_can_run(model: Model, hardware: Machine, units: int, headroom: float) -> None:
    """Checked anew, from the ranks: groups of consecutive ranks never straddle what they must stay inside."""
    instances = units * hardware.domain_instances
    for layout in layouts(model, hardware, instances, headroom):
        ranks = instances * hardware.accelerators
        assert layout.tensor * layout.pipeline * layout.data == ranks
        assert layout.data % layout.expert == 0
        assert not model.heads or model.heads % layout.tensor == 0
        assert not model.layers or model.layers % layout.pipeline == 0
        assert not model.experts or model.experts % layout.expert == 0
        for span, location in (
            (layout.tensor, hardware.accelerators),
            (layout.tensor * layout.expert, hardware.domain),
        ):
            inside = location if span <= location else hardware.domain
            starts = range(0, min(ranks, inside * 2), span)
            assert all(start // inside == (start + span - 1) // inside for start in starts)
        assert layout.gb(model) <= usable_memory_gb(hardware, headroom) + 1e-6
        # What all accelerators hold together is at least the state.
        assert layout.gb(model) * ranks >= model.state / GB * (1 - 1e-9)


@given(models(), machines(), st.floats(0, 0.6))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_the_least_number_is_the_least(model: Model, hardware: Machine, headroom: float) -> None:
    actual = smallest(model, hardware, headroom)
    floor = math.ceil(minimum(model, hardware, headroom) / hardware.domain) * hardware.domain_instances
    if actual is None:
        assert not layouts(model, hardware, floor, headroom)
    else:
        assert actual >= floor
        assert layouts(model, hardware, actual, headroom)
        assert actual == floor or not layouts(model, hardware, actual - hardware.domain_instances, headroom)


def test_what_is_asked_for_is_kept() -> None:
    resolved_layouts = layouts(MIXTURE, U72, 18, 0.1, SizingRequest(pipeline=2, expert=9))
    assert {(layout.pipeline, layout.expert) for layout in resolved_layouts} == {(2, 9)}


def size(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert cli.main(["size", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_the_command_shows_its_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    text = size(capsys, "--parameters", "70B", "--bytes", "20", "--headroom", "0")
    assert "at least 18 accelerators: 1,400 GB ÷ 80 GB = 17.5" in text
    assert "3 × ml.p5.48xlarge = 24 accelerators" in text
    assert "Training plans sell 1, 2, 4, 8" in text


def test_the_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--parameters", "600B", "--active", "40B", "--experts", "18", "--type", "ml.u-p6e-gb200x72")
    actual = json.loads(size(capsys, *arguments, "--headroom", "10", "--json"))
    first = actual["options"][0]
    assert (actual["minimum_accelerators"], first["instances"], first["accelerators"]) == (59, 18, 72)
    assert first["layouts"][0]["reaches"] == {
        "tensor": "in an instance",
        "expert": "NVLink domain",
        "data": "NVLink domain",
        "pipeline": "-",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--parameters", "10T"), 1, "--sharding full"),
        (("--parameters", "70B", "--tensor", "3", "--count", "4"), 1, "TP 3 × PP 1 does not divide 32"),
        (("--parameters", "70B", "--tensor", "8", "--count", "1"), 1, "157.5 GB on an accelerator"),
        (("--parameters", "70B", "--type", "ml.m5.large"), 2, "no accelerators"),
        (("--parameters", "70B", "--active", "80B"), 2, "at most all"),
        (("--parameters", "70B", "--manifest", "job"), 2, "needs no ComputeDomain"),
    ],
)
def test_what_cannot_be_sized(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, text: str
) -> None:
    assert text in size(capsys, *arguments, code=code)


@pytest.mark.parametrize("text", ["1.5T", "7b", "350M"])
def test_sizes_as_people_write_them(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert "bytes = " in size(capsys, "--parameters", text)


@pytest.mark.parametrize("text", ["70", "", "B", "7Q", "-1B", "0B", "1e9x", "٣B"])
def test_sizes_that_mean_nothing(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["size", f"--parameters={text}"])
    assert stop.value.code == 2
    assert "such as 70B" in capsys.readouterr().err


def test_the_manifest_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--parameters", "600B", "--active", "40B", "--type", "ml.u-p6e-gb200x72", "--headroom", "10")
    text = size(capsys, *arguments, "--manifest", "moe", "--namespace", "hyperpod-ns-research")
    assert "kind: ComputeDomain" in text
    assert "numNodes: 18" in text
    assert "podset-required-topology: topology.k8s.aws/ultraserver-id" in text
    assert "not a DNS label" in size(capsys, *arguments, "--manifest", "Moe_1", code=2)


def test_what_fills_its_accelerators_exactly_needs_no_more() -> None:
    assert minimum(Model(parameters=80e9, bytes_per_parameter=20), H100) == 20


def test_experts_take_their_ranks_from_tensor_and_data_parallelism() -> None:
    """Kimi K2 on 32 instances of 8: TP 8, PP 8 and EP 32, which is more than the DP of 4."""
    kimi = Model(parameters=1.04e12, active=32e9, experts=384, top_k=8)
    b300 = machine(TYPES, "ml.p6-b300.48xlarge")
    wish = SizingRequest(tensor=8, pipeline=8, expert=32)
    assert layouts(kimi, b300, 32, 0.2, wish) == [Layout(8, 8, 32, 4, 1)]
    (warning,) = warnings(Layout(8, 8, 32, 4, 1), b300, 32)
    assert warning.startswith("EP 32 × ETP 1 = 32 does not divide the domain of 8")
    # Nobody who does not ask for it gets experts that are apart.
    assert not [each for each in layouts(kimi, b300, 32, 0.2) if list(warnings(each, b300, 32))]
    assert layouts(kimi, b300, 32, 0.2, SizingRequest(tensor=8, pipeline=8, expert=32, expert_tensor=8)) == []


def test_whole_experts_take_the_memory_that_divided_ones_share() -> None:
    model = Model(parameters=400e9, active=20e9, experts=64, top_k=2)
    divided, whole = Layout(8, 1, 4, 8), Layout(8, 1, 32, 8, 1)
    assert divided.expert_ranks == whole.expert_ranks == 32
    assert divided.gb(model) == pytest.approx(whole.gb(model))
    assert Layout(8, 1, 4, 8, 1).gb(model) > divided.gb(model)
