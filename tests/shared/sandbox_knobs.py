"""Turning the sandbox's knobs: its own operations under /podwright/, for an account that is always named."""

import json
import urllib.request
from datetime import datetime
from typing import Any

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT


def turn(endpoint: str, knob: str, change: Any, account: str = SANDBOX_ACCOUNT, *, new: bool = False) -> Any:
    """Change what a knob, such as `faults`, is about; gives what it then shows. `new`: names may be yet to come."""
    url = f"{endpoint}/podwright/{knob}?account={account}{'&new=true' if new else ''}"
    request = urllib.request.Request(url, json.dumps(change, default=datetime.isoformat).encode(), method="PUT")
    # No proxy of the user's sees what stays on this machine.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        return json.load(answer)
