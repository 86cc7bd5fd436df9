"""Checks calls of services' roles and of CloudFormation's role against their policies, and refuses them as AWS does.

`GET /podwright/authorization` returns the number of checks of each action and the denied calls, `DELETE` clears them.
Calls of the account's credentials, of users, and of roles that users assume are not checked.
"""

import io
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from ..protocol.accounts import account_of_key
from ..protocol.arns import account_of
from ..protocol.failures import answer
from ..protocol.json_service import scope_of
from .evaluation import Call, Verdict, verdict
from .principals import Policies, policies_of, role_of, session_of_service
from .requests import Sent, calls

PATH: Final = "/podwright/authorization"
# STS allows it regardless of policies. Source: AWS STS API Reference, GetCallerIdentity.
_ALWAYS: Final = "sts:GetCallerIdentity"
_CREDENTIAL: Final = re.compile(r"Credential=([^/]+)/")
# Services with another error than AccessDeniedException with status 400. Source: their API references.
_CODES: Final = {"ec2": ("UnauthorizedOperation", 403), "s3": ("AccessDenied", 403)}
_QUERY_CODE: Final = ("AccessDenied", 403)


@dataclass(frozen=True, slots=True)
class Denial:
    """A denied call."""

    principal: str
    action: str
    resource: str
    reason: str

    def __str__(self) -> str:
        on = f" on resource: {self.resource}" if self.resource else ""
        return f"User: {self.principal} is not authorized to perform: {self.action}{on} because {self.reason}"


@dataclass
class Ledger:
    """The checked calls of an account."""

    judged: Counter[str] = field(default_factory=Counter)
    denied: list[Denial] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, principal: str, call: Call, policies: Policies) -> Denial | None:
        """Return the denial of a call; None if it is allowed."""
        decision = verdict(call, policies.identity, policies.boundary)
        if call.action == _ALWAYS:
            decision = "allowed"
        denial = None
        if decision != "allowed":
            resource = call.resources[0] if call.resources else ""
            denial = Denial(principal, call.action, resource, _reason(call, policies, decision))
        with self.lock:
            self.judged[call.action] += 1
            self.denied += [denial] if denial else []
        return denial

    def deploys(self, role_arn: str, handler_calls: Iterable[Call]) -> Denial | None:
        """Return the first of a handler's calls that the policies of CloudFormation's role deny."""
        role = role_of(role_arn)
        if role is None:
            return None
        policies = policies_of(role)
        principal = f"{role_arn.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/AWSCloudFormation"
        denials = [self.judge(principal, call, policies) for call in handler_calls]
        return next(filter(None, denials), None)

    def serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Return the checks; DELETE clears them."""
        with self.lock:
            if Request(environ).method == "DELETE":
                self.judged.clear()
                self.denied.clear()
            denied = [
                {"principal": one.principal, "action": one.action, "resource": one.resource, "message": str(one)}
                for one in self.denied
            ]
            shown = {"calls": sum(self.judged.values()), "actions": dict(sorted(self.judged.items())), "denied": denied}
        return Response(json.dumps(shown), content_type="application/json")(environ, start_response)


def refusal(environ: dict[str, Any], ledger_of: Callable[[str], Ledger], cluster_arn: Any) -> Response | None:
    """Return the response to a request that the policies of its role deny; None if they allow it.

    Args:
        environ: The request.
        ledger_of: The ledger of an account.
        cluster_arn: The ARN of a HyperPod cluster by account, region and name; None where there is none.
    """
    match = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    session = session_of_service(match[1]) if match else None
    if match is None or session is None:
        return None
    region, service = scope_of(environ)
    # moto reads the stream, too, which can be read once.
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    account = account_of_key(match[1])
    sent = Sent(
        service,
        region,
        account,
        environ["REQUEST_METHOD"],
        environ["PATH_INFO"],
        environ.get("QUERY_STRING", ""),
        environ.get("HTTP_X_AMZ_TARGET", ""),
        environ.get("HTTP_X_AMZ_COPY_SOURCE", ""),
        body,
    )
    policies = policies_of(role_of(session.role))
    requested = calls(sent, lambda name: cluster_arn(account, region, name))
    denials = [ledger_of(account_of(session.role)).judge(session.arn, call, policies) for call in requested]
    denied = next(filter(None, denials), None)
    if denied is None:
        return None
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    code, status = _CODES.get(service, _QUERY_CODE if is_form else ("AccessDeniedException", 400))
    return answer(environ, code, str(denied), status)


def _reason(call: Call, policies: Policies, decision: Verdict) -> str:
    """Return AWS's message. Source: IAM User Guide, "Troubleshoot access denied error messages"."""
    allowed_by_identity = verdict(call, policies.identity) == "allowed"
    kind = "a permissions boundary" if allowed_by_identity else "an identity-based policy"
    if decision == "explicitDeny":
        return f"of an explicit deny in {kind}"
    return f"no {kind.partition(' ')[2]} allows the {call.action} action"
