from typing import get_args, get_origin, get_type_hints

import pytest

from podwright.config.limits import limits

LIMITS = {
    f"{section}.{name}": (kind, getattr(getattr(limits(), section), name))
    for section in limits()._fields
    if section != "citations"
    for name, kind in get_type_hints(type(getattr(limits(), section))).items()
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_has_its_type_and_a_source(name: str):
    declared, value = LIMITS[name]
    kind, arguments = get_origin(declared) or declared, get_args(declared)
    assert isinstance(kind, type)
    assert isinstance(value, kind)
    if kind is tuple:
        assert all(isinstance(item, arguments[0]) for item in value)
        if Ellipsis not in arguments:
            assert len(value) == 2
            assert value[0] <= value[1]
    if kind is dict:
        assert all(isinstance(item, int) for pair in value.items() for item in pair)
    assert limits().source(name)


def test_no_limit_is_without_a_field():
    assert set(limits().citations) == set(LIMITS)


@pytest.mark.parametrize(
    ("throughput", "efa", "step"),
    [
        (125, True, 38400),
        (250, True, 19200),
        (500, True, 9600),
        (1000, True, 4800),
        (125, False, 2400),
        (1000, False, 2400),
    ],
)
def test_lustre_capacity_steps(throughput, efa, step):
    assert limits().lustre.capacity_step(throughput, efa=efa) == step


def test_every_lustre_throughput_has_an_efa_step():
    assert tuple(limits().lustre.efa_capacity_step_gib) == limits().lustre.throughput
