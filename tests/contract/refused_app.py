"""Synthesizes a template that CloudFormation refuses, with the flags of `bin/app.py`. Not a test itself."""

import aws_cdk as cdk

from synthesis import FEATURE_FLAGS

app = cdk.App(context=FEATURE_FLAGS)
cdk.CfnResource(cdk.Stack(app, "stack"), "Key", type="AWS::KMS::Key", properties={"KeyUsage": "NO_SUCH_USAGE"})
app.synth()
