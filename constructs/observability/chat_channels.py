"""The channels of Slack and Microsoft Teams that alerts go to."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.settings.observability import Chat


class ChatChannels(Construct):
    """Lets the chat service, Amazon Q Developer in chat applications, post what comes over a topic.

    Decided for you: it posts and does nothing else. Its role has no permission, and the guardrail denies all that
    somebody may add to it later; without one the service would take AdministratorAccess for the limit. Workspace or
    tenant has to be authorized in the service's console once, which no API does.

    Example:
        from podwright.config.settings.observability import Chat, SlackChannel
        chat = Chat(slack=SlackChannel(workspace="T07EA123LEP", channel="C0123456789"))
        ChatChannels(stack, "Chat", settings=chat, name="prod", topic_arn="arn:aws:sns:us-west-2:111122223333:alerts")
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Chat, name: str, topic_arn: str) -> None:
        """Defines role and channels.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The channels.
            name: Name of the environment. The service wants names that are the account's only ones.
            topic_arn: What is posted.
        """
        super().__init__(scope, construct_id)
        service = cast(iam.IPrincipal, iam.ServicePrincipal("chatbot.amazonaws.com"))
        role = iam.Role(self, "Role", assumed_by=service, description="Posts alerts in chat, and may do nothing else")
        deny = f"arn:{cdk.Aws.PARTITION}:iam::aws:policy/AWSDenyAll"
        if settings.slack:
            chatbot.CfnSlackChannelConfiguration(
                self,
                "Slack",
                configuration_name=f"podwright-{name}",
                iam_role_arn=role.role_arn,
                slack_workspace_id=settings.slack.workspace,
                slack_channel_id=settings.slack.channel,
                guardrail_policies=[deny],
                sns_topic_arns=[topic_arn],
                logging_level="ERROR",
            )
        if settings.teams:
            chatbot.CfnMicrosoftTeamsChannelConfiguration(
                self,
                "Teams",
                configuration_name=f"podwright-{name}-teams",
                iam_role_arn=role.role_arn,
                team_id=settings.teams.team,
                teams_channel_id=settings.teams.channel,
                teams_tenant_id=settings.teams.tenant,
                guardrail_policies=[deny],
                sns_topic_arns=[topic_arn],
                logging_level="ERROR",
            )
