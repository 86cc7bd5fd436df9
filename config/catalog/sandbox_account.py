"""What the sandbox and whoever calls it agree on: accounts, their access keys, and paths of its own.

AWS's own keys carry their account too, in a form of their own; these have it in plain digits. Whoever comes with any
other key is in the first account.
"""

import re
from typing import Final

SANDBOX_ACCOUNT: Final = "123456789012"
"""The account of who names no other by the credentials; AWS's documentation uses it and it belongs to nobody."""
RECORDED_TYPES: Final = "/podwright/recorded-types"
"""Asked with `?type=…`, the sandbox names those of the resource types that it keeps as records only."""
CONTROL_PLANE: Final = "/podwright/control-plane"
"""`PUT` takes the parts of the control plane that environments need, and answers what their clusters are or become."""
IDLE_END: Final = "idle-end"
"""The file of the state directory that says when and why the server ended by itself."""
_KEY: Final = re.compile(r"SANDBOX0(\d{12})")


def access_key(account: str) -> str:
    """The key of an account's administrator. The secret is not looked at."""
    return "sandbox" if account == SANDBOX_ACCOUNT else f"SANDBOX0{account}"


def named_account(key: str) -> str | None:
    """The account that a key of `access_key` names; None for any other key."""
    match = _KEY.fullmatch(key)
    return match[1] if match else None
