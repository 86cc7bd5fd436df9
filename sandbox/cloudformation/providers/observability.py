"""Prometheus and Grafana workspaces, alarms and dashboards of CloudWatch, EventBridge rules, budgets, log filters."""

import json

from ...protocol.json_objects import JsonObject
from .api import Api, call
from .base import HandlerError, Outcome, Provider, Request, unless_gone


class PrometheusWorkspace:
    """AWS::APS::Workspace, with its settings, logs and alert manager, each of which is a call of its own."""

    def create(self, request: Request) -> Outcome:
        """Create the workspace and set it up."""
        made = call(request, "amp", "create_workspace", request.properties)
        self._configure(request, made["workspaceId"])
        return self._outcome(request, made["workspaceId"])

    def update(self, request: Request) -> Outcome:
        """Set what has changed; settings that went fall back, as far as AWS takes them back."""
        identifier = request.attributes["WorkspaceId"]
        if request.properties.get("Alias") != request.previous.get("Alias"):
            request.client("amp").update_workspace_alias(
                workspaceId=identifier, alias=request.properties.get("Alias", "")
            )
        self._configure(request, identifier)
        return self._outcome(request, identifier)

    def delete(self, request: Request) -> None:
        """Delete the workspace with everything in it."""
        request.client("amp").delete_workspace(workspaceId=request.attributes["WorkspaceId"])

    def _outcome(self, request: Request, identifier: str) -> Outcome:
        shown = request.client("amp").describe_workspace(workspaceId=identifier)["workspace"]
        names = {"WorkspaceId": "workspaceId", "Arn": "arn", "PrometheusEndpoint": "prometheusEndpoint"}
        return Outcome(shown["arn"], {name: shown[key] for name, key in names.items()})

    def _configure(self, request: Request, identifier: str) -> None:
        """Set or clear limits and logging of a workspace."""
        amp, properties, before = request.client("amp"), request.properties, request.previous
        if requested := properties.get("WorkspaceConfiguration"):
            values = dict(requested)
            if "LimitsPerLabelSets" in values:
                # The schema has a list of names and values where the API has a map.
                values["LimitsPerLabelSet"] = [
                    {"Limits": item["Limits"], "LabelSet": _labels(item["LabelSet"])}
                    for item in values.pop("LimitsPerLabelSets")
                ]
            call(request, "amp", "update_workspace_configuration", {**values, "workspaceId": identifier})
        for key, name in (
            ("LoggingConfiguration", "logging_configuration"),
            ("QueryLoggingConfiguration", "query_logging_configuration"),
        ):
            if key in properties:
                verb = "update" if key in before else "create"
                call(request, "amp", f"{verb}_{name}", {**properties[key], "workspaceId": identifier})
            elif key in before:
                getattr(amp, f"delete_{name}")(workspaceId=identifier)
        if definition := properties.get("AlertManagerDefinition"):
            verb = "put" if "AlertManagerDefinition" in before else "create"
            getattr(amp, f"{verb}_alert_manager_definition")(workspaceId=identifier, data=definition.encode())
        elif "AlertManagerDefinition" in before:
            amp.delete_alert_manager_definition(workspaceId=identifier)


class RuleGroups:
    """AWS::APS::RuleGroupsNamespace."""

    def create(self, request: Request) -> Outcome:
        """Create the namespace; AWS refuses rules that Prometheus does not understand."""
        arn = request.client("amp").create_rule_groups_namespace(**self._values(request))["arn"]
        return Outcome(arn, {"Arn": arn})

    def update(self, request: Request) -> Outcome:
        """Put the new rules."""
        request.client("amp").put_rule_groups_namespace(**self._values(request))
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the namespace; one whose workspace is gone is gone too."""
        values = self._values(request)
        del values["data"]
        request.client("amp").delete_rule_groups_namespace(**values)

    def _values(self, request: Request) -> JsonObject:
        properties = request.properties
        workspace = properties["Workspace"].rpartition("/")[2]
        return {"workspaceId": workspace, "name": properties["Name"], "data": properties["Data"].encode()}


def _grafana_values(request: Request) -> JsonObject:
    """The API calls most members of a workspace otherwise than CloudFormation does."""
    names = {
        "Name": "workspaceName",
        "Description": "workspaceDescription",
        "RoleArn": "workspaceRoleArn",
        "DataSources": "workspaceDataSources",
        "NotificationDestinations": "workspaceNotificationDestinations",
        "OrganizationalUnits": "workspaceOrganizationalUnits",
    }
    values = {names.get(key, key): value for key, value in request.properties.items()}
    if "PluginAdminEnabled" in values:
        values["configuration"] = json.dumps({"plugins": {"pluginAdminEnabled": values.pop("PluginAdminEnabled")}})
    return values


class GrafanaWorkspace(Api):
    """AWS::Grafana::Workspace."""

    def create(self, request: Request) -> Outcome:
        """Create the workspace, and let people in as its SAML settings say."""
        outcome = super().create(request)
        self._sign_in(request, outcome.physical_id)
        return outcome

    def update(self, request: Request) -> Outcome:
        """Change the workspace; a later version is an upgrade in place."""
        outcome = super().update(request)
        version = request.properties.get("GrafanaVersion")
        if version != request.previous.get("GrafanaVersion"):
            configuration = _grafana_values(request).get("configuration", "{}")
            request.client("grafana").update_workspace_configuration(
                workspaceId=request.physical_id, configuration=configuration, grafanaVersion=version
            )
        self._sign_in(request, request.physical_id)
        return outcome

    def _sign_in(self, request: Request, identifier: str) -> None:
        if saml := request.properties.get("SamlConfiguration"):
            names = {"IdpMetadata": "idpMetadata", "LoginValidityDuration": "loginValidityDuration"}
            values = {names.get(key, key): value for key, value in saml.items()}
            values["idpMetadata"] = {key.lower(): value for key, value in saml["IdpMetadata"].items()}
            authentication = {
                "workspaceId": identifier,
                "authenticationProviders": request.properties["AuthenticationProviders"],
                "samlConfiguration": values,
            }
            call(request, "grafana", "update_workspace_authentication", authentication)


class Budget:
    """AWS::Budgets::Budget. It counts nothing: the sandbox costs nothing."""

    def create(self, request: Request) -> Outcome:
        """Create the budget with those whom it tells."""
        budget = dict(request.properties["Budget"])
        budget.setdefault("BudgetName", request.name(100))
        values = {"AccountId": request.clients.account, "Budget": budget}
        if messages := request.properties.get("NotificationsWithSubscribers"):
            values["NotificationsWithSubscribers"] = messages
        call(request, "budgets", "create_budget", values)
        return Outcome(budget["BudgetName"])

    def update(self, request: Request) -> Outcome:
        """Make it anew under its name."""
        with unless_gone():
            self.delete(request)
        request.properties["Budget"].setdefault("BudgetName", request.physical_id)
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete the budget."""
        request.client("budgets").delete_budget(AccountId=request.clients.account, BudgetName=request.physical_id)


class Alarm:
    """AWS::CloudWatch::Alarm; its state changes only when something puts metrics or sets it."""

    def create(self, request: Request) -> Outcome:
        """Put the alarm."""
        name = request.properties.get("AlarmName") or request.name(255)
        return self._put(request, name)

    def update(self, request: Request) -> Outcome:
        """Put the changed alarm."""
        return self._put(request, request.physical_id)

    def delete(self, request: Request) -> None:
        """Delete the alarm; one that is gone is a success for CloudWatch too."""
        request.client("cloudwatch").delete_alarms(AlarmNames=[request.physical_id])

    def _put(self, request: Request, name: str) -> Outcome:
        call(request, "cloudwatch", "put_metric_alarm", {**request.properties, "AlarmName": name})
        return Outcome(name, {"Arn": request.arn("cloudwatch", f"alarm:{name}")})


class Dashboard:
    """AWS::CloudWatch::Dashboard."""

    def create(self, request: Request) -> Outcome:
        """Put the dashboard. CloudWatch refuses a body that is no JSON."""
        name = request.physical_id or request.properties.get("DashboardName") or request.name(255)
        body = request.properties["DashboardBody"]
        try:
            json.loads(body)
        except ValueError as error:
            raise HandlerError.saying(f"The dashboard body is invalid: {error} (sandbox)") from None
        request.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=body)
        return Outcome(name)

    def update(self, request: Request) -> Outcome:
        """Put the changed dashboard."""
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete the dashboard."""
        request.client("cloudwatch").delete_dashboards(DashboardNames=[request.physical_id])


class Rule:
    """AWS::Events::Rule with its targets."""

    def create(self, request: Request) -> Outcome:
        """Put the rule and its targets."""
        name = request.properties.get("Name") or request.name(64)
        arn = call(request, "events", "put_rule", {**request.properties, "Name": name})["RuleArn"]
        if targets := request.properties.get("Targets"):
            call(request, "events", "put_targets", {"Rule": name, "Targets": targets, **_bus(request)})
        return Outcome(name, {"Arn": arn})

    def update(self, request: Request) -> Outcome:
        """Put the changed rule; targets that are not in it any more go."""
        request.properties.setdefault("Name", request.physical_id)
        retained = {target["Id"] for target in request.properties.get("Targets", [])}
        deleted = [target["Id"] for target in request.previous.get("Targets", []) if target["Id"] not in retained]
        if deleted:
            request.client("events").remove_targets(Rule=request.physical_id, Ids=deleted, **_bus(request))
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete the targets, and then the rule."""
        events, targets = request.client("events"), request.properties.get("Targets", [])
        if targets:
            names = [target["Id"] for target in targets]
            events.remove_targets(Rule=request.physical_id, Ids=names, **_bus(request))
        events.delete_rule(Name=request.physical_id, **_bus(request))


def _bus(request: Request) -> dict[str, str]:
    bus = request.properties.get("EventBusName")
    return {"EventBusName": bus} if bus else {}


OBSERVABILITY: dict[str, Provider] = {
    "AWS::APS::Workspace": PrometheusWorkspace(),
    "AWS::APS::RuleGroupsNamespace": RuleGroups(),
    "AWS::Grafana::Workspace": GrafanaWorkspace(
        "grafana",
        "create_workspace",
        "workspace.id",
        {"workspaceId": ""},
        "delete_workspace",
        ("update_workspace",),
        attributes={
            "Id": "workspace.id",
            "Endpoint": "workspace.endpoint",
            "GrafanaVersion": "workspace.grafanaVersion",
            "Status": "workspace.status",
        },
        translate=_grafana_values,
    ),
    "AWS::Budgets::Budget": Budget(),
    "AWS::CloudWatch::Alarm": Alarm(),
    "AWS::CloudWatch::Dashboard": Dashboard(),
    "AWS::Events::Rule": Rule(),
    "AWS::Logs::MetricFilter": Api(
        "logs",
        "put_metric_filter",
        "FilterName",
        {"filterName": "", "logGroupName": "LogGroupName"},
        "delete_metric_filter",
        ("put_metric_filter",),
        name="FilterName",
    ),
    "AWS::Logs::SubscriptionFilter": Api(
        "logs",
        "put_subscription_filter",
        "FilterName",
        {"filterName": "", "logGroupName": "LogGroupName"},
        "delete_subscription_filter",
        ("put_subscription_filter",),
        name="FilterName",
    ),
    "AWS::Logs::ResourcePolicy": Api(
        "logs",
        "put_resource_policy",
        "PolicyName",
        {"policyName": ""},
        "delete_resource_policy",
        ("put_resource_policy",),
        name="PolicyName",
    ),
}


def _labels(label_set: list[dict[str, str]]) -> dict[str, str]:
    return {label["Name"]: label["Value"] for label in label_set}
