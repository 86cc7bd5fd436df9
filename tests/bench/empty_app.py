"""The smallest CDK app in Python: one stack with one resource that is nothing. What every CDK user pays."""

import aws_cdk as cdk

app = cdk.App()
# The validator refuses a stack without resources.
cdk.CfnWaitConditionHandle(cdk.Stack(app, "Empty"), "Nothing")
app.synth()
