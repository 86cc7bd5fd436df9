"""The budget of an environment: what it counts, and whom it tells."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from podwright.constructs.observability.budget import Budget

MAIL, CHAT = (f"arn:aws:sns:us-west-2:111122223333:{name}" for name in ("mail", "chat"))


def budget(stack: cdk.Stack, **settings: Any) -> dict[str, Any]:
    provided: dict[str, Any] = {"topics": {"mail": MAIL}} | settings
    Budget(stack, "Budget", environment="prod", usd_per_month=400000, **provided)
    (values,) = Template.from_stack(stack).find_resources("AWS::Budgets::Budget").values()
    return values["Properties"]


def test_it_counts_what_carries_the_environments_tag(stack: cdk.Stack) -> None:
    actual = budget(stack, tags={"cost-center": "ai"})
    assert actual["Budget"]["BudgetLimit"] == {"Amount": 400000, "Unit": "USD"}
    assert actual["Budget"]["CostFilters"] == {"TagKeyValue": ["user:podwright:environment$prod"]}
    assert "BudgetName" not in actual["Budget"], "a changed list of addresses replaces a budget, which a name prevents"
    kinds = actual["Budget"]["CostTypes"]
    assert (kinds["IncludeCredit"], kinds["IncludeRefund"], kinds["IncludeUpfront"]) == (False, False, True)
    assert {tag["Key"]: tag["Value"] for tag in actual["ResourceTags"]} == {
        "podwright:environment": "prod",
        "cost-center": "ai",
    }


def test_it_tells_one_topic_at_four_marks(stack: cdk.Stack) -> None:
    messages = budget(stack, emails=["a@example.com"])["NotificationsWithSubscribers"]
    marks = [(item["Notification"]["NotificationType"], item["Notification"]["Threshold"]) for item in messages]
    assert marks == [("ACTUAL", 50), ("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)]
    only = [{"SubscriptionType": "SNS", "Address": MAIL}]
    assert all(item["Subscribers"] == only for item in messages), "the address has subscribed to that topic"


def test_beside_a_chat_addresses_hear_by_themselves(stack: cdk.Stack) -> None:
    messages = budget(stack, topics={"mail": MAIL, "chat": CHAT}, emails=["a@example.com"])[
        "NotificationsWithSubscribers"
    ]
    assert messages[0]["Subscribers"] == [
        {"SubscriptionType": "SNS", "Address": CHAT},
        {"SubscriptionType": "EMAIL", "Address": "a@example.com"},
    ]


def test_more_addresses_than_aws_takes(stack: cdk.Stack) -> None:
    with pytest.raises(ValueError, match="10 addresses at most, and these are 11"):
        budget(stack, topics={"mail": MAIL, "chat": CHAT}, emails=[f"{number}@example.com" for number in range(11)])
