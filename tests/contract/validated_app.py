"""Synthesizes apps with CDK's validator. Not a test itself.

Usage: validated_app.py FOLDER NAME... A process of its own, because the CDK reads in its first moment whether to
validate; both apps share the loaded validator. `FOLDER/refused` is of a template that CloudFormation refuses, with the
flags of `bin/app.py`; `FOLDER/environments` is of the named environments, with cdk-nag.
"""

import sys

import aws_cdk as cdk
import cdk_nag

from synthesis import FEATURE_FLAGS, environment, stage_of

folder, *names = sys.argv[1:]
app = cdk.App(outdir=f"{folder}/refused", context=FEATURE_FLAGS)
cdk.CfnResource(cdk.Stack(app, "stack"), "Key", type="AWS::KMS::Key", properties={"KeyUsage": "NO_SUCH_USAGE"})
app.synth()

app = cdk.App(
    outdir=f"{folder}/environments", context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True}
)
cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
for name in names:
    stage_of(environment(name), app)
app.synth()
