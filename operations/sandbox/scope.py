"""Where a deployed stack finds the values that its template refers to."""

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from .providers.base import Clients, Provider
from .stack import Region, Stack
from .template import TemplateError


class DeployedScope:
    """Looks up resources of the stack, exports of the region, SSM parameters and secrets of the sandbox."""

    def __init__(self, region: Region, stack: Stack, clients: Clients, provider: Callable[[str], Provider]):
        self.region, self.stack, self.clients, self.provider = region, stack, clients, provider

    def ref(self, logical_id: str) -> Any:
        """The physical id of a resource of the stack."""
        return self.stack.resources[logical_id].reference

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
            raise TemplateError(
                f"Template error: resource {logical_id} does not support attribute type {name} in Fn::GetAtt"
            )
        return value

    def imported(self, name: str) -> str:
        """The value of an export; the stack is remembered as its user."""
        found = self.region.exported().get(name)
        if found is None:
            raise TemplateError(f"No export named {name} found. Rollback requested by user.")
        self.stack.imports.add(name)
        return found[0]

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
