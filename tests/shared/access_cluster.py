"""An EKS cluster with access entries in this process, and callers with keys of moto's who sign tokens for it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from boto3.session import Session
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.planning.kubernetes.eks_token import eks_token
from podwright.sandbox.eks.access_entries import new_names
from podwright.sandbox.eks.access_policies import ARN
from podwright.sandbox.eks.control_planes import ControlPlanes, Webhooks
from podwright.sandbox.eks.service import Eks, EksCluster
from podwright.sandbox.kubernetes.clusters import Kubernetes

REGION, NAME = "us-west-2", "prod-eks"
ROLE = f"arn:aws:iam::{SANDBOX_ACCOUNT}:role/"
ROOT = f"arn:aws:iam::{SANDBOX_ACCOUNT}:root"


def session_of(role: str, name: str = "ana") -> Session:
    """The session of somebody who took a role, which need not exist."""
    backend = sts_backends[SANDBOX_ACCOUNT]["aws"]
    taken = backend.assume_role(REGION, name, role, policy="", duration=3600, external_id="")
    return Session(taken.access_key_id, taken.secret_access_key, taken.session_token, region_name=REGION)


def session_of_user(name: str) -> Session:
    """The session of a new IAM user with an access key."""
    backend = iam_backends[SANDBOX_ACCOUNT]["aws"]
    backend.create_user(REGION, name)
    key = backend.create_access_key(name)
    return Session(key.access_key_id, key.secret_access_key, region_name=REGION)


def root_session() -> Session:
    """The session of the account itself."""
    return Session("sandbox", "whatever", region_name=REGION)


class AccessCluster:
    """The cluster, beside the sandbox's EKS that holds it."""

    def __init__(self, *, creator: str = "", creator_is_admin: bool = True) -> None:
        self.instances: dict[str, str] = {}
        ec2 = SimpleNamespace(describe_instances=self._describe_instances)
        clients: Any = SimpleNamespace(account=SANDBOX_ACCOUNT, client=lambda service, region: {"ec2": ec2}[service])
        access = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": creator_is_admin}
        planes = ControlPlanes(Path(), SANDBOX_ACCOUNT, Webhooks("", Path(), ""), new_clusters="store")
        self.eks = Eks(clients, Kubernetes(), "https://localhost/", "", planes)
        self.cluster = EksCluster({"name": NAME, "accessConfig": access}, creator=creator)
        self.eks.clusters[REGION, NAME] = self.cluster

    def _describe_instances(self, *, InstanceIds: list[str]) -> dict[str, Any]:
        names = [{"PrivateDnsName": self.instances[name]} for name in InstanceIds if name in self.instances]
        if not names:
            raise ClientError({"Error": {"Code": "InvalidInstanceID.NotFound"}}, "DescribeInstances")
        return {"Reservations": [{"Instances": names}]}

    def add_entry(self, principal: str, **values: Any) -> None:
        """Create an access entry as the API does."""
        entry = {"type": "STANDARD", "principalArn": principal, **values}
        self.cluster.entries[principal] = entry | new_names(entry)
        self.cluster.policies[principal] = {}

    def associate(self, principal: str, policy: str, *namespaces: str) -> None:
        """Associate an access policy with an entry, for the whole cluster or for namespaces."""
        scope = {"type": "namespace", "namespaces": list(namespaces)} if namespaces else {"type": "cluster"}
        self.cluster.policies[principal][ARN + policy] = {"policyArn": ARN + policy, "accessScope": scope}


def token(session: Session, cluster: str = NAME) -> str:
    """What `aws eks get-token` prints."""
    return eks_token(session, cluster)
