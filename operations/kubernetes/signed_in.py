"""Signs in the kubectl processes of one command: a credential plugin for each takes half a second.

kubectl reads the user of `signed_in.yaml` besides the cluster's kubeconfig. That user's plugin prints a variable.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..aws.account import Account
from .token import exec_credential

OPTIONS: Final = ("--user", "podwright")
"""Options by which kubectl acts as this user."""
_USER: Final = Path(__file__).with_suffix(".yaml")
_VARIABLE: Final = "PODWRIGHT_EXEC_CREDENTIAL"
_FRESH_SECONDS: Final = 600.0
"""EKS accepts a token for 14 minutes at least."""


@dataclass(slots=True)
class SignIn:
    """The token of one command for one cluster."""

    account: Account
    cluster: str
    _credential: str = field(default="", init=False, repr=False)
    _signed: float = field(default=0.0, init=False)

    def variables(self, kubeconfig: Path) -> dict[str, str]:
        """Variables of a kubectl process that uses the cluster of a kubeconfig."""
        if not self._credential or time.monotonic() - self._signed > _FRESH_SECONDS:
            self._credential, self._signed = exec_credential(self.account.session(), self.cluster), time.monotonic()
        return {"KUBECONFIG": os.pathsep.join((str(kubeconfig), str(_USER))), _VARIABLE: self._credential}
