"""Settings of teams and groups, and the objects of Kueue that a deployment makes of them."""

from typing import Any

from podwright.cdk8s_charts.kueue import kueue_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.policy import quota_policy

GROUPS = {
    "H200": {"instance_type": "ml.p5en.48xlarge", "count": 16, "zone": "usw2-az2"},
    "gb200": {"instance_type": "ml.p6e-gb200.36xlarge", "count": 18, "zone": "usw2-az2"},
    "l40s": {"instance_type": "ml.g6e.48xlarge", "count": 4, "zones": ["usw2-az2", "usw2-az3"]},
    "cpu": {"instance_type": "ml.m5.4xlarge", "count": 4, "taints": [{"key": "batch", "effect": "NoSchedule"}]},
}
TEAMS = {
    "research": {"quota": {"H200": 10, "cpu": 2}, "weight": 60, "borrow_limit_percent": 100, "department": "science"},
    "product": {"quota": {"H200": 4, "l40s": {"accelerators": 8}}, "share": "lend", "preempt": "never"},
    "secret": {"quota": {"H200": {"accelerators": 8}}, "share": "dont_lend"},
    "guests": {},
}
MANAGER = {
    "role": "manager",
    "workers": {
        "oregon": {"secret": "to-oregon", "groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 16}}},
        "ohio": {"secret": "to-ohio", "groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 8}}},
    },
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"fair_share": False, "idle_resource_sharing": False, "departments": {}, "teams": {"a": {}, "default": {}}},
    {"kueue": {"multikueue": {"role": "worker"}}},
    {
        "kueue": {
            "queueing": "strict",
            "flavor_choice": {"when_can_borrow": "try_next_flavor", "preference": "preemption_over_borrowing"},
        }
    },
]
"""Of `governance`, beside those."""


def queue_objects(
    teams: dict[str, Any] | None = None,
    groups: dict[str, Any] | None = None,
    types: dict[str, Any] | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """What a deployment makes; `types` changes the catalog, and `more` is of `governance`."""
    departments = {"science": {"weight": 70}}
    provided = {"engine": "kueue", "priorities": {"training": 70, "inference": 100}, "departments": departments}
    governance = Governance.model_validate({**provided, "teams": TEAMS if teams is None else teams, **more})
    actual = {name: InstanceGroup.model_validate(group) for name, group in (groups or GROUPS).items()}
    rows = catalog(types or {})
    return kueue_objects(quota_policy(governance, actual, rows), governance.kueue, actual, rows)
