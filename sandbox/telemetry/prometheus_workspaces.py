"""Amazon Managed Service for Prometheus: workspaces with their settings, rules and alert manager.

Rules are checked as AWS checks them, by Prometheus's own `promtool` where it is installed.
Source: botocore 1.44.5, service model of amp.
"""

import shutil
import subprocess
import tempfile
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse

_ACTIVE = {"statusCode": "ACTIVE"}
# Source: Amazon Managed Service for Prometheus User Guide, "Ingest Prometheus metrics": 150 days unless configured.
_RETENTION_DAYS = 150


@dataclass
class Workspace:
    """A workspace: what was asked for, and the parts that are set by calls of their own."""

    identifier: str
    arn: str
    alias: str
    kms_key: str | None
    tags: dict[str, str]
    created: datetime
    configuration: JsonObject = field(default_factory=lambda: {"retentionPeriodInDays": _RETENTION_DAYS})
    logging: JsonObject = field(default_factory=dict)
    query_logging: JsonObject = field(default_factory=dict)
    alert_manager: JsonObject = field(default_factory=dict)
    rules: dict[str, JsonObject] = field(default_factory=dict)


class PrometheusWorkspaces:
    """The workspaces of an account, of all regions. `endpoint` is where their query API answers."""

    def __init__(self, endpoint: str, account: str) -> None:
        self.endpoint, self.account = endpoint, account
        self.regions: dict[str, dict[str, Workspace]] = defaultdict(dict)

    def find(self, region: str, identifier: str) -> Workspace:
        """A workspace; raises ResourceNotFoundException."""
        if identifier not in self.regions[region]:
            raise refuse("ResourceNotFoundException", f"Workspace not found: {identifier} (sandbox)")
        return self.regions[region][identifier]

    def anywhere(self, identifier: str) -> Workspace | None:
        """A workspace by its id alone."""
        return next((found[identifier] for found in self.regions.values() if identifier in found), None)

    def _shown(self, workspace: Workspace) -> JsonObject:
        return {
            "workspaceId": workspace.identifier,
            "arn": workspace.arn,
            "alias": workspace.alias,
            "kmsKeyArn": workspace.kms_key,
            "status": _ACTIVE,
            "tags": workspace.tags,
            "createdAt": workspace.created,
        }

    def create_workspace(self, region: str, given: JsonObject) -> JsonObject:
        """CreateWorkspace."""
        identifier = f"ws-{uuid.uuid4()}"
        arn = f"arn:aws:aps:{region}:{self.account}:workspace/{identifier}"
        workspace = Workspace(
            identifier, arn, given.get("alias", ""), given.get("kmsKeyArn"), given.get("tags", {}), now()
        )
        self.regions[region][identifier] = workspace
        return {
            key: value
            for key, value in self._shown(workspace).items()
            if key in ("workspaceId", "arn", "status", "tags", "kmsKeyArn") and value is not None
        }

    def describe_workspace(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeWorkspace."""
        workspace = self.find(region, given["workspaceId"])
        endpoint = f"{self.endpoint}/workspaces/{workspace.identifier}/"
        shown = {key: value for key, value in self._shown(workspace).items() if value is not None}
        return {"workspace": shown | {"prometheusEndpoint": endpoint}}

    def list_workspaces(self, region: str, given: JsonObject) -> JsonObject:
        """ListWorkspaces, on one page."""
        wanted = given.get("alias", "")
        return {
            "workspaces": [
                {key: value for key, value in self._shown(workspace).items() if value is not None}
                for workspace in self.regions[region].values()
                if workspace.alias.startswith(wanted)
            ]
        }

    def update_workspace_alias(self, region: str, given: JsonObject) -> JsonObject:
        """UpdateWorkspaceAlias."""
        self.find(region, given["workspaceId"]).alias = given.get("alias", "")
        return {}

    def delete_workspace(self, region: str, given: JsonObject) -> JsonObject:
        """DeleteWorkspace."""
        self.find(region, given["workspaceId"])
        del self.regions[region][given["workspaceId"]]
        return {}

    def update_workspace_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """UpdateWorkspaceConfiguration."""
        workspace = self.find(region, given["workspaceId"])
        workspace.configuration |= {
            key: value for key, value in given.items() if key not in ("workspaceId", "clientToken")
        }
        return {"status": _ACTIVE}

    def describe_workspace_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeWorkspaceConfiguration."""
        workspace = self.find(region, given["workspaceId"])
        return {"workspaceConfiguration": {**workspace.configuration, "status": _ACTIVE}}

    def create_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """CreateLoggingConfiguration; the update is the same."""
        workspace, created = self.find(region, given["workspaceId"]), {"createdAt": now()}
        workspace.logging = {
            **created,
            **workspace.logging,
            "status": _ACTIVE,
            "workspace": workspace.identifier,
            "logGroupArn": given["logGroupArn"],
            "modifiedAt": now(),
        }
        return {"status": _ACTIVE}

    update_logging_configuration = create_logging_configuration

    def describe_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeLoggingConfiguration."""
        return {"loggingConfiguration": self._part(region, given, "logging")}

    def delete_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """DeleteLoggingConfiguration."""
        self._part(region, given, "logging").clear()
        return {}

    def create_query_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """CreateQueryLoggingConfiguration; the update is the same."""
        workspace, created = self.find(region, given["workspaceId"]), {"createdAt": now()}
        workspace.query_logging = {
            **created,
            **workspace.query_logging,
            "status": _ACTIVE,
            "workspace": workspace.identifier,
            "destinations": given["destinations"],
            "modifiedAt": now(),
        }
        return {"status": _ACTIVE}

    update_query_logging_configuration = create_query_logging_configuration

    def describe_query_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeQueryLoggingConfiguration."""
        return {"queryLoggingConfiguration": self._part(region, given, "query_logging")}

    def delete_query_logging_configuration(self, region: str, given: JsonObject) -> JsonObject:
        """DeleteQueryLoggingConfiguration."""
        self._part(region, given, "query_logging").clear()
        return {}

    def _part(self, region: str, given: JsonObject, name: str) -> JsonObject:
        found = getattr(self.find(region, given["workspaceId"]), name)
        if not found:
            raise refuse("ResourceNotFoundException", f"Workspace {given['workspaceId']} has no {name} (sandbox)")
        return found

    def create_alert_manager_definition(self, region: str, given: JsonObject) -> JsonObject:
        """CreateAlertManagerDefinition."""
        if self.find(region, given["workspaceId"]).alert_manager:
            raise refuse("ConflictException", "An alert manager definition already exists (sandbox)")
        return self.put_alert_manager_definition(region, given)

    def put_alert_manager_definition(self, region: str, given: JsonObject) -> JsonObject:
        """PutAlertManagerDefinition: the YAML has to hold `alertmanager_config` with a route and receivers."""
        workspace = self.find(region, given["workspaceId"])
        outer = _yaml(given["data"])
        inner = _yaml(outer.get("alertmanager_config") or "")
        receivers = {item.get("name") for item in inner.get("receivers", [])}
        if "route" not in inner or inner["route"].get("receiver") not in receivers:
            raise refuse("ValidationException", "alertmanager_config needs a route to one of its receivers (sandbox)")
        workspace.alert_manager = {
            "createdAt": now(),
            **workspace.alert_manager,
            "status": _ACTIVE,
            "data": given["data"],
            "modifiedAt": now(),
        }
        return {"status": _ACTIVE}

    def describe_alert_manager_definition(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeAlertManagerDefinition."""
        return {"alertManagerDefinition": self._part(region, given, "alert_manager")}

    def delete_alert_manager_definition(self, region: str, given: JsonObject) -> JsonObject:
        """DeleteAlertManagerDefinition."""
        self._part(region, given, "alert_manager").clear()
        return {}

    def create_rule_groups_namespace(self, region: str, given: JsonObject) -> JsonObject:
        """CreateRuleGroupsNamespace."""
        if given["name"] in self.find(region, given["workspaceId"]).rules:
            raise refuse("ConflictException", f"Rule groups namespace {given['name']} already exists (sandbox)")
        return self._put_rules(region, given)

    def put_rule_groups_namespace(self, region: str, given: JsonObject) -> JsonObject:
        """PutRuleGroupsNamespace, of one that exists."""
        self._rules(region, given)
        return self._put_rules(region, given)

    def _put_rules(self, region: str, given: JsonObject) -> JsonObject:
        workspace, name = self.find(region, given["workspaceId"]), given["name"]
        _check_rules(given["data"])
        shown = {
            "name": name,
            "arn": f"arn:aws:aps:{region}:{self.account}:rulegroupsnamespace/{workspace.identifier}/{name}",
            "status": _ACTIVE,
            "tags": given.get("tags", {}),
        }
        times = {"createdAt": now(), "modifiedAt": now()}
        workspace.rules[name] = {**times, **workspace.rules.get(name, {}), **shown, "data": given["data"]}
        return shown

    def describe_rule_groups_namespace(self, region: str, given: JsonObject) -> JsonObject:
        """DescribeRuleGroupsNamespace."""
        return {"ruleGroupsNamespace": self._rules(region, given)}

    def delete_rule_groups_namespace(self, region: str, given: JsonObject) -> JsonObject:
        """DeleteRuleGroupsNamespace."""
        self._rules(region, given)
        del self.find(region, given["workspaceId"]).rules[given["name"]]
        return {}

    def list_rule_groups_namespaces(self, region: str, given: JsonObject) -> JsonObject:
        """ListRuleGroupsNamespaces, on one page."""
        rules, wanted = self.find(region, given["workspaceId"]).rules, given.get("name", "")
        return {
            "ruleGroupsNamespaces": [
                {key: value for key, value in item.items() if key != "data"}
                for name, item in rules.items()
                if name.startswith(wanted)
            ]
        }

    def _rules(self, region: str, given: JsonObject) -> JsonObject:
        rules = self.find(region, given["workspaceId"]).rules
        if given["name"] not in rules:
            raise refuse("ResourceNotFoundException", f"Rule groups namespace not found: {given['name']} (sandbox)")
        return rules[given["name"]]


def _yaml(text: bytes | str) -> JsonObject:
    try:
        value: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise refuse("ValidationException", f"The definition is no YAML: {error} (sandbox)") from None
    if not isinstance(value, dict):
        raise refuse("ValidationException", "The definition is empty, or no mapping (sandbox)")
    return value


def _check_rules(data: bytes) -> None:
    if not _yaml(data).get("groups"):
        raise refuse("ValidationException", "A rule groups namespace needs groups (sandbox)")
    promtool = shutil.which("promtool")
    if promtool is None:
        return
    with tempfile.NamedTemporaryFile(suffix=".yml") as file:
        file.write(data)
        file.flush()
        result = subprocess.run([promtool, "check", "rules", file.name], capture_output=True, text=True, check=False)
    if result.returncode:
        raise refuse("ValidationException", f"The rules are not valid: {result.stderr.strip()[-1000:]} (sandbox)")
