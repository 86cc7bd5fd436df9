"""What CloudFormation does with a stack: order, update in place or by replacement, rollback, deletion."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]


def parameter(value: str, **extra: Any) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}, **extra}


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


BROKEN = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "Wrong", "Value": "x"}}


def test_dependencies_come_first_and_go_last(stack: StackUnderTest) -> None:
    resources = {"Last": parameter("x", DependsOn="Middle"), "Middle": parameter("of"), "First": parameter("a")}
    resources["Middle"]["Properties"]["Value"] = {"Fn::Sub": "of ${First}"}
    assert stack.create(resources) == "CREATE_COMPLETE"
    created = [line.split()[0] for line in stack.log() if line.endswith(" CREATE_COMPLETE")]
    assert created == ["First", "Middle", "Last", stack.name]
    stack_id = stack.describe()["StackId"]
    assert stack.delete() == "DELETE_COMPLETE"
    stack.name, name = stack_id, stack.name
    deleted = [line.split()[0] for line in stack.log() if line.endswith(" DELETE_COMPLETE")]
    assert deleted == ["Last", "Middle", "First", name]


def test_what_somebody_else_deleted_is_deleted(stack: StackUnderTest, aws: Aws) -> None:
    """Each service says in its own words that it has no such thing."""
    trust = {"Version": "2012-10-17", "Statement": []}
    types = {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Group": {"Type": "AWS::Logs::LogGroup"},
        "Parameter": parameter("x"),
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}},
    }
    assert stack.create(types) == "CREATE_COMPLETE"
    aws("s3").delete_bucket(Bucket=stack.physical_id("Bucket"))
    aws("logs").delete_log_group(logGroupName=stack.physical_id("Group"))
    aws("ssm").delete_parameter(Name=stack.physical_id("Parameter"))
    aws("sqs").delete_queue(QueueUrl=stack.physical_id("Queue"))
    aws("iam").delete_role(RoleName=stack.physical_id("Role"))
    assert stack.delete() == "DELETE_COMPLETE"


def test_a_failed_creation_is_rolled_back_and_says_why(stack: StackUnderTest, aws: Aws) -> None:
    resources = {"Good": parameter("kept"), "Bad": {**BROKEN, "DependsOn": "Good"}}
    assert stack.create(resources) == "ROLLBACK_COMPLETE"
    reason = stack.reasons("Bad")
    assert "Properties validation failed for resource Bad with message:\n#/Type: Wrong is not a valid enum" in reason
    assert "The following resource(s) failed to create: [Bad]." in stack.reasons(stack.name)
    name = next(event["PhysicalResourceId"] for event in stack.events() if event["LogicalResourceId"] == "Good"
                and event["ResourceStatus"] == "CREATE_COMPLETE")  # fmt: skip
    with pytest.raises(ClientError, match="ParameterNotFound"):
        aws("ssm").get_parameter(Name=name)


def test_without_rollback_what_was_made_stays(stack: StackUnderTest, aws: Aws) -> None:
    resources = {"Good": parameter("kept"), "Bad": {**BROKEN, "DependsOn": "Good"}}
    assert stack.create(resources, options={"DisableRollback": True}) == "CREATE_FAILED"
    assert aws("ssm").get_parameter(Name=stack.physical_id("Good"))["Parameter"]["Value"] == "kept"
    assert stack.update({"Good": parameter("kept"), "Bad": parameter("fixed", DependsOn="Good")}) == "UPDATE_COMPLETE"


def test_an_update_changes_in_place(stack: StackUnderTest, aws: Aws) -> None:
    stack.create({"One": parameter("old"), "Two": parameter("same")})
    before = stack.physical_id("One")
    assert stack.update({"One": parameter("new"), "Two": parameter("same")}) == "UPDATE_COMPLETE"
    assert stack.physical_id("One") == before
    assert aws("ssm").get_parameter(Name=before)["Parameter"]["Value"] == "new"
    assert "Two UPDATE_COMPLETE" not in stack.log()


def test_a_create_only_property_replaces_and_what_refers_to_it_follows(stack: StackUnderTest, aws: Aws) -> None:
    def resources(name: str) -> dict[str, Any]:
        queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}
        return {"Queue": queue, "User": parameter("x") | {"Properties": {"Type": "String", "Value": ref("Queue")}}}

    stack.create(resources("replaced-one"))
    user = stack.physical_id("User")
    assert stack.update(resources("replaced-two")) == "UPDATE_COMPLETE"
    assert stack.physical_id("Queue").endswith("/replaced-two")
    assert stack.physical_id("User") == user
    assert aws("ssm").get_parameter(Name=user)["Parameter"]["Value"].endswith("/replaced-two")
    urls = aws("sqs").list_queues(QueueNamePrefix="replaced-").get("QueueUrls", [])
    assert [url.rsplit("/", 1)[-1] for url in urls] == ["replaced-two"]
    log = stack.log()
    cleanup = log.index(f"{stack.name} UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
    assert log.index("User UPDATE_COMPLETE") < cleanup < log.index("Queue DELETE_COMPLETE")


def test_a_failed_update_brings_everything_back(stack: StackUnderTest, aws: Aws) -> None:
    old = {
        "Changed": parameter("old"),
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "restored"}},
        "Removed": parameter("there"),
    }
    stack.create(old)
    changed, removed, queue = (stack.physical_id(name) for name in ("Changed", "Removed", "Queue"))
    new = {
        "Changed": parameter("new"),
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "never"}},
        "Added": parameter("briefly"),
        "Bad": {**BROKEN, "DependsOn": ["Changed", "Queue", "Added"]},
    }
    assert stack.update(new) == "UPDATE_ROLLBACK_COMPLETE"
    ssm = aws("ssm")
    assert ssm.get_parameter(Name=changed)["Parameter"]["Value"] == "old"
    assert ssm.get_parameter(Name=removed)["Parameter"]["Value"] == "there"
    assert stack.physical_id("Queue") == queue
    assert aws("sqs").list_queues(QueueNamePrefix="never").get("QueueUrls", []) == []
    assert {item["LogicalResourceId"] for item in stack.client.describe_stack_resources(StackName=stack.name)[
        "StackResources"]} == {"Changed", "Queue", "Removed"}  # fmt: skip
    assert stack.update({**old, "Changed": parameter("newer")}) == "UPDATE_COMPLETE"


def test_a_named_resource_cannot_be_replaced_under_its_name(stack: StackUnderTest) -> None:
    def resources(capacity: str) -> dict[str, Any]:
        properties = {"RepositoryName": "fixed-name", "EncryptionConfiguration": {"EncryptionType": capacity}}
        return {"Repository": {"Type": "AWS::ECR::Repository", "Properties": properties}}

    stack.create(resources("AES256"))
    assert stack.update(resources("KMS")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "a custom-named resource requires replacing. Rename fixed-name" in stack.reasons("Repository")


def test_a_resource_keeps_its_type(stack: StackUnderTest) -> None:
    stack.create({"One": parameter("x")})
    with pytest.raises(ClientError, match=r"modifies resource type of the following resources: \[One\]"):
        stack.update({"One": {"Type": "AWS::SQS::Queue"}})


def test_what_exists_already_is_not_taken_over(stack: StackUnderTest, other_stack: StackUnderTest) -> None:
    named = {"One": parameter("x") | {"Properties": {"Type": "String", "Value": "x", "Name": "owned"}}}
    assert stack.create(named) == "CREATE_COMPLETE"
    assert other_stack.create(named) == "ROLLBACK_COMPLETE"
    assert "already exists" in other_stack.reasons("One")


def test_cloudformations_limits(stack: StackUnderTest) -> None:
    with pytest.raises(ClientError, match="less than or equal to 51200"):
        stack.create({"One": parameter("x" * 60_000)})
    with pytest.raises(ClientError, match="Number of resources, 501, is greater than maximum allowed, 500"):
        stack.create({f"R{i}": {"Type": "AWS::SQS::Queue"} for i in range(501)})


def test_nothing_to_update(stack: StackUnderTest) -> None:
    stack.create({"One": parameter("same")})
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        stack.update({"One": parameter("same")})


def test_termination_protection(stack: StackUnderTest) -> None:
    stack.create({"One": parameter("x")}, options={"EnableTerminationProtection": True})
    with pytest.raises(ClientError, match="cannot be deleted while TerminationProtection is enabled"):
        stack.delete()
    stack.client.update_termination_protection(StackName=stack.name, EnableTerminationProtection=False)
    assert stack.delete() == "DELETE_COMPLETE"


def test_retained_resources_stay(stack: StackUnderTest, aws: Aws) -> None:
    stack.create({"Kept": parameter("x", DeletionPolicy="Retain"), "Gone": parameter("y")})
    retained, stack_id = stack.physical_id("Kept"), stack.describe()["StackId"]
    assert stack.delete() == "DELETE_COMPLETE"
    assert aws("ssm").get_parameter(Name=retained)["Parameter"]["Value"] == "x"
    stack.name = stack_id
    assert "Kept DELETE_SKIPPED" in stack.log()


def test_a_replaced_resource_that_is_retained_stays(stack: StackUnderTest, aws: Aws) -> None:
    def queue(name: str) -> dict[str, Any]:
        properties = {"QueueName": name}
        return {"Queue": {"Type": "AWS::SQS::Queue", "Properties": properties, "UpdateReplacePolicy": "Retain"}}

    stack.create(queue("retained-one"))
    stack.update(queue("retained-two"))
    assert len(aws("sqs").list_queues(QueueNamePrefix="retained-")["QueueUrls"]) == 2


def test_a_bucket_with_objects_cannot_be_deleted(stack: StackUnderTest, aws: Aws) -> None:
    stack.create({"Bucket": {"Type": "AWS::S3::Bucket"}})
    bucket = stack.physical_id("Bucket")
    aws("s3").put_object(Bucket=bucket, Key="something", Body=b"x")
    assert stack.delete() == "DELETE_FAILED"
    assert "The bucket you tried to delete is not empty" in stack.reasons("Bucket")
    aws("s3").delete_object(Bucket=bucket, Key="something")
    assert stack.delete() == "DELETE_COMPLETE"


def test_a_retained_file_system_holds_its_subnet_and_security_group(stack: StackUnderTest, aws: Aws) -> None:
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.77.0.0/16"}},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {"VpcId": ref("Vpc"), "CidrBlock": "10.77.0.0/24", "AvailabilityZoneId": "usw2-az2"},
        },
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"GroupDescription": "of the file system", "VpcId": ref("Vpc")},
        },
        "Lustre": {
            "Type": "AWS::FSx::FileSystem",
            "DeletionPolicy": "Retain",
            "Properties": {
                "FileSystemType": "LUSTRE",
                "StorageCapacity": 2400,
                "SubnetIds": [ref("Subnet")],
                "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
                "LustreConfiguration": lustre,
            },
        },
    }
    stack.create(resources)
    file_system = stack.physical_id("Lustre")
    assert stack.delete() == "DELETE_FAILED"
    assert "has dependencies and cannot be deleted" in stack.reasons("Subnet")
    assert "has a dependent object" in stack.reasons("Group")
    assert "Vpc DELETE_IN_PROGRESS" not in stack.log()
    aws("fsx").delete_file_system(FileSystemId=file_system)
    assert stack.delete() == "DELETE_COMPLETE"


@pytest.mark.parametrize("zone", ["usw2-az2", "usw2-az3"])
def test_a_file_system_in_two_zones_stands_in_both(stack: StackUnderTest, aws: Aws, zone: str) -> None:
    def subnet(zone: str, block: str) -> dict[str, Any]:
        properties = {"VpcId": ref("Vpc"), "CidrBlock": block, "AvailabilityZoneId": zone}
        return {"Type": "AWS::EC2::Subnet", "Properties": properties}

    zfs = {"DeploymentType": "MULTI_AZ_1", "ThroughputCapacity": 160, "PreferredSubnetId": ref("One")}
    home = {"StorageCapacity": 64, "SubnetIds": [ref("One"), ref("Two")], "OpenZFSConfiguration": zfs}
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.77.0.0/16"}},
        "One": subnet("usw2-az2", "10.77.0.0/24"),
        "Two": subnet(zone, "10.77.1.0/24"),
        "Home": {"Type": "AWS::FSx::FileSystem", "Properties": {"FileSystemType": "OPENZFS"} | home},
    }
    if zone == "usw2-az2":
        assert stack.create(resources) == "ROLLBACK_COMPLETE"
        assert "two zones" in stack.reasons("Home")
        return
    stack.create(resources)
    interfaces = aws("ec2").describe_network_interfaces()["NetworkInterfaces"]
    of_home = {each["SubnetId"] for each in interfaces if stack.physical_id("Home") in each["Description"]}
    assert of_home == {stack.physical_id("One"), stack.physical_id("Two")}
    assert stack.delete() == "DELETE_COMPLETE"


def test_stack_tags_reach_resources_below_their_own(stack: StackUnderTest, aws: Aws) -> None:
    vpc = {"CidrBlock": "10.78.0.0/16", "Tags": [{"Key": "own", "Value": "kept"}, {"Key": "both", "Value": "own"}]}
    tags = [{"Key": "both", "Value": "stack"}, {"Key": "team", "Value": "ml"}]
    stack.create({"Vpc": {"Type": "AWS::EC2::VPC", "Properties": vpc}}, options={"Tags": tags})
    actual = aws("ec2").describe_vpcs(VpcIds=[stack.physical_id("Vpc")])["Vpcs"][0]["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in actual} == {"own": "kept", "both": "own", "team": "ml"}


def test_a_paused_failure_is_rolled_back_on_demand(stack: StackUnderTest, aws: Aws) -> None:
    stack.create({"One": parameter("old")})
    name = stack.physical_id("One")
    broken = {"One": parameter("new"), "Bad": {**BROKEN, "DependsOn": "One"}}
    assert stack.update(broken, options={"DisableRollback": True}) == "UPDATE_FAILED"
    assert aws("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "new"
    stack.client.rollback_stack(StackName=stack.name)
    assert stack.wait() == "UPDATE_ROLLBACK_COMPLETE"
    assert aws("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "old"
    with pytest.raises(ClientError, match="can not be rolled back"):
        stack.client.rollback_stack(StackName=stack.name)


def test_a_stack_in_a_stack(stack: StackUnderTest, aws: Aws) -> None:
    s3 = aws("s3")
    s3.create_bucket(Bucket="nested-templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})

    def resources(value: str, **more: Any) -> dict[str, Any]:
        inner = {"One": parameter("x") | {"Properties": {"Type": "String", "Value": ref("Value")}}, **more}
        template = {"Parameters": {"Value": {"Type": "String"}}, "Resources": inner,
                    "Outputs": {"Name": {"Value": ref("One")}}}  # fmt: skip
        s3.put_object(Bucket="nested-templates", Key=f"{value}.json", Body=json.dumps(template).encode())
        url = f"https://s3.us-west-2.amazonaws.com/nested-templates/{value}.json"
        return {
            "Inner": {
                "Type": "AWS::CloudFormation::Stack",
                "Properties": {"TemplateURL": url, "Parameters": {"Value": value}},
            },
            "Outer": parameter("x") | {
                "Properties": {"Type": "String", "Value": {"Fn::GetAtt": ["Inner", "Outputs.Name"]}}
            },
        }  # fmt: skip

    assert stack.create(resources("first")) == "CREATE_COMPLETE", stack.reasons("Inner")
    inner = stack.physical_id("Inner")
    name = aws("ssm").get_parameter(Name=stack.physical_id("Outer"))["Parameter"]["Value"]
    assert aws("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "first"
    assert stack.update(resources("second")) == "UPDATE_COMPLETE"
    assert aws("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "second"
    assert stack.update(resources("third", Bad=BROKEN)) == "UPDATE_ROLLBACK_COMPLETE"
    assert "was not successfully created or updated" in stack.reasons("Inner")
    assert aws("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "second"
    assert stack.delete() == "DELETE_COMPLETE"
    assert stack.describe(inner)["StackStatus"] == "DELETE_COMPLETE"


def test_dynamic_references(stack: StackUnderTest, aws: Aws) -> None:
    aws("secretsmanager").create_secret(Name="login", SecretString=json.dumps({"user": "ml"}))
    aws("ssm").put_parameter(Name="/plain", Value="text", Type="String")
    secret = "{{resolve:secretsmanager:login:SecretString:user}}-{{resolve:ssm:/plain}}"
    assert stack.create({"One": parameter(secret)}) == "CREATE_COMPLETE", stack.reasons("One")
    assert aws("ssm").get_parameter(Name=stack.physical_id("One"))["Parameter"]["Value"] == "ml-text"
