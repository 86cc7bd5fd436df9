"""Serves the sandbox's own operations, such as faults, for an account that `?account=` names.

A change in the wrong account would have no visible effect. So unknown operations, parameters and methods are refused,
and accounts without a request, except with `new=true`. Without `?account=`, the default account is refused if only
other accounts have resources.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..authorization import authorization
from ..eks import needed_parts
from ..sagemaker import capacity, faults, image_releases
from ..services import quotas
from ..training_plans import controls as training_plans
from . import adopted
from .account_services import SandboxAccount, SandboxAccounts
from .adopted import AdoptedResources

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
PREFIX: Final = "/podwright/"
CONTROLS: Final[dict[str, Callable[[SandboxAccount], Application]]] = {
    authorization.PATH: lambda account: account.ledger.serve,
    adopted.PATH: lambda account: AdoptedResources(account.eks, account.fsx).serve,
    capacity.PATH: lambda account: partial(capacity.serve, account.hyperpod),
    faults.PATH: lambda account: partial(faults.serve, account.hyperpod),
    image_releases.PATH: lambda account: partial(image_releases.serve, account.hyperpod),
    needed_parts.PATH: lambda account: partial(needed_parts.serve, account.eks),
    quotas.PATH: lambda account: account.hyperpod.quotas.serve,
    training_plans.PATH: lambda account: partial(training_plans.serve, account.hyperpod.plans),
}
"""Operations by their path."""
_PARAMETERS: Final = ("account", "new")
_MORE_PARAMETERS: Final = {training_plans.PATH: ("region",)}
_METHODS: Final = {adopted.PATH: ("PUT",), authorization.PATH: ("GET", "DELETE")}
_READ_AND_CHANGE: Final = ("GET", "PUT")
_ACCOUNT: Final = re.compile(r"\d{12}")
_SIGNED: Final = ("X-Amz-Credential", "AWSAccessKeyId")


class _Refused(Exception):
    """The operation is refused. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Controls:
    """A WSGI application with all operations. `changed` is called before an operation that can change the state."""

    def __init__(self, accounts: SandboxAccounts, changed: Callable[[], None]) -> None:
        self._accounts, self._changed = accounts, changed

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request, or refuse it with a message."""
        request = Request(environ)
        try:
            _check(request)
            account = self._account(request)
        except _Refused as refusal:
            return Response(f"{refusal}\n", refusal.status)(environ, start_response)
        self._changed()
        return CONTROLS[request.path](self._accounts.of(account))(environ, start_response)

    def _account(self, request: Request) -> str:
        """Return the account of a request."""
        named = request.args.get("account")
        holding = [item.account for item in self._accounts.all() if item.holds_something()]
        if named is None:
            if holding and SANDBOX_ACCOUNT not in holding:
                raise _Refused(
                    404,
                    f"the account {SANDBOX_ACCOUNT}, which is meant where none is named, holds nothing; say whose: "
                    + " or ".join(f"?account={account}" for account in holding),
                )
            return SANDBOX_ACCOUNT
        if not _ACCOUNT.fullmatch(named):
            raise _Refused(400, f"account is {named}; it is the 12 digits of an account")
        if not self._accounts.known(named) and request.args.get("new") != "true":
            raise _Refused(
                404,
                f"nothing is in the account {named}; something is in {', '.join(holding) or 'none so far'}. Add "
                "&new=true for an account that is to come",
            )
        return named


def is_own(environ: dict[str, Any]) -> bool:
    """Return True for an operation of the sandbox: below its path, and without a signature, which S3 requests have."""
    if not environ["PATH_INFO"].startswith(PREFIX) or environ.get("HTTP_AUTHORIZATION"):
        return False
    return not any(name in environ["QUERY_STRING"] for name in _SIGNED)


def _check(request: Request) -> None:
    """Raise _Refused for an operation, a parameter or a method that does not exist."""
    path = request.path
    if path not in CONTROLS:
        raise _Refused(404, f"the sandbox has no {path}; it has {', '.join(CONTROLS)}")
    known = (*_PARAMETERS, *_MORE_PARAMETERS.get(path, ()))
    if unknown := sorted(request.args.keys() - set(known)):
        raise _Refused(400, f"unknown parameter {unknown[0]}; known are {', '.join(known)}")
    if request.args.get("new", "true") not in ("true", "false"):
        raise _Refused(400, f"new is {request.args['new']}; it is true or false")
    methods = _METHODS.get(path, _READ_AND_CHANGE)
    if request.method not in methods:
        raise _Refused(405, f"{path} knows no {request.method}; it knows {', '.join(methods)}")
