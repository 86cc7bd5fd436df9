"""IAM: roles, policies, instance profiles, service-linked roles, identity providers. moto's IAM holds them."""

import json
from typing import Any

from .base import Outcome, Provider, Request


class Role:
    """AWS::IAM::Role with inline and managed policies and a permissions boundary."""

    def create(self, request: Request) -> Outcome:
        """Create the role and attach its policies."""
        iam, properties = request.client("iam"), request.properties
        name = properties.get("RoleName") or request.name(64)
        optional = {
            key: properties[key] for key in ("Path", "Description", "PermissionsBoundary", "Tags") if key in properties
        }
        if "MaxSessionDuration" in properties:
            optional["MaxSessionDuration"] = int(properties["MaxSessionDuration"])
        role = iam.create_role(
            RoleName=name, AssumeRolePolicyDocument=_document(properties["AssumeRolePolicyDocument"]), **optional
        )["Role"]
        self._policies(iam, name, properties)
        return Outcome(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def update(self, request: Request) -> Outcome:
        """Replace trust, boundary and the policies of the role's own; those of other resources stay on it."""
        iam, name, properties, previous = (
            request.client("iam"),
            request.physical_id,
            request.properties,
            request.previous,
        )
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=_document(properties["AssumeRolePolicyDocument"]))
        if boundary := properties.get("PermissionsBoundary"):
            iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=boundary)
        elif "PermissionsBoundary" in previous:
            iam.delete_role_permissions_boundary(RoleName=name)
        for arn in set(previous.get("ManagedPolicyArns", [])) - set(properties.get("ManagedPolicyArns", [])):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        for policy in _named(previous) - _named(properties):
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        self._policies(iam, name, properties)
        return Outcome(name, request.attributes)

    def delete(self, request: Request) -> None:
        """Detach everything that the stack attached and delete the role."""
        iam, name = request.client("iam"), request.physical_id
        self._strip(iam, name)
        iam.delete_role(RoleName=name)

    def _policies(self, iam: Any, name: str, properties: dict[str, Any]) -> None:
        for policy in properties.get("Policies", []):
            iam.put_role_policy(
                RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=_document(policy["PolicyDocument"])
            )
        for arn in properties.get("ManagedPolicyArns", []):
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)

    def _strip(self, iam: Any, name: str) -> None:
        for policy in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            iam.delete_role_policy(RoleName=name, PolicyName=policy)


def _named(properties: dict[str, Any]) -> set[str]:
    return {policy["PolicyName"] for policy in properties.get("Policies", [])}


class InlinePolicy:
    """AWS::IAM::Policy and AWS::IAM::RolePolicy: an inline policy on roles."""

    def create(self, request: Request) -> Outcome:
        """Put the policy on every role."""
        for role in _roles(request.properties):
            request.client("iam").put_role_policy(
                RoleName=role,
                PolicyName=request.properties["PolicyName"],
                PolicyDocument=_document(request.properties["PolicyDocument"]),
            )
        return Outcome(request.name(), {"Id": request.name(16)})

    def update(self, request: Request) -> Outcome:
        """Put the new policy, take the old one off."""
        # In this order: both may have the same name on the same role.
        self._remove(request, request.previous)
        self.create(request)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the policy off its roles."""
        self._remove(request, request.properties)

    def _remove(self, request: Request, properties: dict[str, Any]) -> None:
        iam = request.client("iam")
        for role in _roles(properties):
            try:
                iam.delete_role_policy(RoleName=role, PolicyName=properties["PolicyName"])
            except iam.exceptions.NoSuchEntityException:
                continue  # the role, or the policy on it, is already gone


class ManagedPolicy:
    """AWS::IAM::ManagedPolicy, attached to roles."""

    def create(self, request: Request) -> Outcome:
        """Create and attach."""
        iam, properties = request.client("iam"), request.properties
        name = properties.get("ManagedPolicyName") or request.name(128)
        optional = {key: properties[key] for key in ("Path", "Description") if key in properties}
        arn = iam.create_policy(PolicyName=name, PolicyDocument=_document(properties["PolicyDocument"]), **optional)[
            "Policy"
        ]["Arn"]
        for role in properties.get("Roles", []):
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        return Outcome(arn, {"PolicyArn": arn, "AttachmentCount": 0, "IsAttachable": True})

    def update(self, request: Request) -> Outcome:
        """Publish a new default version and move the attachments."""
        iam, arn = request.client("iam"), request.physical_id
        self._drop_old_versions(iam, arn)
        # IAM keeps five versions of a policy and refuses a sixth, so the others went first.
        iam.create_policy_version(
            PolicyArn=arn, PolicyDocument=_document(request.properties["PolicyDocument"]), SetAsDefault=True
        )
        before, after = set(_roles(request.previous)), set(_roles(request.properties))
        for role in before - after:
            iam.detach_role_policy(RoleName=role, PolicyArn=arn)
        for role in after - before:
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        return Outcome(arn, request.attributes)

    def delete(self, request: Request) -> None:
        """Detach from every role and delete."""
        iam, arn = request.client("iam"), request.physical_id
        for role in iam.list_entities_for_policy(PolicyArn=arn)["PolicyRoles"]:
            iam.detach_role_policy(RoleName=role["RoleName"], PolicyArn=arn)
        self._drop_old_versions(iam, arn)
        iam.delete_policy(PolicyArn=arn)

    def _drop_old_versions(self, iam: Any, arn: str) -> None:
        for version in iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])


class InstanceProfile:
    """AWS::IAM::InstanceProfile."""

    def create(self, request: Request) -> Outcome:
        """Create the profile with its role."""
        iam, name = request.client("iam"), request.properties.get("InstanceProfileName") or request.name(128)
        profile = iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        for role in _roles(request.properties):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Outcome(name, {"Arn": profile["Arn"]})

    def update(self, request: Request) -> Outcome:
        """Swap the role."""
        iam, name = request.client("iam"), request.physical_id
        # A profile holds one role, so the former one goes first.
        for role in _roles(request.previous):
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        for role in _roles(request.properties):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Outcome(name, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the role out and delete the profile."""
        iam, name = request.client("iam"), request.physical_id
        for role in _roles(request.properties):
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=name)


class ServiceLinkedRole:
    """AWS::IAM::ServiceLinkedRole; one that exists already is refused, as in AWS."""

    def create(self, request: Request) -> Outcome:
        """Create the role of the service."""
        role = request.client("iam").create_service_linked_role(AWSServiceName=request.properties["AWSServiceName"])[
            "Role"
        ]
        return Outcome(role["RoleName"], {"RoleName": role["RoleName"]})

    def update(self, request: Request) -> Outcome:
        """Only the description can change."""
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the role."""
        request.client("iam").delete_role(RoleName=request.physical_id)


class IdentityProvider:
    """AWS::IAM::OIDCProvider; an account has one at most for each URL, so that a second one is refused, as in AWS."""

    def create(self, request: Request) -> Outcome:
        """Create the provider; IAM finds thumbprints itself where none are given."""
        properties = request.properties
        arn = request.client("iam").create_open_id_connect_provider(
            Url=properties["Url"],
            ClientIDList=properties.get("ClientIdList", []),
            ThumbprintList=properties.get("ThumbprintList", []),
            Tags=properties.get("Tags", []),
        )["OpenIDConnectProviderArn"]
        return Outcome(arn, {"Arn": arn})

    def update(self, request: Request) -> Outcome:
        """Its clients, thumbprints and tags; another URL is another provider. The ARN follows the URL, so it stays."""
        self.delete(request)
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete it; IAM has no error for one that is gone."""
        request.client("iam").delete_open_id_connect_provider(OpenIDConnectProviderArn=request.physical_id)


def _document(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _roles(properties: dict[str, Any]) -> list[str]:
    return properties.get("Roles", []) or ([properties["RoleName"]] if "RoleName" in properties else [])


IDENTITY: dict[str, Provider] = {
    "AWS::IAM::Role": Role(),
    "AWS::IAM::Policy": InlinePolicy(),
    "AWS::IAM::RolePolicy": InlinePolicy(),
    "AWS::IAM::ManagedPolicy": ManagedPolicy(),
    "AWS::IAM::InstanceProfile": InstanceProfile(),
    "AWS::IAM::ServiceLinkedRole": ServiceLinkedRole(),
    "AWS::IAM::OIDCProvider": IdentityProvider(),
}
