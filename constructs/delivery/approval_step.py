"""A person's consent as a step of a CDK pipeline, with a link to what the person consents to."""

from typing import Any

import jsii
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import pipelines


@jsii.implements(pipelines.ICodePipelineActionFactory)
class ApprovalStep(pipelines.Step):
    """Waits, seven days at most, until somebody who may says yes. The CDK's own step of this kind takes no link.

    Example:
        ApprovalStep("approval", link="https://example.com/report", words="See the report.")
    """

    def __init__(self, step_id: str, *, link: str, words: str) -> None:
        """Defines the step.

        Args:
            step_id: Id of the step.
            link: Where the reviewer finds what to look at. May hold CodePipeline's variables.
            words: What the console and the mail say beside it.
        """
        super().__init__(step_id)
        self._link = link
        self._words = words

    def produce_action(
        self, stage: codepipeline.IStage, *, action_name: str, run_order: float, **_: Any
    ) -> pipelines.CodePipelineActionFactoryResult:
        """Called by the CDK when it builds the pipeline."""
        stage.add_action(
            actions.ManualApprovalAction(
                action_name=action_name,
                run_order=run_order,
                external_entity_link=self._link,
                additional_information=self._words,
            )
        )
        return pipelines.CodePipelineActionFactoryResult(run_orders_consumed=1)
