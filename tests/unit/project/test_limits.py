import json
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

from podwright.config.catalog.limits import limits
from podwright.config.loading.project import Project
from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.jobs.pytorch import KubeflowElastic

LIMITS = {
    f"{section}.{name}": (kind, getattr(getattr(limits(), section), name))
    for section in limits()._fields
    if section != "citations"
    for name, kind in get_type_hints(type(getattr(limits(), section))).items()
}


def is_typed(declared: Any, value: object) -> bool:
    """Whether the value of a limit has the declared type; a tuple of two is a range, lowest first."""
    kind, arguments = get_origin(declared) or declared, get_args(declared)
    if not isinstance(value, kind):
        return False
    if isinstance(value, dict):
        return all(isinstance(item, int) for pair in value.items() for item in pair)
    if isinstance(value, tuple):
        ordered = Ellipsis in arguments or (len(value) == 2 and value[0] <= value[1])
        return ordered and all(isinstance(item, arguments[0]) for item in value)
    return True


def test_every_limit_has_its_type_and_a_source():
    assert {name: limit for name, limit in LIMITS.items() if not is_typed(*limit)} == {}
    assert [name for name in LIMITS if not limits().source(name)] == []
    assert not is_typed(tuple[int, int], (2, 1))
    assert not is_typed(tuple[int, ...], ("2", 3))
    assert not is_typed(dict[int, int], {1: "2"})
    assert not is_typed(int, "1")


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


@pytest.mark.parametrize(
    ("limit", "location"),
    [
        ("cluster.ebs_gib", "Volume.size_gib"),
        ("cluster.restricted_lustre_gib", "RestrictedLustre.capacity_gib"),
        ("cluster.restricted_lustre_throughput", "RestrictedLustre.throughput"),
        ("cluster.instances_per_group", "InstanceGroup.count"),
        ("cluster.instance_types_per_group", "InstanceGroup.instance_types"),
        ("cluster.tiered_memory_percent", "TieredCheckpoints.memory_percent"),
        ("compute_quota.team_length", "Governance.teams"),
        ("compute_quota.borrow_percent", "Team.borrow_limit_percent"),
        ("scheduler.priority_name_length", "Governance.priorities"),
    ],
)
def test_what_a_type_allows_is_what_the_service_does(limit: str, location: str):
    """Types say their bounds as literals, so that importing them reads no table; here both are one."""
    kind, field = location.split(".")
    schema = json.loads((Path(__file__).parents[3] / "docs/environment.schema.json").read_text())["$defs"]
    actual = schema[kind]["properties"][field]
    least, most = actual.get("minimum", 0), actual.get("maximum", actual.get("maxItems"))
    if "propertyNames" in actual:
        most = actual["propertyNames"]["maxLength"]
    allowed = LIMITS[limit][1]
    lowest, highest = allowed if isinstance(allowed, tuple) else (least, allowed)
    assert most == highest
    assert least == lowest or limit == "cluster.tiered_memory_percent"  # none is said by leaving the part out


def test_an_elastic_job_may_have_every_size_from_least_to_most() -> None:
    assert KubeflowElastic(min_replicas=2, max_replicas=5).sizes == (2, 3, 4, 5)
    assert KubeflowElastic(min_replicas=3, max_replicas=3).sizes == (3,)


def test_a_group_takes_sixteen_subnets_of_its_own() -> None:
    """SageMaker's VpcConfig takes no more."""
    group = {"instance_type": "ml.m5.4xlarge", "count": 1}
    subnets = [f"subnet-{number:017x}" for number in range(17)]
    assert InstanceGroup.model_validate(group | {"subnet_ids": subnets[:16]}).subnet_ids == tuple(subnets[:16])
    with pytest.raises(ValidationError, match="at most 16"):
        InstanceGroup.model_validate(group | {"subnet_ids": subnets})


def test_a_project_promotes_in_the_order_of_its_file_and_the_rest_by_name(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"environments/{name}.yaml").write_text("{}\n")
    (tmp_path / "podwright.yaml").write_text("environments: [c, b]\n")
    assert Project.at(tmp_path).names == ["c", "b", "a", "d"]
