"""The CDK feature flags that our templates are made and tested with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# Beside the rooms, in a checkout and in an installed package alike; `resolve` sees through the links of bin/setup.
_CDK_JSON = Path(__file__).resolve().parents[1] / "cdk.json"

FEATURE_FLAGS: Final[Mapping[str, Any]] = json.loads(_CDK_JSON.read_text())["context"] | {
    "aws:cdk:enable-path-metadata": True,
    # Of our Python they would show Node's internals with paths of this machine, for a sixth of a synthesis.
    "aws:cdk:disable-creation-stack-traces": True,
    "aws:cdk:disable-stack-trace": True,
}
"""The `context` of our `cdk.json`, for `App(context=...)`, a key that the CDK CLI sets itself, and no stack traces.

The CLI hands a `cdk.json` to the app; nothing does so for an app that starts without the CLI or in a user's project,
where a missing flag would silently change the templates. A flag in the project's own `cdk.json` wins. With paths in the
templates, `cdk diff` and the CloudFormation console name a resource by its place in the app.
"""
