"""The rules on template limits guess before anything is synthesized; here the guesses meet the templates."""

import json
from typing import Any

import pytest

from podwright.planning.rules.environment.template import cluster_bytes, storage_resources
from rule_pages import loaded
from synthesis import synthesize

KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
LABELLED = {
    "instance_type": "ml.m5.large",
    "count": 1,
    "zone": "usw2-az2",
    "labels": {f"{'p' * 120}.example.com/{'n' * 60}{number}": "v" * 63 for number in range(50)},
}
EVERYTHING = {
    "instance_type": "ml.p5en.48xlarge",
    "count": 4,
    "zone": "usw2-az2",
    "threads_per_core": 2,
    "volumes": [{"size_gib": 500}],
    "deep_health_checks": ["stress", "connectivity"],
    "min_count": 2,
    "network_interface": "efa",
    "labels": {"team": "research"},
    "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    "root_kms_key": KEY,
    "mount_lustre": True,
    "patching": {"strategy": "when_idle", "batch": "1", "rollback_batch": "1", "rollback_alarms": ["one", "two"]},
}


@pytest.mark.parametrize("group", [LABELLED, EVERYTHING], ids=["many labels", "every setting"])
def test_bytes_of_the_cluster_template(group: dict[str, Any]) -> None:
    environment = loaded(
        json.dumps({"instance_groups": {f"group-{number}": group for number in range(20)}})
    ).environment
    synthesis = synthesize(environment)
    (file,) = synthesis.directory.glob("*cluster*.template.json")
    assert 0.5 * cluster_bytes(environment) < file.stat().st_size <= cluster_bytes(environment)


def test_resources_of_the_storage_stack() -> None:
    more = {f"fs-{number}": {"mount": f"/fs-{number}", "zone": "usw2-az2"} for number in range(10)}
    main = {
        "backups": None,
        "repositories": [{"path": f"/d{number}", "s3": f"s3://acme-{number}"} for number in range(8)],
    }
    piece = {"storage": {"lustre": main, "additional_lustre": more, "home": {"openzfs": {}}}}
    environment = loaded(json.dumps(piece)).environment
    actual = len(synthesize(environment).templates["storage"]["Resources"])
    assert 0.8 * storage_resources(environment) < actual <= storage_resources(environment)
