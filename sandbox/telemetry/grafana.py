"""Amazon Managed Grafana: workspaces, service accounts and their tokens. `grafana_http` is what runs in a workspace.

Source: botocore 1.44.5, service model of grafana.
"""

import secrets
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...config.catalog.software_matrix import number
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, picked
from ..protocol.service import refuse

PREFIX = "/podwright/grafana/"
# Source: Amazon Managed Grafana User Guide, "Use service accounts to authenticate with the Grafana HTTP APIs".
_TOKEN_PREFIX = "glsa_"
_LONGEST_TOKEN_SECONDS = 30 * 24 * 3600
# A version that the service offers when none is asked for.
_VERSION = "10.4"


@dataclass
class Token:
    """A service account's token."""

    identifier: str
    name: str
    key: str
    created: datetime
    expires: datetime


@dataclass
class Account:
    """A service account."""

    identifier: str
    name: str
    role: str
    tokens: dict[str, Token] = field(default_factory=dict)


@dataclass
class Workspace:
    """A workspace: its description as the API shows it, its accounts, and what is in its Grafana."""

    description: JsonObject
    accounts: dict[str, Account] = field(default_factory=dict)
    configuration: str = "{}"
    saml: JsonObject = field(default_factory=dict)
    folders: dict[str, JsonObject] = field(default_factory=dict)
    sources: dict[str, JsonObject] = field(default_factory=dict)
    dashboards: dict[str, JsonObject] = field(default_factory=dict)

    def role_of(self, key: str) -> str | None:
        """The role that a token gives; None for one that is unknown or too old."""
        for account in self.accounts.values():
            for token in account.tokens.values():
                if secrets.compare_digest(token.key, key) and now() < token.expires:
                    return account.role
        return None


_SHARED = {
    "accountAccessType": "accountAccessType",
    "permissionType": "permissionType",
    "organizationRoleName": "organizationRoleName",
    "stackSetName": "stackSetName",
    "workspaceDataSources": "dataSources",
    "workspaceDescription": "description",
    "workspaceName": "name",
    "workspaceNotificationDestinations": "notificationDestinations",
    "workspaceOrganizationalUnits": "organizationalUnits",
    "workspaceRoleArn": "workspaceRoleArn",
    "vpcConfiguration": "vpcConfiguration",
    "networkAccessControl": "networkAccessControl",
    "ipAddressType": "ipAddressType",
}


class Grafana:
    """The workspaces of all regions. `address` is where their Grafana answers over HTTPS, without the scheme."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.regions: dict[str, dict[str, Workspace]] = defaultdict(dict)

    def find(self, region: str, identifier: str) -> Workspace:
        """A workspace; raises ResourceNotFoundException."""
        if identifier not in self.regions[region]:
            raise refuse("ResourceNotFoundException", f"Workspace {identifier} does not exist (sandbox)")
        return self.regions[region][identifier]

    def anywhere(self, identifier: str) -> Workspace | None:
        """A workspace by its id alone."""
        return next((value[identifier] for value in self.regions.values() if identifier in value), None)

    def create_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateWorkspace."""
        identifier = f"g-{secrets.token_hex(5)}"
        workspace = Workspace(
            {
                "dataSources": [],
                **_shared(specified),
                "id": identifier,
                "created": now(),
                "modified": now(),
                "endpoint": f"{self.address}{PREFIX}{identifier}",
                "grafanaVersion": specified.get("grafanaVersion", _VERSION),
                "status": "ACTIVE",
                "authentication": {
                    "providers": specified["authenticationProviders"],
                    "samlConfigurationStatus": "NOT_CONFIGURED",
                },
                "tags": specified.get("tags", {}),
            },
            configuration=specified.get("configuration", "{}"),
        )
        self.regions[region][identifier] = workspace
        return {"workspace": workspace.description}

    def describe_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeWorkspace."""
        return {"workspace": self.find(region, specified["workspaceId"]).description}

    def list_workspaces(self, region: str, specified: JsonObject) -> JsonObject:
        """ListWorkspaces, on one page."""
        shown = ("id", "name", "created", "modified", "endpoint", "grafanaVersion", "status", "authentication", "tags")
        return {"workspaces": [picked(workspace.description, *shown) for workspace in self.regions[region].values()]}

    def update_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """UpdateWorkspace."""
        workspace = self.find(region, specified["workspaceId"])
        workspace.description |= _shared(specified) | {"modified": now()}
        for flag, key in (
            ("removeVpcConfiguration", "vpcConfiguration"),
            ("removeNetworkAccessConfiguration", "networkAccessControl"),
        ):
            if specified.get(flag):
                workspace.description.pop(key, None)
        return {"workspace": workspace.description}

    def delete_workspace(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteWorkspace, with all that is in it."""
        workspace = self.find(region, specified["workspaceId"])
        del self.regions[region][specified["workspaceId"]]
        return {"workspace": workspace.description | {"status": "DELETING"}}

    def update_workspace_authentication(self, region: str, specified: JsonObject) -> JsonObject:
        """UpdateWorkspaceAuthentication."""
        workspace = self.find(region, specified["workspaceId"])
        workspace.saml = specified.get("samlConfiguration", {})
        status = "CONFIGURED" if workspace.saml else "NOT_CONFIGURED"
        workspace.description["authentication"] = {
            "providers": specified["authenticationProviders"],
            "samlConfigurationStatus": status,
        }
        return self._authentication(workspace)

    def describe_workspace_authentication(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeWorkspaceAuthentication."""
        return self._authentication(self.find(region, specified["workspaceId"]))

    def _authentication(self, workspace: Workspace) -> JsonObject:
        providers = workspace.description["authentication"]["providers"]
        saml = {"saml": {"status": "CONFIGURED", "configuration": workspace.saml}} if workspace.saml else {}
        return {"authentication": {"providers": providers, **saml}}

    def update_workspace_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """UpdateWorkspaceConfiguration; another version is an upgrade."""
        workspace = self.find(region, specified["workspaceId"])
        workspace.configuration = specified["configuration"]
        if version := specified.get("grafanaVersion"):
            if number(version) < number(workspace.description["grafanaVersion"]):
                raise refuse("ValidationException", "Grafana can be upgraded only (sandbox)")
            workspace.description["grafanaVersion"] = version
        return {}

    def describe_workspace_configuration(self, region: str, specified: JsonObject) -> JsonObject:
        """DescribeWorkspaceConfiguration."""
        workspace = self.find(region, specified["workspaceId"])
        version = workspace.description["grafanaVersion"]
        return {"configuration": workspace.configuration, "grafanaVersion": version}

    def create_workspace_service_account(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateWorkspaceServiceAccount."""
        workspace = self.find(region, specified["workspaceId"])
        if any(account.name == specified["name"] for account in workspace.accounts.values()):
            raise refuse("ConflictException", f"Service account {specified['name']} already exists (sandbox)")
        identifier = str(len(workspace.accounts) + 2)
        while identifier in workspace.accounts:
            identifier = str(int(identifier) + 1)
        workspace.accounts[identifier] = Account(identifier, specified["name"], specified["grafanaRole"])
        return {**{key: specified[key] for key in ("name", "grafanaRole", "workspaceId")}, "id": identifier}

    def list_workspace_service_accounts(self, region: str, specified: JsonObject) -> JsonObject:
        """ListWorkspaceServiceAccounts, on one page."""
        accounts = self.find(region, specified["workspaceId"]).accounts.values()
        return {
            "serviceAccounts": [
                {"id": item.identifier, "name": item.name, "grafanaRole": item.role, "isDisabled": "false"}
                for item in accounts
            ],
            "workspaceId": specified["workspaceId"],
        }

    def delete_workspace_service_account(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteWorkspaceServiceAccount, with its tokens."""
        self._account(region, specified)
        del self.find(region, specified["workspaceId"]).accounts[specified["serviceAccountId"]]
        return {key: specified[key] for key in ("serviceAccountId", "workspaceId")}

    def create_workspace_service_account_token(self, region: str, specified: JsonObject) -> JsonObject:
        """CreateWorkspaceServiceAccountToken; the key is shown this once."""
        account, seconds = self._account(region, specified), specified["secondsToLive"]
        if not 0 < seconds <= _LONGEST_TOKEN_SECONDS:
            raise refuse("ValidationException", "secondsToLive is from 1 to 2592000 (sandbox)")
        if any(token.name == specified["name"] for token in account.tokens.values()):
            raise refuse("ConflictException", f"Token {specified['name']} already exists (sandbox)")
        identifier = str(max([0, *map(int, account.tokens)]) + 1)
        key = f"{_TOKEN_PREFIX}{secrets.token_urlsafe(24)}_{secrets.token_hex(4)}"
        token = Token(identifier, specified["name"], key, now(), now() + timedelta(seconds=seconds))
        account.tokens[identifier] = token
        return {
            "serviceAccountToken": {"id": identifier, "name": token.name, "key": key},
            **{name: specified[name] for name in ("serviceAccountId", "workspaceId")},
        }

    def list_workspace_service_account_tokens(self, region: str, specified: JsonObject) -> JsonObject:
        """ListWorkspaceServiceAccountTokens, on one page."""
        return {
            "serviceAccountTokens": [
                {"id": token.identifier, "name": token.name, "createdAt": token.created, "expiresAt": token.expires}
                for token in self._account(region, specified).tokens.values()
            ],
            **{name: specified[name] for name in ("serviceAccountId", "workspaceId")},
        }

    def delete_workspace_service_account_token(self, region: str, specified: JsonObject) -> JsonObject:
        """DeleteWorkspaceServiceAccountToken."""
        tokens = self._account(region, specified).tokens
        if specified["tokenId"] not in tokens:
            raise refuse("ResourceNotFoundException", f"Token {specified['tokenId']} does not exist (sandbox)")
        del tokens[specified["tokenId"]]
        return {key: specified[key] for key in ("tokenId", "serviceAccountId", "workspaceId")}

    def _account(self, region: str, specified: JsonObject) -> Account:
        accounts, identifier = self.find(region, specified["workspaceId"]).accounts, specified["serviceAccountId"]
        if identifier not in accounts:
            raise refuse("ResourceNotFoundException", f"Service account {identifier} does not exist (sandbox)")
        return accounts[identifier]


def _shared(specified: JsonObject) -> JsonObject:
    return {name: specified[key] for key, name in _SHARED.items() if key in specified}
