"""Training plans of other accounts, as the sandbox is told of them."""

from typing import Any

import pytest

from podwright.config.settings.environment import Environment
from podwright.operations.aws.sandbox_plans import existing_plans

ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/elsewhere"
START, END = "2027-01-04T11:30Z", "2027-02-01T11:30Z"


def environment(plan: dict[str, Any], **group: Any) -> Environment:
    made = {"instance_type": "ml.p5en.48xlarge", "count": 4, "zone": "usw2-az2", "capacity": {"training_plan": "plan"}}
    return Environment.model_validate(
        {
            "name": "prod",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"zones": ["usw2-az1", "usw2-az2"]},
            "training_plans": {"plan": {"zone": "usw2-az2", **plan}},
            "instance_groups": {"one": made, "two": {**made, "count": 2, **group}},
        }
    )


@pytest.mark.parametrize(
    ("plan", "messages"),
    [
        ({"arn": ARN}, {"instance_type": "ml.p5en.48xlarge", "parts": [("usw2-az2", 6, None)]}),
        (
            {"arn": ARN, "instance_type": "ml.p5e.48xlarge", "count": 16, "start": START, "end": END},
            {"instance_type": "ml.p5e.48xlarge", "parts": [("usw2-az2", 16, "2027-01-04T11:30:00+00:00")]},
        ),
        (
            {"arn": ARN, "windows": [{"start": START, "end": END, "count": 3, "zone": "usw2-az1"}]},
            {"parts": [("usw2-az1", 3, "2027-01-04T11:30:00+00:00")]},
        ),
        (
            {"arn": ARN, "ultraserver_type": "ml.u-p6e-gb200x72", "ultraserver_count": 2, "spares_per_ultraserver": 2},
            {"ultraserver_type": "ml.u-p6e-gb200x72", "spares": 2, "parts": [("usw2-az2", 36, None)]},
        ),
    ],
)
def test_what_the_file_leaves_out_is_as_the_groups_need_it(plan: dict[str, Any], messages: dict[str, Any]) -> None:
    [actual] = existing_plans(environment(plan))
    actual["parts"] = [(part["zone"], part["count"], part["start"]) for part in actual["parts"]]
    assert actual["arn"] == ARN
    assert {key: actual[key] for key in messages} == messages


@pytest.mark.parametrize("arn", [None, ARN.replace("111122223333", "123456789012")])
def test_plans_of_the_sandbox_itself_are_bought_there(arn: str | None) -> None:
    assert existing_plans(environment({"arn": arn} if arn else {"days": 7, "start_after": START})) == []
