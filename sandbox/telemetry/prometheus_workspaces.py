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
from ..protocol.json_objects import JsonObject, picked, without
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
        return next((value[identifier] for value in self.regions.values() if identifier in value), None)

    def _shown(self, workspace: Workspace) -> JsonObject:
        return {
            "workspaceId": workspace.identifier,
            "arn": workspace.arn,
            "alias": workspace.alias,
            **({"kmsKeyArn": workspace.kms_key} if workspace.kms_key else {}),
            "status": _ACTIVE,
            "tags": workspace.tags,
            "createdAt": workspace.created,
        }

    def create_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateWorkspace."""
        identifier = f"ws-{uuid.uuid4()}"
        arn = f"arn:aws:aps:{region}:{self.account}:workspace/{identifier}"
        workspace = Workspace(
            identifier, arn, specified.get("alias", ""), specified.get("kmsKeyArn"), specified.get("tags", {}), now()
        )
        self.regions[region][identifier] = workspace
        return picked(self._shown(workspace), "workspaceId", "arn", "status", "tags", "kmsKeyArn")

    def describe_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeWorkspace."""
        workspace = self.find(region, specified["workspaceId"])
        endpoint = f"{self.endpoint}/workspaces/{workspace.identifier}/"
        return {"workspace": self._shown(workspace) | {"prometheusEndpoint": endpoint}}

    def list_workspaces(self, region: str, specified: JsonObject) -> JsonObject:
        """ListWorkspaces, on one page."""
        requested = specified.get("alias", "")
        return {
            "workspaces": [
                self._shown(workspace)
                for workspace in self.regions[region].values()
                if workspace.alias.startswith(requested)
            ]
        }

    def update_workspace_alias(self, region: str, specified: JsonObject) -> JsonObject:
        """UpdateWorkspaceAlias."""
        self.find(region, specified["workspaceId"]).alias = specified.get("alias", "")
        return {}

    def delete_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteWorkspace."""
        self.find(region, specified["workspaceId"])
        del self.regions[region][specified["workspaceId"]]
        return {}

    def update_workspace_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """UpdateWorkspaceConfiguration."""
        workspace = self.find(region, specified["workspaceId"])
        workspace.configuration |= without(specified, "workspaceId", "clientToken")
        return {"status": _ACTIVE}

    def describe_workspace_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeWorkspaceConfiguration."""
        workspace = self.find(region, specified["workspaceId"])
        return {"workspaceConfiguration": {**workspace.configuration, "status": _ACTIVE}}

    def create_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateLoggingConfiguration; the update is the same."""
        return self._put(region, specified, "logging", "logGroupArn")

    update_logging_configuration = create_logging_configuration

    def describe_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeLoggingConfiguration."""
        return {"loggingConfiguration": self._part(region, specified, "logging")}

    def delete_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteLoggingConfiguration."""
        self._part(region, specified, "logging").clear()
        return {}

    def create_query_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateQueryLoggingConfiguration; the update is the same."""
        return self._put(region, specified, "query_logging", "destinations")

    update_query_logging_configuration = create_query_logging_configuration

    def describe_query_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeQueryLoggingConfiguration."""
        return {"queryLoggingConfiguration": self._part(region, specified, "query_logging")}

    def delete_query_logging_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteQueryLoggingConfiguration."""
        self._part(region, specified, "query_logging").clear()
        return {}

    def _put(self, region: str, specified: JsonObject, name: str, setting: str) -> JsonObject:
        """Set where a workspace logs; when that was first set stays."""
        workspace = self.find(region, specified["workspaceId"])
        part = {
            "createdAt": now(),
            **getattr(workspace, name),
            "status": _ACTIVE,
            "workspace": workspace.identifier,
            setting: specified[setting],
            "modifiedAt": now(),
        }
        setattr(workspace, name, part)
        return {"status": _ACTIVE}

    def _part(self, region: str, specified: JsonObject, name: str) -> JsonObject:
        part = getattr(self.find(region, specified["workspaceId"]), name)
        if not part:
            raise refuse("ResourceNotFoundException", f"Workspace {specified['workspaceId']} has no {name} (sandbox)")
        return part

    def create_alert_manager_definition(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateAlertManagerDefinition."""
        if self.find(region, specified["workspaceId"]).alert_manager:
            raise refuse("ConflictException", "An alert manager definition already exists (sandbox)")
        return self.put_alert_manager_definition(region, specified)

    def put_alert_manager_definition(self, region: str, specified: JsonObject) -> JsonObject:
        """PutAlertManagerDefinition: the YAML has to hold `alertmanager_config` with a route and receivers."""
        workspace = self.find(region, specified["workspaceId"])
        outer = _yaml(specified["data"])
        inner = _yaml(outer.get("alertmanager_config") or "")
        receivers = {item.get("name") for item in inner.get("receivers", [])}
        if "route" not in inner or inner["route"].get("receiver") not in receivers:
            raise refuse("ValidationException", "alertmanager_config needs a route to one of its receivers (sandbox)")
        workspace.alert_manager = {
            "createdAt": now(),
            **workspace.alert_manager,
            "status": _ACTIVE,
            "data": specified["data"],
            "modifiedAt": now(),
        }
        return {"status": _ACTIVE}

    def describe_alert_manager_definition(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeAlertManagerDefinition."""
        return {"alertManagerDefinition": self._part(region, specified, "alert_manager")}

    def delete_alert_manager_definition(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteAlertManagerDefinition."""
        self._part(region, specified, "alert_manager").clear()
        return {}

    def create_rule_groups_namespace(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateRuleGroupsNamespace."""
        if specified["name"] in self.find(region, specified["workspaceId"]).rules:
            raise refuse("ConflictException", f"Rule groups namespace {specified['name']} already exists (sandbox)")
        return self._put_rules(region, specified)

    def put_rule_groups_namespace(self, region: str, specified: JsonObject) -> JsonObject:
        """PutRuleGroupsNamespace, of one that exists."""
        self._rules(region, specified)
        return self._put_rules(region, specified)

    def _put_rules(self, region: str, specified: JsonObject) -> JsonObject:
        workspace, name = self.find(region, specified["workspaceId"]), specified["name"]
        _check_rules(specified["data"])
        shown = {
            "name": name,
            "arn": f"arn:aws:aps:{region}:{self.account}:rulegroupsnamespace/{workspace.identifier}/{name}",
            "status": _ACTIVE,
            "tags": specified.get("tags", {}),
        }
        times = {"createdAt": now(), "modifiedAt": now()}
        workspace.rules[name] = {**times, **workspace.rules.get(name, {}), **shown, "data": specified["data"]}
        return shown

    def describe_rule_groups_namespace(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeRuleGroupsNamespace."""
        return {"ruleGroupsNamespace": self._rules(region, specified)}

    def delete_rule_groups_namespace(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteRuleGroupsNamespace."""
        self._rules(region, specified)
        del self.find(region, specified["workspaceId"]).rules[specified["name"]]
        return {}

    def list_rule_groups_namespaces(self, region: str, specified: JsonObject) -> JsonObject:
        """ListRuleGroupsNamespaces, on one page."""
        rules, requested = self.find(region, specified["workspaceId"]).rules, specified.get("name", "")
        return {
            "ruleGroupsNamespaces": [
                without(item, "data") for name, item in rules.items() if name.startswith(requested)
            ]
        }

    def _rules(self, region: str, specified: JsonObject) -> JsonObject:
        rules = self.find(region, specified["workspaceId"]).rules
        if specified["name"] not in rules:
            raise refuse("ResourceNotFoundException", f"Rule groups namespace not found: {specified['name']} (sandbox)")
        return rules[specified["name"]]


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
    # Only Prometheus' own checker knows what it understands; without it rules are taken unread.
    promtool = shutil.which("promtool")
    if promtool is None:
        return
    with tempfile.NamedTemporaryFile(suffix=".yml") as file:
        file.write(data)
        file.flush()
        result = subprocess.run([promtool, "check", "rules", file.name], capture_output=True, text=True, check=False)
    if result.returncode:
        raise refuse("ValidationException", f"The rules are not valid: {result.stderr.strip()[-1000:]} (sandbox)")
