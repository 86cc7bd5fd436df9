# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""IAM's policy simulation over moto's roles and users: what their policies and boundary say, without resource policies.

An account's own credentials are its root's, which may do everything (AWS refuses to simulate them). Conditions are
judged by what the caller gives as context, and on resources `*` stands for any, as in IAM's own simulation.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.iam.responses import IamResponse

from ..authorization.evaluation import Call, verdict
from ..authorization.principals import Policies, policies_of
from ..protocol.service import refuse

_OURS = "root"


class SimulatingIam(IamResponse):
    """IAM's API: the simulation is ours, the rest moto's."""

    def simulate_principal_policy(self) -> ActionResult:
        source = self._get_param("PolicySourceArn")
        policies = self._policies(source)
        results = [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": _decision(policies, action, resource),
            }
            for action in self._get_param("ActionNames")
            for resource in self._get_param("ResourceArns") or ["*"]
        ]
        return ActionResult({"EvaluationResults": results, "IsTruncated": False})

    def _policies(self, arn: str) -> Policies | None:
        """The policies of a role or user and its boundary; None stands for "everything is allowed"."""
        kind, _, name = arn.rpartition(":")[2].partition("/")
        if kind == _OURS:
            return None
        name, backend = name.rpartition("/")[2], self.backend
        if kind not in ("role", "user"):
            raise refuse("InvalidInput", f"Invalid Entity Arn: {arn} does not identify a role or user (sandbox)")
        holder: Any = backend.get_role(name) if kind == "role" else backend.get_user(name)
        return policies_of(holder)


def _decision(policies: Policies | None, action: str, resource: str) -> str:
    if policies is None:
        return "allowed"
    return verdict(Call(action, (resource,)), policies.identity, policies.boundary)
