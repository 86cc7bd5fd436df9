"""What the workspace works out of metrics by itself, what it alerts of, and how that reaches people."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_aps as aps
from constructs import Construct

from ...config.settings.observability import Observability
from ...planning.monitoring.alerts import Watched, alert_groups
from ...planning.monitoring.alerts.manager import as_yaml, definition
from ...planning.monitoring.recordings import recording_groups
from ...planning.rules import check
from .prometheus_workspace import PrometheusWorkspace


class PrometheusRules(Construct):
    """Recording rules, alert rules and the alert manager of a workspace.

    Decided for you: rules speak of one cluster, so several environments may share a workspace. The alert manager
    belongs to the workspace, so only one of the environment's own gets a definition; in an existing one it stays its
    owner's, who finds ours in `podwright alerts --alert-manager`.

    Example:
        from podwright.config.settings.observability import Observability
        from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
        settings = Observability()
        home = PrometheusWorkspace(stack, "Metrics", settings=settings, name="prod", key=key, protection="retain")
        watched = Watched("training-prod", "eks", instances=18)
        topics = {"mail": "arn:aws:sns:us-west-2:111122223333:alerts"}
        PrometheusRules(stack, "Rules", settings=settings, workspace=home, name="prod", watched=watched, topics=topics)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Observability,
        workspace: PrometheusWorkspace,
        name: str,
        watched: Watched,
        topics: Mapping[str, str],
    ) -> None:
        """Defines rules, and the alert manager where it is ours.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Thresholds, targets and what is silenced.
            workspace: Where the metrics are.
            name: Name of the environment.
            watched: The cluster.
            topics: ARN of the topic for `mail`, and of that for `chat` where there is one.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        groups = {
            "recordings": recording_groups(watched.cluster, settings.scrape_seconds, watched.budgets),
            "alerts": alert_groups(settings, watched),
        }
        for kind, content in groups.items():
            aps.CfnRuleGroupsNamespace(
                self,
                kind.capitalize(),
                name=f"podwright-{name}-{kind}",
                workspace=workspace.arn,
                data=as_yaml({"groups": content}),
            )
        if workspace.resource:
            region = cdk.Stack.of(self).region
            workspace.resource.alert_manager_definition = definition(dict(topics), region)
