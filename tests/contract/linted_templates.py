"""Prints what cfn-lint finds in the templates of its arguments, each `REGION=PATH`. Not a test itself.

One process for all regions: loading the linter takes longer than reading a small template.
"""

import sys

from cfnlint.config import ConfigMixIn
from cfnlint.runner import Runner

from podwright.sandbox.cloudformation.fast_rules import speed_up

# Types by region, a list that lags (podwright has a warning of its own); dependencies that the CDK writes twice.
IGNORED = ["E3644", "W3005"]

files: dict[str, list[str]] = {}
for argument in sys.argv[1:]:
    region, _, path = argument.partition("=")
    files.setdefault(region, []).append(path)
for region, paths in files.items():
    runner = Runner(ConfigMixIn(["--regions", region, "--ignore-checks", *IGNORED, "--", *paths]))
    # A run connects rules with their child rules, which the shortcuts need.
    list(runner.validate_template({"Resources": {}}))
    speed_up(runner.rules.values())
    for finding in runner.run():
        print(f"{region}: {finding.filename}:{finding.linenumber}: {finding}")
