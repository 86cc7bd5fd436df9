"""Where a stack finds the values that its template refers to: in what is deployed, or not yet."""

import json
from typing import Any

from botocore.exceptions import ClientError

from ..protocol.clients import Clients
from ..protocol.json_objects import JsonObject
from . import schemas
from .evaluate import KNOWN_AFTER_APPLY
from .stack import Region, Stack
from .template import TemplateError


class DeployedScope:
    """Looks up resources of the stack, exports of the region, SSM parameters and secrets of the sandbox."""

    def __init__(self, region: Region, stack: Stack, clients: Clients):
        self.region, self.stack, self.clients = region, stack, clients

    def ref(self, logical_id: str) -> Any:
        """The physical id of a resource of the stack."""
        return self.stack.resources[logical_id].physical_id

    def attribute(self, logical_id: str, name: str) -> Any:
        """An attribute of a resource of the stack; raises TemplateError in CloudFormation's words if it has none."""
        resource = self.stack.resources.get(logical_id)
        if resource is None:
            raise TemplateError(f"Template error: instance of Fn::GetAtt references undefined resource {logical_id}")
        value: Any = resource.attributes.get(name)
        if value is None:
            value = resource.attributes
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            raise _no_attribute(logical_id, name)
        return value

    def imported(self, name: str) -> str:
        """The value of an export; the stack is remembered as its user."""
        result = self.region.exported().get(name)
        if result is None:
            raise TemplateError(f"No export named {name} found. Rollback requested by user.")
        self.stack.imports.add(name)
        return result[0]

    def zones(self, region: str) -> list[str]:
        """The zone names of a region, from EC2."""
        answer = self.clients.client("ec2", region).describe_availability_zones()
        return [zone["ZoneName"] for zone in answer["AvailabilityZones"]]

    def ssm(self, name: str) -> str:
        """The value of an SSM parameter; raises TemplateError in CloudFormation's words if there is none."""
        try:
            return self.clients.client("ssm", self.region.name).get_parameter(Name=name)["Parameter"]["Value"]
        except ClientError:
            raise TemplateError(f"Unable to fetch parameters [{name}] from parameter store for this account.") from None

    def dynamic(self, service: str, reference: str) -> str:
        """The value behind a dynamic reference to SSM or Secrets Manager."""
        if service != "secretsmanager":
            return self.ssm(reference)
        secret, _, rest = reference.partition(":SecretString")
        text = self.clients.client("secretsmanager", self.region.name).get_secret_value(SecretId=secret)["SecretString"]
        key = rest.strip(":").split(":")[0]
        if not key:
            return text
        return json.loads(text)[key]


class PlannedScope:
    """The values as far as they are known before a deployment.

    What will be made or replaced (`unknown`), and without `deployed` everything from outside the template, is
    KNOWN_AFTER_APPLY.
    """

    def __init__(self, template: JsonObject, region: str, deployed: DeployedScope | None = None):
        self.template, self.region, self.deployed = template, region, deployed
        existing = deployed.stack.resources.values() if deployed else ()
        self.unknown = set(template["Resources"]) - {item.logical_id for item in existing if item.physical_id}

    def ref(self, logical_id: str) -> Any:
        """The physical id, if the resource exists and stays."""
        return KNOWN_AFTER_APPLY if logical_id in self.unknown or not self.deployed else self.deployed.ref(logical_id)

    def attribute(self, logical_id: str, name: str) -> Any:
        """The attribute, if the resource exists and stays; raises TemplateError for one that its type lacks."""
        definition = self.template["Resources"].get(logical_id)
        if definition is None:
            raise TemplateError(f"Template error: instance of Fn::GetAtt references undefined resource {logical_id}")
        schema = schemas.find(definition["Type"], self.region)
        if schema and not schema.has_attribute(name):
            raise _no_attribute(logical_id, name)
        if logical_id in self.unknown or not self.deployed:
            return KNOWN_AFTER_APPLY
        return self.deployed.attribute(logical_id, name)

    def imported(self, name: str) -> str:
        """The value of an export, without becoming its user."""
        if not self.deployed:
            return KNOWN_AFTER_APPLY
        imports = set(self.deployed.stack.imports)
        value = self.deployed.imported(name)
        self.deployed.stack.imports = imports
        return value

    def zones(self, region: str) -> list[str]:
        """The zone names of a region; without a deployment its first three letters."""
        return self.deployed.zones(region) if self.deployed else [f"{region}{letter}" for letter in "abc"]

    def dynamic(self, service: str, reference: str) -> str:
        """The value behind a dynamic reference."""
        if self.deployed is None or KNOWN_AFTER_APPLY.rstrip("}") in reference:
            return KNOWN_AFTER_APPLY
        return self.deployed.dynamic(service, reference)

    def ssm(self, name: str) -> str:
        """The value of an SSM parameter."""
        return self.deployed.ssm(name) if self.deployed else KNOWN_AFTER_APPLY


def _no_attribute(logical_id: str, name: str) -> TemplateError:
    return TemplateError(f"Template error: resource {logical_id} does not support attribute type {name} in Fn::GetAtt")
