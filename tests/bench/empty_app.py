"""The smallest CDK app in Python: one stack with nothing in it. What every CDK user pays."""

import aws_cdk as cdk

app = cdk.App()
cdk.Stack(app, "Empty")
app.synth()
