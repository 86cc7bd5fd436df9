"""Stacks in the sandbox, driven through CloudFormation's API as tests need it: one call, and the operation is over."""

import itertools
import json
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from waiting import until

_counter = itertools.count()


@dataclass
class StackUnderTest:
    """One stack. `client` is boto3's CloudFormation client of the sandbox."""

    client: Any
    name: str = field(default_factory=lambda: f"stack-{next(_counter)}")

    def create(self, resources: dict[str, Any], *, options: dict[str, Any] | None = None, **sections: Any) -> str:
        """Create it; returns the final status."""
        body = json.dumps({"Resources": resources, **sections})
        capabilities = ["CAPABILITY_NAMED_IAM"]
        self.client.create_stack(StackName=self.name, TemplateBody=body, Capabilities=capabilities, **(options or {}))
        return self.wait()

    def update(self, resources: dict[str, Any], *, options: dict[str, Any] | None = None, **sections: Any) -> str:
        """Update it; returns the final status."""
        body = json.dumps({"Resources": resources, **sections})
        capabilities = ["CAPABILITY_NAMED_IAM"]
        self.client.update_stack(StackName=self.name, TemplateBody=body, Capabilities=capabilities, **(options or {}))
        return self.wait()

    def delete(self) -> str:
        """Delete it; returns the final status."""
        stack_id = self.describe()["StackId"]
        self.client.delete_stack(StackName=self.name)
        return self.wait(stack_id)

    def describe(self, identifier: str | None = None) -> dict[str, Any]:
        """The stack as DescribeStacks shows it."""
        return self.client.describe_stacks(StackName=identifier or self.name)["Stacks"][0]

    def wait(self, identifier: str | None = None) -> str:
        """Wait until no operation runs; returns the status."""

        def final_status() -> str:
            status = self.describe(identifier)["StackStatus"]
            return "" if status.endswith("_IN_PROGRESS") else status

        return until(final_status, self.log)

    def events(self) -> list[dict[str, Any]]:
        """Its events, the oldest first."""
        pages = self.client.get_paginator("describe_stack_events").paginate(StackName=self.name)
        return [event for page in pages for event in page["StackEvents"]][::-1]

    def log(self) -> list[str]:
        """Its events as `LogicalId STATUS`, the oldest first."""
        return [f"{event['LogicalResourceId']} {event['ResourceStatus']}" for event in self.events()]

    def reasons(self, logical_id: str) -> str:
        """Why something happened to a resource, or to the stack by its name."""
        return "\n".join(
            event.get("ResourceStatusReason", "") for event in self.events() if event["LogicalResourceId"] == logical_id
        )

    def physical_id(self, logical_id: str) -> str:
        """The physical id of a resource."""
        answer = self.client.describe_stack_resource(StackName=self.name, LogicalResourceId=logical_id)
        return answer["StackResourceDetail"]["PhysicalResourceId"]

    def outputs(self) -> dict[str, str]:
        """Its outputs."""
        return {item["OutputKey"]: item["OutputValue"] for item in self.describe().get("Outputs", [])}


def turn(endpoint: str, control: str, change: Any, account: str = SANDBOX_ACCOUNT, *, new: bool = False) -> Any:
    """Change what a control, such as `faults`, is about; gives what it then shows. `new`: names may be yet to come."""
    url = f"{endpoint}/podwright/{control}?account={account}{'&new=true' if new else ''}"
    request = urllib.request.Request(url, json.dumps(change, default=datetime.isoformat).encode(), method="PUT")
    # No proxy of the user's sees what stays on this machine.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        return json.load(answer)
