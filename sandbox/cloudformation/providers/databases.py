"""Secrets and Aurora clusters: held by moto's backends."""

import json

from ...protocol.json_objects import JsonObject
from .api import Api, call
from .base import Outcome, Provider, Request


class Secret(Api):
    """AWS::SecretsManager::Secret, with a value of the template or one that Secrets Manager makes once."""

    def update(self, request: Request) -> Outcome:
        """Update it. A made value stays: CloudFormation makes another only when it is asked for differently."""
        same = request.previous.get("GenerateSecretString") == request.properties.get("GenerateSecretString")
        values = request.properties if same else _with_value(request)
        call(request, "secretsmanager", "update_secret", {**values, "SecretId": request.physical_id})
        return Outcome(request.physical_id, request.attributes)


def _with_value(request: Request) -> JsonObject:
    made = request.properties.get("GenerateSecretString")
    if not made:
        return request.properties
    password = call(request, "secretsmanager", "get_random_password", made)["RandomPassword"]
    template, key = made.get("SecretStringTemplate"), made.get("GenerateStringKey")
    value = json.dumps({**json.loads(template), key: password}) if template and key else password
    return {**request.properties, "SecretString": value}


DATABASES: dict[str, Provider] = {
    "AWS::SecretsManager::Secret": Secret(
        "secretsmanager",
        "create_secret",
        "ARN",
        {"SecretId": ""},
        "delete_secret",
        name="Name",
        attributes={"Id": "ARN"},
        translate=_with_value,
    ),
    "AWS::RDS::DBSubnetGroup": Api(
        "rds",
        "create_db_subnet_group",
        "DBSubnetGroup.DBSubnetGroupName",
        {"DBSubnetGroupName": ""},
        "delete_db_subnet_group",
        ("modify_db_subnet_group",),
        name="DBSubnetGroupName",
        name_lower=True,
    ),
    "AWS::RDS::DBClusterParameterGroup": Api(
        "rds",
        "create_db_cluster_parameter_group",
        "DBClusterParameterGroup.DBClusterParameterGroupName",
        {"DBClusterParameterGroupName": ""},
        "delete_db_cluster_parameter_group",
        name="DBClusterParameterGroupName",
        name_lower=True,
        translate=lambda request: {
            "DBClusterParameterGroupName": request.name(lower=True),
            "DBParameterGroupFamily": request.properties["Family"],
            "Description": request.properties["Description"],
        },
    ),
    "AWS::RDS::DBCluster": Api(
        "rds",
        "create_db_cluster",
        "DBCluster.DBClusterIdentifier",
        {"DBClusterIdentifier": ""},
        "delete_db_cluster",
        ("modify_db_cluster",),
        name="DBClusterIdentifier",
        name_lower=True,
        attributes={
            "DBClusterArn": "DBCluster.DBClusterArn",
            "Endpoint.Address": "DBCluster.Endpoint",
            "Endpoint.Port": "DBCluster.Port",
            "ReadEndpoint.Address": "DBCluster.ReaderEndpoint",
        },
    ),
    "AWS::RDS::DBInstance": Api(
        "rds",
        "create_db_instance",
        "DBInstance.DBInstanceIdentifier",
        {"DBInstanceIdentifier": ""},
        "delete_db_instance",
        ("modify_db_instance",),
        name="DBInstanceIdentifier",
        name_lower=True,
    ),
}
