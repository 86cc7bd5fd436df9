"""EKS resource types, made through the sandbox's own EKS API."""

import time
from dataclasses import replace

from ...protocol.json_objects import JsonObject
from .api import Api, call
from .base import HandlerError, Outcome, Provider, Request

_POLL_SECONDS = 0.2


def _cluster_values(request: Request) -> JsonObject:
    """The schema's words for logging and tags in the API's form."""
    values = dict(request.properties)
    logging = values.pop("Logging", None)
    if logging:
        types = [item["Type"] for item in logging["ClusterLogging"].get("EnabledTypes", [])]
        values["logging"] = {"clusterLogging": [{"types": types, "enabled": True}]}
    vpc = values.get("ResourcesVpcConfig")
    if vpc is None:
        values["ResourcesVpcConfig"] = {"SubnetIds": []}
    return values


class Cluster(Api):
    """AWS::EKS::Cluster."""

    def create(self, request: Request) -> Outcome:
        """Create the cluster, wait for its control plane, and read its attributes back."""
        outcome = super().create(request)
        while (cluster := self._describe(request, outcome.physical_id))["status"] == "CREATING":
            time.sleep(_POLL_SECONDS)
        if cluster["status"] == "FAILED":
            reason = "; ".join(issue["message"] for issue in cluster["health"]["issues"])
            raise HandlerError(reason, outcome.physical_id)
        return Outcome(outcome.physical_id, {**outcome.attributes, **self._read(request, outcome.physical_id)})

    def _describe(self, request: Request, name: str) -> JsonObject:
        return request.client("eks").describe_cluster(name=name)["cluster"]

    def update(self, request: Request) -> Outcome:
        """One API call for each part that changed, as EKS wants it."""
        values, name = _cluster_values(request), request.physical_id
        before = _cluster_values(replace(request, properties=request.previous))
        changed = {key: value for key, value in values.items() if before.get(key) != value}
        if "Version" in changed:
            values = {"name": name, "version": changed.pop("Version")}
            update = call(request, "eks", "update_cluster_version", values)["update"]
            self._wait(request, name, update["id"])
        for key, value in changed.items():
            if key not in ("Tags", "EncryptionConfig"):
                call(request, "eks", "update_cluster_config", {"name": name, key: value})
        return Outcome(name, {**request.attributes, **self._read(request, name)})

    def _wait(self, request: Request, name: str, update: str) -> None:
        """Wait as CloudFormation does: until the update is over."""
        client = request.client("eks")
        while client.describe_update(name=name, updateId=update)["update"]["status"] == "InProgress":
            time.sleep(_POLL_SECONDS)

    def _read(self, request: Request, name: str) -> JsonObject:
        cluster = self._describe(request, name)
        return {
            "Arn": cluster["arn"],
            "Endpoint": cluster["endpoint"],
            "Id": name,
            "CertificateAuthorityData": cluster["certificateAuthority"]["data"],
            "ClusterSecurityGroupId": cluster["resourcesVpcConfig"]["clusterSecurityGroupId"],
            "OpenIdConnectIssuerUrl": cluster["identity"]["oidc"]["issuer"],
            "EncryptionConfigKeyArn": next(
                (item["provider"]["keyArn"] for item in cluster.get("encryptionConfig", [])), ""
            ),
        }


class AccessEntry(Api):
    """AWS::EKS::AccessEntry with its access policies."""

    def create(self, request: Request) -> Outcome:
        """Create the entry and associate its policies."""
        outcome = super().create(request)
        self._associate(request, request.properties.get("AccessPolicies", []))
        return outcome

    def update(self, request: Request) -> Outcome:
        """Change the entry and its policies."""
        super().update(request)
        before, after = request.previous.get("AccessPolicies", []), request.properties.get("AccessPolicies", [])
        retained = {policy["PolicyArn"] for policy in after}
        for policy in before:
            if policy["PolicyArn"] not in retained:
                call(
                    request,
                    "eks",
                    "disassociate_access_policy",
                    {**self._address(request), "policyArn": policy["PolicyArn"]},
                )
        self._associate(request, after)
        return Outcome(request.physical_id, request.attributes)

    def _associate(self, request: Request, policies: list[JsonObject]) -> None:
        for policy in policies:
            call(
                request,
                "eks",
                "associate_access_policy",
                {
                    "clusterName": request.properties["ClusterName"],
                    "principalArn": request.properties["PrincipalArn"],
                    "policyArn": policy["PolicyArn"],
                    "accessScope": policy["AccessScope"],
                },
            )


EKS: dict[str, Provider] = {
    "AWS::EKS::Cluster": Cluster(
        "eks",
        "create_cluster",
        "cluster.name",
        {"name": ""},
        "delete_cluster",
        name="Name",
        name_limit=100,
        translate=_cluster_values,
    ),
    "AWS::EKS::Addon": Api(
        "eks",
        "create_addon",
        ("ClusterName", "AddonName"),
        {"clusterName": "ClusterName", "addonName": "AddonName"},
        "delete_addon",
        ("update_addon",),
        attributes={"Arn": "addon.addonArn"},
    ),
    "AWS::EKS::AccessEntry": AccessEntry(
        "eks",
        "create_access_entry",
        ("PrincipalArn", "ClusterName"),
        {"principalArn": "PrincipalArn", "clusterName": "ClusterName"},
        "delete_access_entry",
        ("update_access_entry",),
        attributes={"AccessEntryArn": "accessEntry.accessEntryArn"},
    ),
    "AWS::EKS::PodIdentityAssociation": Api(
        "eks",
        "create_pod_identity_association",
        "association.associationArn",
        {"clusterName": "ClusterName", "associationId": "AssociationId"},
        "delete_pod_identity_association",
        ("update_pod_identity_association",),
        attributes={"AssociationArn": "association.associationArn", "AssociationId": "association.associationId"},
    ),
}
