# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""IAM's policy simulation over moto's roles and users: what their policies and boundary say, without resource policies.

The sandbox's own credentials belong to no user and may do everything. Conditions are judged as far as moto does.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.iam.responses import IamResponse

from ..protocol.service import refuse

_OURS = "user/moto"


class SimulatingIam(IamResponse):
    """IAM's API: the simulation is ours, the rest moto's."""

    def simulate_principal_policy(self) -> ActionResult:
        source = self._get_param("PolicySourceArn")
        policies, boundary = self._policies(source)
        results = [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": _decision(policies, boundary, action, resource),
            }
            for action in self._get_param("ActionNames")
            for resource in self._get_param("ResourceArns") or ["*"]
        ]
        return ActionResult({"EvaluationResults": results, "IsTruncated": False})

    def _policies(self, arn: str) -> tuple[list[IAMPolicy] | None, list[IAMPolicy] | None]:
        """The policies of a role or user and its boundary; None stands for "everything is allowed"."""
        kind, _, name = arn.rpartition(":")[2].partition("/")
        if f"{kind}/{name}" == _OURS:
            return None, None
        name, backend = name.rpartition("/")[2], self.backend
        if kind not in ("role", "user"):
            raise refuse("InvalidInput", f"Invalid Entity Arn: {arn} does not identify a role or user (sandbox)")
        holder: Any = backend.get_role(name) if kind == "role" else backend.get_user(name)
        iampolicies = [IAMPolicy(policy) for policy in (*holder.policies.values(), *holder.managed_policies.values())]
        boundary = getattr(holder, "permissions_boundary_arn", None)
        return iampolicies, [IAMPolicy(backend.get_policy(boundary))] if boundary else None


def _decision(policies: list[IAMPolicy] | None, boundary: list[IAMPolicy] | None, action: str, resource: str) -> str:
    for layer in (policies, boundary):
        if layer is None:
            continue
        message = {policy.is_action_permitted(action, resource) for policy in layer}
        if PermissionResult.DENIED in message:
            return "explicitDeny"
        if PermissionResult.PERMITTED not in message:
            return "implicitDeny"
    return "allowed"
