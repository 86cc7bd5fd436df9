"""The mechanical baseline: our own finished templates loaded with CfnInclude, and the same assets staged.

It decides nothing and computes nothing, so the difference to it is what podwright itself costs. The assembly that it
reads comes as context `assembly`.
"""

import gc
import json
from pathlib import Path

gc.disable()  # as bin/app.py does

import aws_cdk as cdk  # noqa: E402
from aws_cdk import aws_s3_assets as assets  # noqa: E402
from aws_cdk.cloudformation_include import CfnInclude  # noqa: E402

app = cdk.App()
source = Path(app.node.get_context("assembly"))
account, region = app.node.get_context("account"), app.node.get_context("region")
manifest = json.loads((source / "manifest.json").read_text())
for name, artifact in manifest["artifacts"].items():
    if artifact["type"] != "aws:cloudformation:stack":
        continue
    template = json.loads((source / artifact["properties"]["templateFile"]).read_text())
    # The CDK adds these two itself.
    template.get("Parameters", {}).pop("BootstrapVersion", None)
    template.get("Rules", {}).pop("CheckBootstrapVersion", None)
    stack = cdk.Stack(app, name, env=cdk.Environment(account=account, region=region))
    accepted = "The validator knows no compute quotas; podwright accepts the same of them."
    cdk.Validations.of(stack).acknowledge(cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason=accepted))
    file = Path(app.outdir) / f"{name}.included.json"
    file.write_text(json.dumps(template))
    CfnInclude(stack, "Template", template_file=str(file))
    staged = json.loads((source / f"{name}.assets.json").read_text())["files"]
    for number, asset in enumerate(staged.values()):
        path = source / asset["source"]["path"]
        if path.suffix != ".json":
            assets.Asset(stack, f"Asset{number}", path=str(path.resolve()))
app.synth()
