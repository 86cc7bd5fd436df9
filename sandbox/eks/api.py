# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The EKS API: requests parsed and answers serialised by moto from botocore's service model."""

import json
import uuid
from typing import Any, ClassVar

from moto.core.responses import ActionResult

from ...config.settings.governance.task_governance import ADDON
from ...config.settings.platform import TRAINING_OPERATOR
from ..protocol.accounts import principal_of_key
from ..protocol.arns import account_of
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, without
from ..protocol.service import OwnResponse, refuse
from . import task_governance
from . import upgrades as eks_upgrades
from .access_entries import check_names, check_takes_policies, new_names
from .access_policies import ARN, RULES
from .offers import addons, cluster_versions
from .service import Eks, EksCluster

_SUMMARY = "categorySpecificSummary"


class EksResponse(OwnResponse):
    """The EKS API."""

    api_name = "eks"
    service: ClassVar[Eks]

    def _cluster(self, key: str = "clusterName") -> EksCluster:
        return self.service.cluster(self.region, self.arguments()[key])

    def create_cluster(self) -> ActionResult:
        creator = principal_of_key(self.access_key)
        return ActionResult({"cluster": self.service.create(self.region, self.arguments(), creator).description})

    def describe_cluster(self) -> ActionResult:
        cluster = self._cluster("name")
        eks_upgrades.settle(self.service, cluster)
        return ActionResult({"cluster": cluster.description})

    def list_clusters(self) -> ActionResult:
        return self.page(
            [name for region, name in self.service.clusters if region == self.region],
            "clusters",
            "maxResults",
            "nextToken",
        )

    def describe_cluster_versions(self) -> ActionResult:
        requested = self._get_param("clusterVersions")
        rows = [row for row in cluster_versions(now()) if not requested or row["clusterVersion"] in requested]
        return self.page(rows, "clusterVersions", "maxResults", "nextToken")

    def describe_addon_versions(self) -> ActionResult:
        values = self.arguments()
        result = addons(values.get("addonName"), values.get("kubernetesVersion"))
        return self.page(result, "addons", "maxResults", "nextToken")

    def describe_addon_configuration(self) -> ActionResult:
        values = self.arguments()
        name, version = values["addonName"], values["addonVersion"]
        offered = {each["addonVersion"] for item in addons(name, None) for each in item["addonVersions"]}
        if version not in offered:
            raise refuse("ResourceNotFoundException", f"No version {version} of add-on {name}.")
        # EKS does not publish the schemas; this one accepts any object.
        schema = json.dumps({"$schema": "http://json-schema.org/draft-06/schema#", "type": "object"})
        return ActionResult({"addonName": name, "addonVersion": version, "configurationSchema": schema})

    def delete_cluster(self) -> ActionResult:
        return ActionResult({"cluster": self.service.delete(self.region, self.arguments()["name"])})

    def update_cluster_config(self) -> ActionResult:
        values, description = self.arguments(), self._cluster("name").description
        # A request changes single fields of these, and replaces those below.
        for key in ("resourcesVpcConfig", "accessConfig", "logging", "kubernetesNetworkConfig"):
            if key in values:
                description[key] = {**description.get(key, {}), **values[key]}
        for key in ("upgradePolicy", "zonalShiftConfig", "deletionProtection", "computeConfig", "storageConfig"):
            if key in values:
                description[key] = values[key]
        return self._update("ConfigUpdate" if "logging" not in values else "LoggingUpdate")

    def update_cluster_version(self) -> ActionResult:
        return ActionResult({"update": eks_upgrades.update_version(self.service, self.region, self.arguments())})

    def list_insights(self) -> ActionResult:
        requested = self._get_param("filter") or {}
        matches = [
            without(item, "recommendation", "additionalInfo", "resources", _SUMMARY)
            for item in eks_upgrades.insights(self.service, self.region, self._cluster())
            if item["category"] in requested.get("categories", [item["category"]])
            and item["kubernetesVersion"] in requested.get("kubernetesVersions", [item["kubernetesVersion"]])
            and item["insightStatus"]["status"] in requested.get("statuses", [item["insightStatus"]["status"]])
        ]
        return self.page(matches, "insights", "maxResults", "nextToken")

    def describe_insight(self) -> ActionResult:
        results = {item["id"]: item for item in eks_upgrades.insights(self.service, self.region, self._cluster())}
        return ActionResult({"insight": self._find(results, "id", "insight")})

    def _update(self, kind: str) -> ActionResult:
        update = eks_upgrades.new_update(kind, [])
        self._cluster("name").updates[update["id"]] = update
        return ActionResult({"update": eks_upgrades.shown(update)})

    def describe_update(self) -> ActionResult:
        cluster = self._cluster("name")
        eks_upgrades.settle(self.service, cluster)
        return ActionResult({"update": eks_upgrades.shown(self._find(cluster.updates, "updateId", "update"))})

    def list_updates(self) -> ActionResult:
        return self.page(list(self._cluster("name").updates), "updateIds", "maxResults", "nextToken")

    def create_addon(self) -> ActionResult:
        """Add an add-on, at its default version unless the request names one."""
        values, cluster = self.arguments(), self._cluster()
        name = values["addonName"]
        if name in cluster.addons:
            raise refuse("ResourceInUseException", "Addon already exists.")
        arn = f"arn:aws:eks:{self.region}:{self.current_account}:addon/{values['clusterName']}/{name}/{uuid.uuid4()}"
        version = eks_upgrades.default_addon_version(name, cluster.description["version"])
        addon = {
            **({"addonVersion": version} if version else {}),
            **values,
            "addonArn": arn,
            "status": "ACTIVE",
            "createdAt": now(),
            "modifiedAt": now(),
            "health": {"issues": []},
            "podIdentityAssociations": [],
        }
        cluster.addons[name] = addon
        try:
            addon["podIdentityAssociations"] = self._identities(cluster, values, arn)
            self._install(values["clusterName"], name)
        except BaseException:
            # Otherwise the next attempt to create it would fail.
            cluster.addons.pop(name, None)
            _remove_identities(cluster, arn)
            raise
        return ActionResult({"addon": addon})

    def _install(self, cluster: str, addon: str) -> None:
        objects = self.service.kubernetes.objects(self.region, cluster)
        if addon == TRAINING_OPERATOR:
            # podwright's operator has no definitions of kinds; Kueue's release contains them.
            objects.install(addon)
        self.service.control_planes.apply_releases(self.region, cluster, addon)
        self.service.control_planes.start_operators(self.region, cluster, addon)
        objects.install(addon)
        if addon == ADDON:
            task_governance.install(objects)

    def _identities(self, cluster: EksCluster, values: JsonObject, owner: str) -> list[str]:
        return [
            self._add_identity(
                cluster, {"clusterName": values["clusterName"], "namespace": "kube-system", **item}, owner
            )["associationArn"]
            for item in values.get("podIdentityAssociations", [])
        ]

    def describe_addon(self) -> ActionResult:
        return ActionResult({"addon": self._find(self._cluster().addons, "addonName", "addon")})

    def list_addons(self) -> ActionResult:
        return self.page(list(self._cluster().addons), "addons", "maxResults", "nextToken")

    def update_addon(self) -> ActionResult:
        addon = self._find(self._cluster().addons, "addonName", "addon")
        changed = {
            key: value
            for key, value in self.arguments().items()
            if key in ("addonVersion", "serviceAccountRoleArn", "configurationValues")
        }
        addon.update(changed, modifiedAt=now())
        return ActionResult({"update": eks_upgrades.shown(eks_upgrades.new_update("AddonUpdate", []))})

    def delete_addon(self) -> ActionResult:
        """Delete an add-on with its software and the Pod Identity associations that it owns, or preserve both."""
        values, cluster = self.arguments(), self._cluster()
        addon = self._find(cluster.addons, "addonName", "addon")
        del cluster.addons[addon["addonName"]]
        if not values.get("preserve"):
            self._uninstall(cluster, addon)
        return ActionResult({"addon": {**addon, "status": "DELETING"}})

    def _uninstall(self, cluster: EksCluster, addon: JsonObject) -> None:
        name = cluster.description["name"]
        _remove_identities(cluster, addon["addonArn"])
        self.service.control_planes.uninstall(self.region, name, addon["addonName"])
        if addon["addonName"] == ADDON:
            task_governance.uninstall(self.service.kubernetes.objects(self.region, name))

    def create_access_entry(self) -> ActionResult:
        """Add an access entry. Refuses a cluster with authentication mode CONFIG_MAP."""
        values, cluster = self.arguments(), self._cluster()
        principal = values["principalArn"]
        if cluster.description["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise refuse(
                "InvalidRequestException",
                "The cluster's authentication mode must be set to one of [API, "
                "API_AND_CONFIG_MAP] to perform this operation.",
            )
        if principal in cluster.entries:
            raise refuse(
                "ResourceInUseException", "The specified access entry resource is already in use on this cluster."
            )
        cluster.entries[principal] = {
            "type": "STANDARD",
            "tags": {},
            **values,
            **new_names(values),
            "createdAt": now(),
            "modifiedAt": now(),
            "accessEntryArn": f"arn:aws:eks:{self.region}:{self.current_account}:access-entry/{values['clusterName']}"
            f"/{_entry_path(principal)}/{uuid.uuid4()}",
        }
        cluster.policies[principal] = {}
        return ActionResult({"accessEntry": cluster.entries[principal]})

    def describe_access_entry(self) -> ActionResult:
        return ActionResult({"accessEntry": self._find(self._cluster().entries, "principalArn", "access entry")})

    def list_access_entries(self) -> ActionResult:
        return self.page(list(self._cluster().entries), "accessEntries", "maxResults", "nextToken")

    def update_access_entry(self) -> ActionResult:
        entry = self._find(self._cluster().entries, "principalArn", "access entry")
        check_names(self.arguments())
        entry.update(
            {key: value for key, value in self.arguments().items() if key in ("kubernetesGroups", "username")},
            modifiedAt=now(),
        )
        return ActionResult({"accessEntry": entry})

    def delete_access_entry(self) -> ActionResult:
        entry = self._find(self._cluster().entries, "principalArn", "access entry")
        del self._cluster().entries[entry["principalArn"]]
        self._cluster().policies.pop(entry["principalArn"], None)
        return ActionResult({})

    def list_access_policies(self) -> ActionResult:
        policies = [{"name": name, "arn": f"{ARN}{name}"} for name in RULES]
        return self.page(policies, "accessPolicies", "maxResults", "nextToken")

    def associate_access_policy(self) -> ActionResult:
        """Associate a policy with an entry, or change the scope of an association."""
        values = self.arguments()
        entry = self._find(self._cluster().entries, "principalArn", "access entry")
        check_takes_policies(entry)
        principal = entry["principalArn"]
        association = {
            "policyArn": values["policyArn"],
            "accessScope": values["accessScope"],
            "associatedAt": now(),
            "modifiedAt": now(),
        }
        self._cluster().policies[principal][values["policyArn"]] = association
        return ActionResult(
            {"clusterName": values["clusterName"], "principalArn": principal, "associatedAccessPolicy": association}
        )

    def disassociate_access_policy(self) -> ActionResult:
        values = self.arguments()
        self._cluster().policies.get(values["principalArn"], {}).pop(values["policyArn"], None)
        return ActionResult({})

    def list_associated_access_policies(self) -> ActionResult:
        principal = self._find(self._cluster().entries, "principalArn", "access entry")["principalArn"]
        return ActionResult(
            {
                "clusterName": self.arguments()["clusterName"],
                "principalArn": principal,
                "associatedAccessPolicies": list(self._cluster().policies[principal].values()),
            }
        )

    def create_pod_identity_association(self) -> ActionResult:
        return ActionResult({"association": self._add_identity(self._cluster(), self.arguments())})

    def _add_identity(self, cluster: EksCluster, values: JsonObject, owner: str | None = None) -> JsonObject:
        """Add a Pod Identity association. A service account has at most one."""
        for item in cluster.identities.values():
            if (item["namespace"], item["serviceAccount"]) == (values["namespace"], values["serviceAccount"]):
                raise refuse("ResourceInUseException", f"Association already exists: {item['associationId']}")
        identifier = f"a-{uuid.uuid4().hex[:17]}"
        item = {
            **values,
            "associationId": identifier,
            "createdAt": now(),
            "modifiedAt": now(),
            "ownerArn": owner,
            "associationArn": f"arn:aws:eks:{self.region}:{self.current_account}:podidentityassociation"
            f"/{values['clusterName']}/{identifier}",
        }
        cluster.identities[identifier] = item
        return item

    def describe_pod_identity_association(self) -> ActionResult:
        return ActionResult({"association": self._find(self._cluster().identities, "associationId", "association")})

    def list_pod_identity_associations(self) -> ActionResult:
        return self.page(list(self._cluster().identities.values()), "associations", "maxResults", "nextToken")

    def update_pod_identity_association(self) -> ActionResult:
        item = self._find(self._cluster().identities, "associationId", "association")
        item.update(
            {
                key: value
                for key, value in self.arguments().items()
                if key in ("roleArn", "targetRoleArn", "disableSessionTags", "policy")
            },
            modifiedAt=now(),
        )
        return ActionResult({"association": item})

    def delete_pod_identity_association(self) -> ActionResult:
        item = self._find(self._cluster().identities, "associationId", "association")
        del self._cluster().identities[item["associationId"]]
        return ActionResult({"association": item})

    def tag_resource(self) -> ActionResult:
        return ActionResult({})

    def untag_resource(self) -> ActionResult:
        return ActionResult({})

    def list_tags_for_resource(self) -> ActionResult:
        eks_cluster = self.service.by_arn(self.arguments()["resourceArn"])
        return ActionResult({"tags": eks_cluster.description.get("tags", {}) if eks_cluster else {}})

    def _find(self, items: dict[str, Any], key: str, kind: str) -> JsonObject:
        result = items.get(self.arguments()[key])
        if result is None:
            raise refuse("ResourceNotFoundException", f"No {kind} found for {self.arguments()[key]} (sandbox)")
        return result


def _remove_identities(cluster: EksCluster, owner: str) -> None:
    """Remove the Pod Identity associations that an add-on owns, by its ARN."""
    for identifier, item in list(cluster.identities.items()):
        if item["ownerArn"] == owner:
            del cluster.identities[identifier]


def _entry_path(principal: str) -> str:
    """Return kind, account and name of the principal in the ARN of an entry."""
    kind, _, name = principal.split(":")[5].partition("/")
    return "/".join(filter(None, (kind, account_of(principal), name.rpartition("/")[2])))
