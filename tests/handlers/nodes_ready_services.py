"""Time, AWS, Kubernetes and CloudFormation as the handler that waits for nodes sees them."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from loopback import Call, Reply, Server, serving
from podwright.constructs.hyperpod.nodes_ready.handler import index

CLUSTER_ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
FUNCTION_ARN = "arn:aws:lambda:us-west-2:111122223333:function:waiter"
SESSION = boto3.Session("key", "secret", region_name="us-west-2")
# Once for all tests: making a client takes longer than any of them.
CLIENTS = {name: SESSION.client(name) for name in ("sagemaker", "eks", "lambda")}
Answer = tuple[int, Any]
"""Status and JSON body."""


class Answers(list[Answer]):
    """What a server says: one answer for each request, and the last one to all that follow."""

    def __call__(self, _: Call) -> Reply:
        status, content = self.pop(0) if len(self) > 1 else self[0]
        return Reply(status, json.dumps(content).encode())


def self_signed(file: Path) -> Path:
    """A self-signed certificate of 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


class NodesReadyServices:
    """Time, AWS, Kubernetes and CloudFormation as the handler sees them."""

    def __init__(
        self, kubernetes: Server, cloudformation: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.now = 1_000_000.0
        self.lambda_ends = self.now + 900
        self.session = SESSION
        self.clients = dict(CLIENTS)
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()
        self.kubernetes, self.cloudformation = kubernetes, cloudformation
        self.authority = certificate.read_text().partition("-----BEGIN PRIVATE")[0]
        monkeypatch.setattr(index.time, "sleep", self.sleep)
        monkeypatch.setattr(index.time, "time", lambda: self.now)
        monkeypatch.setattr(index.boto3, "Session", lambda: self)
        self.events, self.get_credentials = self.session.events, self.session.get_credentials

    def say(self, *answers: Answer) -> None:
        """What Kubernetes answers."""
        self.kubernetes.answer = Answers(answers)

    def client(self, name: str, **_: Any) -> Any:
        return self.clients.get(name) or self.session.client(name)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def see(self, *instances: tuple[str, str, str]) -> None:
        """One observation: SageMaker's instances as id, group and status. A look that is not enough asks for the
        cluster.
        """
        summaries = [
            {
                "InstanceGroupName": group,
                "InstanceId": id,
                "InstanceType": "ml.m5.4xlarge",
                "LaunchTime": datetime(2026, 11, 1, tzinfo=UTC),
                "InstanceStatus": {"Status": status, "Message": "because"}
                if status != "Running"
                else {"Status": status},
            }
            for id, group, status in instances
        ]
        self.stubs["sagemaker"].add_response(
            "list_cluster_nodes",
            {"ClusterNodeSummaries": summaries},
            {"ClusterName": "prod", "InstanceGroupNameContains": "system"},
        )
        self.stubs["eks"].add_response(
            "describe_cluster",
            {"cluster": {"endpoint": self.kubernetes.url, "certificateAuthority": {"data": encoded(self.authority)}}},
            {"name": "prod-eks"},
        )

    def see_cluster(self, status: str = "InService", failure: str = "") -> None:
        """What SageMaker says of the cluster after a look that was not enough."""
        cluster = {"ClusterArn": CLUSTER_ARN, "ClusterStatus": status, "InstanceGroups": [], "FailureMessage": failure}
        self.stubs["sagemaker"].add_response("describe_cluster", cluster, {"ClusterName": "prod"})

    def run(self, request: str = "Create", **more: Any) -> dict[str, Any] | None:
        """Carry a request out and return what CloudFormation got, if it got anything."""
        event = {
            "RequestType": request,
            "ResponseURL": f"{self.cloudformation.url}/answer",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Nodes",
            "ResourceType": "Custom::PodwrightNodesReady",
            "ResourceProperties": {
                "ClusterName": "prod",
                "EksClusterName": "prod-eks",
                "InstanceGroup": "system",
                "Count": "2",
                "TimeoutSeconds": "3300",
            },
            **more,
        }
        before = len(self.cloudformation.calls)
        index.handler(event, self)
        answers = self.cloudformation.calls[before:]
        assert len(answers) <= 1
        return json.loads(answers[0].body) if answers else None

    # The Lambda context.
    invoked_function_arn, log_group_name, log_stream_name = FUNCTION_ARN, "group", "stream"

    def get_remaining_time_in_millis(self) -> int:
        return int((self.lambda_ends - self.now) * 1000)


def nodes_ready_services(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodesReadyServices]:
    """A world for one test; at its end every stubbed answer has been asked for."""
    with serving(Answers([(200, nodes())]), certificate) as kubernetes, serving(Answers([(200, "")])) as cloudformation:
        made = NodesReadyServices(kubernetes, cloudformation, certificate, monkeypatch)
        yield made
        for stub in made.stubs.values():
            stub.assert_no_pending_responses()
            stub.deactivate()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def nodes(*actual: tuple[str, str], more: str = "") -> dict[str, Any]:
    """A page of a Kubernetes node list: names and the status of their Ready condition."""
    items = [
        {
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready, "message": "container runtime is down"}]},
        }
        for name, ready in actual
    ]
    return {"metadata": {"continue": more}, "items": items}
