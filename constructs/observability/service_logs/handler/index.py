"""Sets how long a log group of another service is kept, and which key encrypts it.

Such a group is made by its service when it writes the first time, so a template that made it would fail, or make the
service fail. Here it is made if it is not there yet, and otherwise changed. Nothing is ever deleted: when the resource
goes, the group stays as it is.

Without `KmsKeyArn` the group has CloudWatch Logs' own key: one of ours that an earlier deployment gave it encrypts what
comes from then on no more.

Source: CloudWatch Logs API Reference, CreateLogGroup, PutRetentionPolicy, AssociateKmsKey and DisassociateKmsKey,
2026-11.
"""

import logging
from typing import Any, Final

import boto3
from botocore.config import Config

from ....common.handler_runtime.response import Answer, answering

_RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)

logger = logging.getLogger()


def handle(event: dict[str, Any], _: Any) -> Answer:
    """Carry out one request."""
    if event["RequestType"] == "Delete":
        return Answer(event["PhysicalResourceId"])
    properties = event["ResourceProperties"]
    name: str = properties["LogGroup"]
    encryption = {"kmsKeyId": properties["KmsKeyArn"]} if "KmsKeyArn" in properties else {}
    client = boto3.Session().client("logs", config=_RETRIES)
    # Creating first and asking never: between a question and a creation the service may make the group itself.
    try:
        client.create_log_group(logGroupName=name, **encryption)
    except client.exceptions.ResourceAlreadyExistsException:
        change = client.associate_kms_key if encryption else client.disassociate_kms_key
        change(logGroupName=name, **encryption)
    client.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionDays"]))
    logger.info("%s is kept for %s days", name, properties["RetentionDays"])
    return Answer(name)


handler = answering(handle)
