"""Buckets, keys, log groups, parameters, repositories, tables, queues, topics, schedule groups: held by moto."""

import json
from typing import Any

from ...protocol.json_objects import JsonObject
from .api import Api, call, scalar
from .base import HandlerError, Outcome, Provider, Request


class Bucket:
    """AWS::S3::Bucket: versioning, encryption, public access block, tags. A bucket with objects cannot be deleted."""

    def create(self, request: Request) -> Outcome:
        """Create the bucket and configure it."""
        s3, name = request.client("s3"), request.properties.get("BucketName") or request.name(63, lower=True)
        # S3 takes every region as a constraint but the one that it has without any.
        location = (
            {}
            if request.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": request.region}}
        )
        s3.create_bucket(Bucket=name, **location)
        self._configure(s3, name, request.properties)
        domain = f"{name}.s3.{request.region}.amazonaws.com"
        return Outcome(
            name,
            {
                "Arn": f"arn:aws:s3:::{name}",
                "DomainName": f"{name}.s3.amazonaws.com",
                "RegionalDomainName": domain,
                "DualStackDomainName": f"{name}.s3.dualstack.{request.region}.amazonaws.com",
                "WebsiteURL": f"http://{name}.s3-website-{request.region}.amazonaws.com",
            },
        )

    def update(self, request: Request) -> Outcome:
        """Configure the bucket anew."""
        self._configure(request.client("s3"), request.physical_id, request.properties)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the bucket; S3 refuses while objects or versions are in it."""
        s3, name = request.client("s3"), request.physical_id
        if s3.list_object_versions(Bucket=name, MaxKeys=1).get("Versions"):
            raise HandlerError.saying(
                "The bucket you tried to delete is not empty. You must delete all versions in "
                "the bucket. (Service: S3, Status Code: 409)",
                "GeneralServiceException",
            )
        s3.delete_bucket(Bucket=name)

    def _configure(self, s3: Any, name: str, properties: JsonObject) -> None:
        """Apply a bucket's properties, each by its own call of S3."""
        if "VersioningConfiguration" in properties:
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])
        if "PublicAccessBlockConfiguration" in properties:
            s3.put_public_access_block(
                Bucket=name,
                # Templates may write a boolean as text, which the API does not take.
                PublicAccessBlockConfiguration={
                    key: str(value).lower() == "true"
                    for key, value in properties["PublicAccessBlockConfiguration"].items()
                },
            )
        if "BucketEncryption" in properties:
            rules = [
                {"ApplyServerSideEncryptionByDefault": rule.get("ServerSideEncryptionByDefault", {})}
                for rule in properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            ]
            s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})
        if properties.get("Tags"):
            s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": properties["Tags"]})


class BucketPolicy:
    """AWS::S3::BucketPolicy."""

    def create(self, request: Request) -> Outcome:
        """Put the policy."""
        bucket = request.properties["Bucket"]
        request.client("s3").put_bucket_policy(Bucket=bucket, Policy=json.dumps(request.properties["PolicyDocument"]))
        return Outcome(bucket)

    def update(self, request: Request) -> Outcome:
        """Put the new policy."""
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete the policy."""
        request.client("s3").delete_bucket_policy(Bucket=request.properties["Bucket"])


class Parameter:
    """AWS::SSM::Parameter."""

    def create(self, request: Request) -> Outcome:
        """Put the parameter."""
        name = request.properties.get("Name") or request.name()
        self._put(request, name, overwrite=False)
        return Outcome(name, {"Type": request.properties["Type"], "Value": request.properties["Value"]})

    def update(self, request: Request) -> Outcome:
        """Overwrite the value."""
        self._put(request, request.physical_id, overwrite=True)
        return Outcome(request.physical_id, {"Type": request.properties["Type"], "Value": request.properties["Value"]})

    def delete(self, request: Request) -> None:
        """Delete the parameter."""
        request.client("ssm").delete_parameter(Name=request.physical_id)

    def _put(self, request: Request, name: str, *, overwrite: bool) -> None:
        values = {key: value for key, value in request.properties.items() if key != "Tags"}
        call(request, "ssm", "put_parameter", {**values, "Name": name, "Overwrite": overwrite})


class Key:
    """AWS::KMS::Key; deleting schedules the deletion, as KMS does."""

    def create(self, request: Request) -> Outcome:
        """Create the key with its policy."""
        properties = request.properties
        optional = {"Policy": json.dumps(properties["KeyPolicy"])} if "KeyPolicy" in properties else {}
        if "Description" in properties:
            optional["Description"] = properties["Description"]
        key = request.client("kms").create_key(**optional)["KeyMetadata"]
        self._rotation(request, key["KeyId"])
        return Outcome(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(self, request: Request) -> Outcome:
        """Replace the policy and the rotation setting."""
        if "KeyPolicy" in request.properties:
            request.client("kms").put_key_policy(
                KeyId=request.physical_id, PolicyName="default", Policy=json.dumps(request.properties["KeyPolicy"])
            )
        self._rotation(request, request.physical_id)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Schedule the deletion."""
        request.client("kms").schedule_key_deletion(
            KeyId=request.physical_id, PendingWindowInDays=int(request.properties.get("PendingWindowInDays", 30))
        )

    def _rotation(self, request: Request, key: str) -> None:
        if str(request.properties.get("EnableKeyRotation", False)).lower() == "true":
            request.client("kms").enable_key_rotation(KeyId=key)


class Topic(Api):
    """AWS::SNS::Topic."""

    def create(self, request: Request) -> Outcome:
        """Create the topic; the name is the last part of its ARN."""
        outcome = super().create(request)
        return Outcome(
            outcome.physical_id,
            {
                **outcome.attributes,
                "TopicArn": outcome.physical_id,
                "TopicName": outcome.physical_id.rsplit(":", 1)[-1],
            },
        )


class TopicPolicy:
    """AWS::SNS::TopicPolicy: one policy of several topics. Without it each has the one that SNS gives a new topic."""

    def create(self, request: Request) -> Outcome:
        """Put the policy in the place of the topics' own."""
        self._put(request, request.properties["PolicyDocument"])
        return Outcome(request.name(), {"Id": request.name()})

    def update(self, request: Request) -> Outcome:
        """Put the new policy."""
        self._put(request, request.properties["PolicyDocument"])
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Give back what a new topic has: whoever may act in the account may use it."""
        owners = {"StringEquals": {"AWS:SourceOwner": request.clients.account}}
        actions = [f"SNS:{action}" for action in ("GetTopicAttributes", "SetTopicAttributes", "Subscribe", "Publish")]
        statement = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": actions, "Condition": owners}
        self._put(request, {"Version": "2008-10-17", "Statement": [statement]})

    def _put(self, request: Request, policy: JsonObject) -> None:
        for topic in request.properties["Topics"]:
            request.client("sns").set_topic_attributes(
                TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(policy)
            )


class Queue:
    """AWS::SQS::Queue."""

    def create(self, request: Request) -> Outcome:
        """Create the queue."""
        name = request.properties.get("QueueName") or request.name(75)
        url = request.client("sqs").create_queue(QueueName=name, Attributes=self._attributes(request))["QueueUrl"]
        return Outcome(url, {"Arn": request.arn("sqs", name), "QueueName": name, "QueueUrl": url})

    def update(self, request: Request) -> Outcome:
        """Set the attributes."""
        request.client("sqs").set_queue_attributes(QueueUrl=request.physical_id, Attributes=self._attributes(request))
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the queue."""
        request.client("sqs").delete_queue(QueueUrl=request.physical_id)

    def _attributes(self, request: Request) -> dict[str, str]:
        return {
            key: scalar(value, "string")
            for key, value in request.properties.items()
            if key not in ("QueueName", "Tags")
        }


def _table(request: Request) -> JsonObject:
    """Encryption is called otherwise in the API; recovery and the age of items are calls of their own."""
    properties = {key: value for key, value in request.properties.items() if key != "SSESpecification"}
    if encryption := request.properties.get("SSESpecification"):
        properties["SSESpecification"] = {**encryption, "Enabled": encryption["SSEEnabled"]}
    return properties


def _table_settings(request: Request, physical_id: str) -> JsonObject:
    # DynamoDB refuses to turn on what is on already.
    if "TimeToLiveSpecification" in request.properties and not request.previous:
        values = {"TableName": physical_id, "TimeToLiveSpecification": request.properties["TimeToLiveSpecification"]}
        call(request, "dynamodb", "update_time_to_live", values)
    return {}


def _log_group(request: Request, physical_id: str) -> JsonObject:
    name = request.properties.get("LogGroupName", physical_id)
    if "RetentionInDays" in request.properties:
        request.client("logs").put_retention_policy(
            logGroupName=name, retentionInDays=int(request.properties["RetentionInDays"])
        )
    return {"Arn": request.arn("logs", f"log-group:{physical_id}:*")}


def _repository(request: Request, physical_id: str) -> JsonObject:
    return {
        "RepositoryUri": f"{request.clients.account}.dkr.ecr.{request.region}.amazonaws.com/{physical_id}",
        "Arn": request.arn("ecr", f"repository/{physical_id}"),
    }


STORES: dict[str, Provider] = {
    "AWS::FSx::FileSystem": Api(
        "fsx",
        "create_file_system",
        "FileSystem.FileSystemId",
        {"FileSystemId": ""},
        "delete_file_system",
        ("update_file_system",),
        attributes={
            "Id": "FileSystem.FileSystemId",
            "ResourceARN": "FileSystem.ResourceARN",
            "DNSName": "FileSystem.DNSName",
            "LustreMountName": "FileSystem.LustreConfiguration.MountName",
            "RootVolumeId": "FileSystem.OpenZFSConfiguration.RootVolumeId",
        },
    ),
    "AWS::FSx::DataRepositoryAssociation": Api(
        "fsx",
        "create_data_repository_association",
        "Association.AssociationId",
        {"AssociationId": ""},
        "delete_data_repository_association",
        ("update_data_repository_association",),
        attributes={"AssociationId": "Association.AssociationId", "ResourceARN": "Association.ResourceARN"},
    ),
    "AWS::S3::Bucket": Bucket(),
    "AWS::S3::BucketPolicy": BucketPolicy(),
    "AWS::SSM::Parameter": Parameter(),
    "AWS::KMS::Key": Key(),
    "AWS::KMS::Alias": Api("kms", "create_alias", "AliasName", {"AliasName": ""}, "delete_alias", ("update_alias",)),
    "AWS::Logs::LogGroup": Api(
        "logs",
        "create_log_group",
        "LogGroupName",
        {"logGroupName": ""},
        "delete_log_group",
        name="LogGroupName",
        after=_log_group,
        translate=lambda request: {
            key: value for key, value in request.properties.items() if key in ("LogGroupName", "KmsKeyId")
        },
    ),
    "AWS::DynamoDB::Table": Api(
        "dynamodb",
        "create_table",
        "TableDescription.TableName",
        {"TableName": ""},
        "delete_table",
        name="TableName",
        attributes={"Arn": "TableDescription.TableArn"},
        translate=_table,
        after=_table_settings,
    ),
    "AWS::ECR::Repository": Api(
        "ecr",
        "create_repository",
        "repository.repositoryName",
        {"repositoryName": ""},
        "delete_repository",
        name="RepositoryName",
        name_lower=True,
        after=_repository,
        translate=lambda request: {
            key: value
            for key, value in request.properties.items()
            if key in ("RepositoryName", "ImageTagMutability", "ImageScanningConfiguration")
        },
    ),
    "AWS::SNS::Topic": Topic(
        "sns",
        "create_topic",
        "TopicArn",
        {"TopicArn": ""},
        "delete_topic",
        translate=lambda request: {"Name": request.properties.get("TopicName") or request.name()},
    ),
    "AWS::SNS::TopicPolicy": TopicPolicy(),
    "AWS::SNS::Subscription": Api("sns", "subscribe", "SubscriptionArn", {"SubscriptionArn": ""}, "unsubscribe"),
    "AWS::SQS::Queue": Queue(),
    "AWS::Scheduler::ScheduleGroup": Api(
        "scheduler", "create_schedule_group", "Name", {"Name": ""}, "delete_schedule_group", name="Name"
    ),
}
