"""Synthesizes one environment with CDK's validator and cdk-nag: `python validated_app.py NAME`. Not a test itself.

A process of its own, because the CDK reads in its first moment whether to validate.
"""

import sys

import aws_cdk as cdk
import cdk_nag

from synthesis import FEATURE_FLAGS, environment, synthesize

app = cdk.App(context={**FEATURE_FLAGS, "@aws-cdk/core:validateAgainstDefaultRules": True})
cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
synthesize(environment(sys.argv[1]), app)
