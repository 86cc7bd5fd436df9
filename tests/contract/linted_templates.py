"""Prints what cfn-lint finds in the templates of its arguments, each `REGION=PATH`. Not a test itself.

One process for all regions: loading the linter takes longer than reading a small template.
"""

import sys

from cfnlint.config import ConfigMixIn
from cfnlint.runner import Runner

# Types by region, a list that lags (podwright has a warning of its own); dependencies that the CDK writes twice.
IGNORED = ["E3644", "W3005"]

files: dict[str, list[str]] = {}
for argument in sys.argv[1:]:
    region, _, path = argument.partition("=")
    files.setdefault(region, []).append(path)
for region, paths in files.items():
    for finding in Runner(ConfigMixIn(["--regions", region, "--ignore-checks", *IGNORED, "--", *paths])).run():
        print(f"{region}: {finding.filename}:{finding.linenumber}: {finding}")
