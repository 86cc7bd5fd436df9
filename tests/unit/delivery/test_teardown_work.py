"""What a teardown takes for nobody's, what it leaves to people, and the order in which it deletes what is named."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.teardown import contents, data, network
from podwright.operations.teardown.data import delete_data
from podwright.operations.teardown.network import network_blockers, remove
from podwright.operations.teardown.plan import Blocker, Kept

OWN = "111122223333"
EMPTY = {
    "DescribeVpcEndpoints": {"VpcEndpoints": []},
    "DescribeSecurityGroups": {"SecurityGroups": []},
    "DescribeFileSystems": {"FileSystems": []},
    "DescribeNatGateways": {"NatGateways": []},
    "DescribeNetworkInterfaces": {"NetworkInterfaces": []},
    "DescribeVpcPeeringConnections": {"VpcPeeringConnections": []},
}
Answer = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


class Aws:
    """Answers of AWS by operation, and what it was asked to change."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = dict(EMPTY)
        self.changes: list[tuple[str, Any]] = []

    def call(self, client: Any, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation == "DescribeLoadBalancers":
            v2 = client.meta.service_model.service_name == "elbv2"
            return {"LoadBalancers": []} if v2 else {"LoadBalancerDescriptions": []}
        if not operation.startswith(("Describe", "List")):
            self.changes.append((operation, next(iter(params.values()))))
        answer = self.answers.get(operation, {})
        return answer(params) if callable(answer) else answer


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    made = Aws()
    # A function, not a bound method: a client passes itself.
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *arguments: made.call(*arguments))
    monkeypatch.setattr(network, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(data, "_POLL_SECONDS", 0.0)
    return made


@pytest.fixture(scope="module")
def account() -> Account:
    return Account(OWN, "us-west-2", "http://localhost:9", {})


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "Delete")


def nothing(*_: object) -> None:
    pass


CNI = {"TagSet": [{"Key": "node.k8s.amazonaws.com/instance_id", "Value": "i-1"}]}
INTERFACES: dict[str, tuple[dict[str, Any], tuple[str, str, str] | None]] = {
    "cni by its words": ({"Description": "aws-K8S-i-1"}, ("interface", "podwright", "the VPC CNI left it behind")),
    "cni by its tags": (CNI, ("interface", "podwright", "the VPC CNI left it behind")),
    "lambda": ({"Description": "AWS Lambda VPC ENI-f"}, ("interface", "podwright", "Lambda left it behind")),
    "efa": ({"InterfaceType": "efa-only"}, ("interface", "podwright", "EFA left it behind")),
    "somebody's": ({"Description": "my proxy"}, ("interface", "you", "of unknown origin (my proxy)")),
    "eks of another cluster": ({"Description": "Amazon EKS other"}, ("interface", "podwright", "EKS left it behind")),
    "eks of ours, which goes": ({"Description": "Amazon EKS ours"}, None),
    "a service takes it away itself": ({"Description": "ELB app/x", "RequesterManaged": True}, None),
    "still attached by a service": ({"Description": "aws-K8S-i-1", "Status": "in-use"}, None),
    "of an endpoint": ({"NetworkInterfaceId": "eni-endpoint"}, None),
    "of a file system": ({"NetworkInterfaceId": "eni-lustre"}, None),
    "of a NAT gateway": ({"NetworkInterfaceId": "eni-nat"}, None),
    "of an instance of the account": (
        {"Status": "in-use", "Attachment": {"InstanceId": "i-1", "InstanceOwnerId": OWN}},
        ("instance", "you", "interface eni-1 of instance i-1"),
    ),
    "of a node, whose instance is HyperPod's": (
        {"Status": "in-use", "Attachment": {"InstanceId": "i-1", "InstanceOwnerId": "444455556666"}},
        None,
    ),
}


@pytest.mark.parametrize("case", INTERFACES)
def test_whose_an_interface_is(aws: Aws, account: Account, case: str) -> None:
    provided, expected = INTERFACES[case]
    row = {"NetworkInterfaceId": "eni-1", "Status": "available", **provided}
    aws.answers |= {
        "DescribeNetworkInterfaces": {"NetworkInterfaces": [row]},
        "DescribeVpcEndpoints": {"VpcEndpoints": [{"NetworkInterfaceIds": ["eni-endpoint"], "State": "available"}]},
        "DescribeFileSystems": {"FileSystems": [{"NetworkInterfaceIds": ["eni-lustre"]}]},
        "DescribeNatGateways": {"NatGateways": [{"NatGatewayAddresses": [{"NetworkInterfaceId": "eni-nat"}, {}]}]},
    }
    blockers = network_blockers(account, "prod-network", "vpc-1", ours=["ours"])
    assert [(item.kind, item.by) for item in blockers] == ([expected[:2]] if expected else [])
    assert not expected or expected[2] in blockers[0].why


def test_a_file_system_of_no_stack_that_goes_is_for_its_owner_to_delete(aws: Aws, account: Account) -> None:
    row = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "VpcId": "vpc-1", "Lifecycle": "AVAILABLE"}
    more: dict[str, dict[str, str]] = {
        "fs-claim": {},
        "fs-ours": {},
        "fs-going": {"Lifecycle": "DELETING"},
        "fs-elsewhere": {"VpcId": "vpc-2"},
    }
    rows = [row | {"FileSystemId": id} | provided for id, provided in more.items()]
    aws.answers["DescribeFileSystems"] = {"FileSystems": rows}
    (blockers,) = network_blockers(account, "prod-network", "vpc-1", ours=["fs-ours"])
    assert (blockers.name, blockers.by) == ("fs-claim", "you")
    assert "this deletes its data" in blockers.how


def test_a_peering_goes_by_itself_only_if_podwright_made_it(aws: Aws, account: Account) -> None:
    def peering(id: str, other: str = "vpc-2", status: str = "active", name: str = "mine") -> dict[str, Any]:
        ends = {"RequesterVpcInfo": {"VpcId": "vpc-1" if other else "vpc-3"}, "AccepterVpcInfo": {"VpcId": other}}
        tags = [{"Key": "Name", "Value": name}]
        return {"VpcPeeringConnectionId": id, "Status": {"Code": status}, "Tags": tags, **ends}

    rows = [
        peering("pcx-1"),
        peering("pcx-2", name="podwright-prod-worker"),
        peering("pcx-3", status="deleted"),
        peering("pcx-4", other=""),
    ]
    aws.answers["DescribeVpcPeeringConnections"] = {"VpcPeeringConnections": rows}
    blockers = network_blockers(account, "prod-network", "vpc-1")
    assert [(item.name, item.by) for item in blockers] == [("pcx-1", "you"), ("pcx-2", "podwright")]
    assert "--vpc-peering-connection-id pcx-1" in blockers[0].how
    remove(account, blockers, nothing)
    assert aws.changes == [("DeleteVpcPeeringConnection", "pcx-2")]


BLOCKERS = [
    Blocker("s", "guardduty group", "sg-1", "", "podwright", ""),
    Blocker("s", "interface", "eni-1", "", "podwright", ""),
    Blocker("s", "interface", "eni-2", "", "you", ""),
    Blocker("s", "guardduty endpoint", "vpce-1", "", "podwright", ""),
    Blocker("s", "guardduty endpoint", "vpce-2", "", "podwright", ""),
]


def test_groups_go_after_the_endpoints_that_use_them_are_gone(aws: Aws, account: Account) -> None:
    states = ["deleting", "deleting", "gone"]

    def observe(params: dict[str, Any]) -> dict[str, Any]:
        if params["VpcEndpointIds"] == ["vpce-2"] or states[0] == "gone":
            raise refusal("InvalidVpcEndpointId.NotFound")
        aws.changes.append(("look", states[0]))
        return {"VpcEndpoints": [{"State": states.pop(0)}]}

    aws.answers["DescribeVpcEndpoints"] = observe
    remove(account, BLOCKERS, nothing)
    assert aws.changes == [
        ("DeleteVpcEndpoints", ["vpce-1", "vpce-2"]),
        ("look", "deleting"),
        ("look", "deleting"),
        ("DeleteNetworkInterface", "eni-1"),
        ("DeleteSecurityGroup", "sg-1"),
    ]


def test_an_endpoint_that_stays_stops_it_before_its_group(aws: Aws, account: Account) -> None:
    failure = {"ResourceId": "vpce-1", "Error": {"Message": "in use"}}
    aws.answers["DeleteVpcEndpoints"] = {"Unsuccessful": [failure]}
    with pytest.raises(CommandError, match="GuardDuty's endpoint vpce-1 is not deleted: in use"):
        remove(account, BLOCKERS, nothing)
    assert [operation for operation, _ in aws.changes] == ["DeleteVpcEndpoints"]


def kept(**types: str) -> list[Kept]:
    return [Kept(name, f"AWS::{kind.replace('_', '::')}", "s", "retained") for name, kind in types.items()]


def test_keys_go_last_and_can_be_had_back_for_thirty_days(aws: Aws, account: Account) -> None:
    months = dict[str, int]()

    def later(params: dict[str, Any]) -> dict[str, Any]:
        months[params["KeyId"]] = params["PendingWindowInDays"]
        return {}

    aws.answers["ScheduleKeyDeletion"] = later
    output = list[tuple[str, str]]()
    named = kept(key="KMS_Key", log="Logs_LogGroup", volume="EC2_Volume")
    done = delete_data(account, named, lambda name, text: output.append((name, text)))
    assert done == ["volume", "log", "key"]
    assert months == {"key": 30}
    assert output[-1] == ("key", "is deleted in 30 days")


def test_groups_that_name_one_another_go_as_they_come_free(aws: Aws, account: Account) -> None:
    held = ["first"]

    def group(params: dict[str, Any]) -> dict[str, Any]:
        if params["GroupId"] in held:
            held.remove(params["GroupId"])
            raise refusal("DependencyViolation")
        return {}

    aws.answers["DeleteSecurityGroup"] = group
    named = kept(first="EC2_SecurityGroup", second="EC2_SecurityGroup")
    assert delete_data(account, named, nothing) == ["second", "first"]


def test_what_nothing_frees_is_named(aws: Aws, account: Account) -> None:
    def group(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal("DependencyViolation")

    aws.answers["DeleteSecurityGroup"] = group
    with pytest.raises(CommandError, match="first cannot be deleted"):
        delete_data(account, kept(first="EC2_SecurityGroup"), nothing)


def test_what_is_gone_already_counts_as_deleted_and_other_refusals_do_not(aws: Aws, account: Account) -> None:
    codes = {"gone": "InvalidGroup.NotFound", "held": "UnauthorizedOperation"}

    def group(params: dict[str, Any]) -> dict[str, Any]:
        raise refusal(codes[params["GroupId"]])

    aws.answers["DeleteSecurityGroup"] = group
    output = dict[str, str]()
    assert delete_data(account, kept(gone="EC2_SecurityGroup"), output.__setitem__) == ["gone"]
    assert output == {"gone": "was gone already"}
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        delete_data(account, kept(held="EC2_SecurityGroup"), nothing)


def test_nothing_is_deleted_when_one_thing_cannot_be(aws: Aws, account: Account) -> None:
    with pytest.raises(CommandError, match="cluster cannot be deleted here"):
        delete_data(account, kept(volume="EC2_Volume", cluster="EKS_Cluster"), nothing)
    assert aws.changes == []


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([], ""),
        ([[{"Size": 1_572_864}]], "1 object version, 1.5 MiB"),
        ([[{"Size": 2**30}, {"Size": 2**29}]], "2 object versions, 1.5 GiB"),
        ([[{"Size": 2**40}]] * 20, "20 object versions, 20,480.0 GiB"),
        ([[{"Size": 2**40}]] * 21, "more than 20 object versions, 20,480.0 GiB"),
    ],
)
def test_what_a_bucket_holds_is_told_before_it_is_deleted(
    account: Account, monkeypatch: pytest.MonkeyPatch, pages: list[Any], words: str
) -> None:
    monkeypatch.setattr(contents, "object_versions", lambda *_: iter(pages))
    assert contents.bucket_content(account, "logs") == words
