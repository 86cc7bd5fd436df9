"""Random specifications of teams, for what has to hold for any of them."""

from hypothesis import strategies as st

from podwright.config.settings.groups import InstanceGroup

GROUPS = {
    "h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=8),
    "first": InstanceGroup(instance_type="ml.p5.48xlarge", count=2),
    "second": InstanceGroup(instance_type="ml.p5.48xlarge", count=3),
    "cut": InstanceGroup(instance_type="ml.p5e.48xlarge", count=2, labels={"nvidia.com/mig.config": "all-2g.35gb"}),
    "neuron": InstanceGroup(instance_type="ml.trn1.32xlarge", count=4),
    "cpu": InstanceGroup(instance_type="ml.c5.18xlarge", count=5),
}

_PARTS = st.fixed_dictionaries(
    {}, optional={"vcpu": st.integers(0, 4000).map(lambda number: number / 4), "memory_gib": st.integers(0, 3000)}
)
_INSTANCES = st.integers(0, 6)
_ACCELERATORS = st.builds(lambda parts, count: parts | {"accelerators": count}, _PARTS, st.integers(0, 50))
_PLAIN = st.one_of(_INSTANCES, _PARTS.filter(bool))
_ACCELERATED = st.one_of(_INSTANCES, _ACCELERATORS, _PARTS.filter(bool))
_CUT = st.one_of(_INSTANCES, st.builds(lambda count: {"mig": {"mig-2g.35gb": count}}, st.integers(0, 50)))

AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "h200": _ACCELERATED,
        "first": _ACCELERATED,
        "ml.p5.48xlarge": _ACCELERATED,
        "cut": _CUT,
        "neuron": _ACCELERATED,
        "ml.trn1.32xlarge": _ACCELERATED,
        "cpu": _PLAIN,
    },
)
"""Quotas or limits of borrowing, of groups and of types, one of which two groups hold."""

TEAMS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries(
        {
            "quota": AMOUNTS,
            "share": st.sampled_from(["lend_and_borrow", "lend", "dont_lend"]),
            "borrow_limit_percent": st.integers(1, 500),
            "borrow_limits": st.one_of(st.just({}), AMOUNTS),
            "weight": st.integers(1, 100),
            "preempt": st.sampled_from(["lower_priority", "never"]),
        }
    ),
    min_size=1,
)
"""Teams as a file has them."""
