"""Synthesizes the pipeline and the roles of environments with cdk-nag. Not a test itself."""

import os
from pathlib import Path

import aws_cdk as cdk
import cdk_nag

from podwright.stacks.promotion import add_promotion
from promotion_account import app_of
from promotion_project import GITHUB, POSITIONS, write_project

outdir = Path(os.environ["CDK_OUTDIR"])
app = app_of(write_project(outdir.parent / "project"), str(outdir))
github = write_project(outdir.parent / "github", GITHUB.replace("pipeline:", "pipeline:\n  name: github"))
add_promotion(app, github, [github.load(name).environment for name in POSITIONS])
cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
app.synth()
