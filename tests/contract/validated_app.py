"""Synthesizes the environments that its arguments name with CDK's validator and cdk-nag. Not a test itself.

A process of its own, because the CDK reads in its first moment whether to validate.
"""

import sys

import aws_cdk as cdk
import cdk_nag

from synthesis import FEATURE_FLAGS, environment, stage_of

app = cdk.App(context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True})
cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
for name in sys.argv[1:]:
    stage_of(environment(name), app)
app.synth()
