"""A training plan that instance groups may draw on."""

from dataclasses import dataclass

import aws_cdk as cdk

from ....config.settings.plans import TrainingPlan
from ...common.arguments import checked


@dataclass(frozen=True)
class TrainingPlanReference:
    """A training plan by its ARN, and what is known of it."""

    training_plan_arn: str
    """ARN."""
    settings: TrainingPlan
    """Its zone, and whatever else is known: type, count, dates."""

    @classmethod
    @checked
    def from_training_plan_attributes(
        cls, *, training_plan_arn: str, zone: str, instance_type: str | None = None, count: int | None = None
    ) -> "TrainingPlanReference":
        """A plan that exists. What is known of it is held against the groups that name it."""
        known = None if cdk.Token.is_unresolved(training_plan_arn) else training_plan_arn
        settings = TrainingPlan(arn=known, zone=zone, instance_type=instance_type, count=count)
        return cls(training_plan_arn, settings)
