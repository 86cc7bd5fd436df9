"""Mail about promotions: what failed and what to do then, what waits for a person, and drift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ..common.topic import restrict, subscribe


@dataclass(frozen=True, slots=True)
class Notice:
    """What is told about a kind of event."""

    pattern: Mapping[str, Any]
    """What the event holds."""
    paths: Mapping[str, str]
    """JSON paths of values in the event, by name."""
    words: str
    """The message, with the names in angle brackets. It has no quotation marks, since it travels as JSON."""


class PromotionNotices(Construct):
    """A topic with its subscribers, and the rules that write to it.

    Decided for you: messages are encrypted with the pipeline's key and taken over TLS only; nobody but the rules of
    this construct may publish.

    Example:
        failed = Notice({"source": ["aws.codepipeline"]}, {"stage": "$.detail.stage"}, "<stage> failed.")
        people = ["oncall@example.com"]
        PromotionNotices(stack, "Notices", emails=people, notices={"Failed": failed}, key=kms.Key(stack, "Key"))
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        emails: Sequence[str],
        notices: Mapping[str, Notice],
        key: kms.IKey,
    ) -> None:
        """Defines topic and rules.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            emails: Who is told.
            notices: What they are told, by the id of the rule.
            key: Encrypts the messages; its policy is widened to EventBridge.
        """
        super().__init__(scope, construct_id)

        topic = sns.CfnTopic(self, "Topic", kms_master_key_id=key.key_arn)
        subscribe(self, topic.ref, emails)
        # EventBridge User Guide, "Troubleshooting", encrypted topics, 2026-11: the service itself uses the key.
        service = cast(iam.IPrincipal, iam.ServicePrincipal("events.amazonaws.com"))
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="EventBridgeToTopics",
                principals=[service],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],
            )
        )
        rules = [self._rule(name, notice, topic.ref) for name, notice in notices.items()]
        publish = iam.PolicyStatement(
            sid="OwnRules",
            principals=[service],
            actions=["sns:Publish"],
            resources=[topic.ref],
            conditions={"ArnEquals": {"aws:SourceArn": [rule.attr_arn for rule in rules]}},
        )
        restrict(self, "Policy", topic.ref, publish)

        self.topic_arn: str = topic.ref
        """ARN of the topic."""

    def _rule(self, name: str, notice: Notice, topic_arn: str) -> events.CfnRule:
        # A template is text in JSON: each line in quotes is a line of the mail.
        template = "\n".join(f'"{line}"' for line in notice.words.splitlines())
        message = events.CfnRule.InputTransformerProperty(input_paths_map=dict(notice.paths), input_template=template)
        target = events.CfnRule.TargetProperty(id="Topic", arn=topic_arn, input_transformer=message)
        return events.CfnRule(self, name, event_pattern=dict(notice.pattern), state="ENABLED", targets=[target])
