"""What a person reads when a value has the wrong type: one finding for each cause, at its line, with its meaning."""

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.findings import Finding
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source

GOOD = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
storage: {lustre: {efa: true}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


def found(before: str, after: str) -> list[Finding]:
    assert before in GOOD
    with pytest.raises(InvalidFile) as refused:
        environment_from(parse_source(GOOD.replace(before, after), "a.yaml"), "a")
    return refused.value.findings


@pytest.mark.parametrize(
    ("before", "after", "line", "message", "hint"),
    [
        pytest.param(
            '"111122223333"', "12", 1, "account is '12'; allowed: text of the form '^[0-9]{12}$'",
            "account: AWS account id, twelve digits in quotes.", id="pattern",
        ),
        pytest.param(
            "count: 2", "count: two", 6, "instance_groups.system.count is 'two'; allowed: a whole number",
            "count: Target number of instances.", id="number",
        ),
        pytest.param(
            "efa: true", "efa: perhaps", 4, "storage.lustre.efa is 'perhaps'; allowed: true or false",
            "efa: Serve clients over EFA (and GPUDirect Storage). Fixed at creation.", id="boolean",
        ),
        pytest.param(
            "count: 2", "count: 2, labels: []", 6, "instance_groups.system.labels is a list; allowed: a mapping",
            "labels: Kubernetes labels of each node.", id="mapping",
        ),
        pytest.param(
            "count: 2", "count: 2, volumes: {}", 6, "instance_groups.system.volumes is a mapping; allowed: a list",
            "volumes: Further EBS volumes.", id="list",
        ),
        pytest.param(
            "  system:", "  _system:", 6,
            "instance_groups._system is '_system'; allowed: text of the form '^[a-zA-Z0-9](-*[a-zA-Z0-9])*$'",
            "instance_groups: Instance groups by name. Order has no meaning. Default: none, only with "
            "`training_job_queues`; then there are a network and storage for training jobs, and no cluster.",
            id="name of a group",
        ),
        pytest.param(
            "region:", "regoin:", 2, "regoin is not a known setting", "did you mean 'region'?", id="misspelt",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value(before: str, after: str, line: int, message: str, hint: str) -> None:
    first = min(found(before, after), key=lambda finding: finding.id)
    assert first.place is not None
    assert (first.place.line, first.message, first.hint) == (line, message, hint)


def test_what_only_the_defaults_made_is_no_cause() -> None:
    """Without a network the control plane has no zones either; that is not the user's to fix."""
    assert [finding.message for finding in found("network: {zones: [usw2-az1, usw2-az2]}\n", "")][:1] == [
        "network is missing"
    ]
    assert [finding.path for finding in found("usw2-az2", "us-west-2b")] == ["network.zones[1]"]
