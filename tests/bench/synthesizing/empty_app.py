"""The smallest CDK app in Python: one stack with one resource that is nothing. What every CDK user pays."""

import gc

gc.disable()  # as bin/app.py does

import aws_cdk as cdk  # noqa: E402

app = cdk.App()
# The validator refuses a stack without resources.
cdk.CfnWaitConditionHandle(cdk.Stack(app, "Empty"), "Nothing")
app.synth()
