"""Synthesizes a template that CloudFormation refuses, with the validator of `bin/app.py`. Not a test itself."""

import runpy

import aws_cdk as cdk

from synthesis import FEATURE_FLAGS, ROOT

app = cdk.App(context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True})
runpy.run_path(str(ROOT / "bin" / "app.py"))["add_validator"](app)
cdk.CfnResource(cdk.Stack(app, "stack"), "Key", type="AWS::KMS::Key", properties={"KeyUsage": "NO_SUCH_USAGE"})
app.synth()
