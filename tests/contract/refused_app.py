"""Synthesizes a template that CloudFormation refuses, with the validator of `bin/app.py`. Not a test itself."""

import runpy

import aws_cdk as cdk

from synthesis import FEATURE_FLAGS, ROOT

app = cdk.App(context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True})
its = runpy.run_path(str(ROOT / "bin" / "app.py"))
# It asks Node for one as soon as it is imported, and Node answers one thread at a time.
its["validator"].result()
its["add_validator"](app)
cdk.CfnResource(cdk.Stack(app, "stack"), "Key", type="AWS::KMS::Key", properties={"KeyUsage": "NO_SUCH_USAGE"})
app.synth()
