"""What an environment may cost in a month, and who hears when it costs more."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import aws_budgets as budgets
from constructs import Construct

from ...planning.cost.budget import BUDGET_MARKS, MAX_ADDRESSES
from ...planning.cost.cost_tags import ENVIRONMENT_TAG

_EMAIL: Final = "EMAIL"


class Budget(Construct):
    """A budget of AWS Budgets for all that carries the environment's tag.

    Decided for you: it counts by the month, what was used and not how it was paid (credits and refunds would hide it;
    the price of a training plan falls into the month of its purchase). People hear of it at half, at four fifths, at
    the whole, and when AWS expects the month to end above it. AWS's billing is half a day behind and sometimes a day,
    so this is the slow guard: alerts on the number of instances are the fast one. Nothing is stopped.

    Without a chat channel it tells the topic of alerts alone, to which mail addresses, pagers and functions subscribe.
    With one, the chat's topic and the addresses: AWS lets a budget tell one topic.

    Example:
        Budget(stack, "Budget", environment="prod", usd_per_month=400000, topics={"mail": "arn:aws:sns:us-west-2:1:a"})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        usd_per_month: int,
        topics: Mapping[str, str],
        emails: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Defines the budget.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            environment: Value of the environment's tag.
            usd_per_month: US dollars.
            topics: ARNs of SNS topics that `budgets.amazonaws.com` may publish to: `mail`, and perhaps `chat`.
            emails: Addresses, which hear by themselves where there is a chat: at most ten.
            tags: Further tags of the budget itself.

        Raises:
            ValueError: more addresses than a budget takes.
        """
        super().__init__(scope, construct_id)
        direct = tuple(emails) if "chat" in topics else ()
        if len(direct) > MAX_ADDRESSES:
            raise ValueError(f"a budget tells {MAX_ADDRESSES} addresses at most, and these are {len(direct)}")

        subscriber = budgets.CfnBudget.SubscriberProperty
        messages = [
            subscriber(subscription_type="SNS", address=topics.get("chat", topics["mail"])),
            *(subscriber(subscription_type=_EMAIL, address=address) for address in direct),
        ]
        own = {ENVIRONMENT_TAG: environment, **(tags or {})}
        self.resource = budgets.CfnBudget(
            self,
            "Resource",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=usd_per_month, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{ENVIRONMENT_TAG}${environment}"]},
                cost_types=budgets.CfnBudget.CostTypesProperty(
                    include_credit=False,
                    include_refund=False,
                    include_discount=True,
                    include_other_subscription=True,
                    include_recurring=True,
                    include_subscription=True,
                    include_support=True,
                    include_tax=True,
                    include_upfront=True,
                    use_amortized=False,
                    use_blended=False,
                ),
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=messages,
                )
                for kind, percent in BUDGET_MARKS
            ],
            # CDK's own tagging does not know the name of this property.
            resource_tags=[
                budgets.CfnBudget.ResourceTagProperty(key=key, value=value) for key, value in sorted(own.items())
            ],
        )
        """The budget; CloudFormation names it."""
