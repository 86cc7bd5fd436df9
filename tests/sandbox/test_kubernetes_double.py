"""The Kubernetes double: the CDK's kubectl and Helm resources reach it, and real clients read it."""

import base64
import copy
import io
import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from podwright.operations.cli import main
from podwright.operations.kubernetes import in_vpc
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.programs.helm import tool
from podwright.sandbox.kubernetes import custom_kinds
from sandbox_network import eks_cluster, surroundings
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: rendered}
data: {value: {{ .Values.value | quote }}, release: {{ .Release.Name }}}
"""
EXTRA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: b}\n"


def token(access_key: str = "sandbox") -> str:
    url = f"https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Credential={access_key}%2F20260101"
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


class Cluster:
    """An EKS cluster of a test, with a kubectl function whose role may enter it."""

    def __init__(self, aws: Aws, name: str) -> None:
        self.aws, self.around = aws, surroundings(aws)
        self.description = eks_cluster(aws, self.around, name)
        self.name = name
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("index.py", "def handler(event, context): raise RuntimeError('never called')")
        self.function = aws("lambda").create_function(
            FunctionName=name, Runtime="python3.13", Handler="index.handler", Role=self.around.role,
            Code={"ZipFile": content.getvalue()},
        )["FunctionArn"]  # fmt: skip
        aws("eks").create_access_entry(clusterName=name, principalArn=self.around.role)

    def custom(self, kind: str, **properties: Any) -> dict[str, Any]:
        names = {"ServiceToken": self.function, "ClusterName": self.name}
        return {"Type": f"Custom::AWSCDK-EKS-{kind}", "Properties": {**names, **properties}}

    def manifests(self, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.custom("KubernetesResource", Manifest=json.dumps(items), **more)

    def get(self, path: str, bearer: str | None = None) -> Any:
        authority = base64.b64decode(self.description["certificateAuthority"]["data"]).decode()
        headers = {"Authorization": f"Bearer {bearer or token()}"}
        request = urllib.request.Request(self.description["endpoint"] + path, headers=headers)
        with urllib.request.urlopen(request, context=ssl.create_default_context(cadata=authority)) as answer:
            return json.load(answer)

    def config_maps(self, namespace: str) -> dict[str, Any]:
        items = self.get(f"/api/v1/namespaces/{namespace}/configmaps")["items"]
        return {item["metadata"]["name"]: item["data"] for item in items}


@pytest.fixture(scope="module")
def cluster(aws: Aws) -> Cluster:
    return Cluster(aws, "double")


def config_map(name: str, namespace: str, label: str = "", **data: str) -> dict[str, Any]:
    labels = {"labels": {label: ""}} if label else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "namespace": namespace, **labels}}  # fmt: skip


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_manifests_are_applied_pruned_and_deleted(stack: StackUnderTest, cluster: Cluster) -> None:
    def resources(*items: dict[str, Any]) -> dict[str, Any]:
        return {"Objects": cluster.manifests(namespace("team"), *items, PruneLabel="prune")}

    one, two = config_map("one", "team", "prune", a="1"), config_map("two", "team", "prune", b="2")
    metadata = {"name": "caps", "namespace": "team", "labels": {"prune": ""}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    assert stack.create(resources(one, two, quota)) == "CREATE_COMPLETE", stack.reasons("Objects")
    assert cluster.config_maps("team") == {"one": {"a": "1"}, "two": {"b": "2"}}
    assert stack.update(resources(one | {"data": {"a": "3"}})) == "UPDATE_COMPLETE"
    assert cluster.config_maps("team") == {"one": {"a": "3"}}
    assert cluster.get("/api/v1/namespaces/team/resourcequotas")["items"], "kubectl prunes no quotas"
    assert stack.delete() == "DELETE_COMPLETE"
    assert "team" not in [item["metadata"]["name"] for item in cluster.get("/api/v1/namespaces")["items"]]


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (config_map("x", "nowhere", a="1"), 'NotFound): namespaces "nowhere" not found'),
        (config_map("x", "default") | {"dta": {}}, "('dta' was unexpected)"),
        (config_map("x", "default") | {"data": {"a": 1}}, "data.a: 1 is not of type 'string'"),
        (
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}},
            'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1beta2"',
        ),
        (namespace("default"), 'AlreadyExists): namespaces "default" already exists'),
    ],
)
def test_what_the_api_server_refuses(
    stack: StackUnderTest, cluster: Cluster, manifest: dict[str, Any], reason: str
) -> None:
    assert stack.create({"Objects": cluster.manifests(manifest)}) == "ROLLBACK_COMPLETE"
    assert reason in stack.reasons("Objects")


def test_the_function_needs_an_access_entry(stack: StackUnderTest, cluster: Cluster, aws: Aws) -> None:
    closed = eks_cluster(aws, cluster.around, "closed")
    resource = cluster.manifests(namespace("x"))
    resource["Properties"]["ClusterName"] = closed["name"]
    assert stack.create({"Objects": resource}) == "ROLLBACK_COMPLETE"
    assert f"{cluster.around.role} has no access entry" in stack.reasons("Objects")


def test_a_chart_is_rendered_by_helm(stack: StackUnderTest, cluster: Cluster, aws: Aws, tmp_path: Path) -> None:
    aws("s3").create_bucket(Bucket="charts-here", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})

    def release(value: str, *, extra: bool) -> dict[str, Any]:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("Chart.yaml", "apiVersion: v2\nname: small\nversion: 1.2.3\n")
            archive.writestr("templates/one.yaml", TEMPLATE)
            if extra:
                archive.writestr("templates/two.yaml", EXTRA)
        key = f"{value}.zip"
        aws("s3").put_object(Bucket="charts-here", Key=key, Body=content.getvalue())
        return {
            "Release": cluster.custom(
                "HelmChart", Release="mine", Namespace="apps", CreateNamespace=True,
                ChartAssetURL=f"s3://charts-here/{key}", Values=json.dumps({"value": value}),
            )
        }  # fmt: skip

    assert stack.create(release("first", extra=True)) == "CREATE_COMPLETE", stack.reasons("Release")
    assert cluster.config_maps("apps") == {"rendered": {"value": "first", "release": "mine"}, "extra": {"a": "b"}}
    assert stack.update(release("second", extra=False)) == "UPDATE_COMPLETE"
    assert cluster.config_maps("apps") == {"rendered": {"value": "second", "release": "mine"}}

    listed = json.loads(client(cluster, tmp_path, "helm", "list", "-n", "apps", "-o", "json"))
    assert [(item["name"], item["revision"], item["chart"]) for item in listed] == [("mine", "2", "small-1.2.3")]
    assert stack.delete() == "DELETE_COMPLETE"
    assert cluster.config_maps("apps") == {}


def test_a_chart_brings_its_custom_kinds_also_where_another_stands_in(
    stack: StackUnderTest, cluster: Cluster, aws: Aws
) -> None:
    aws("s3").create_bucket(Bucket="kueue-here", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("Chart.yaml", "apiVersion: v2\nname: stand-in\nversion: 0.0.0\n")
    aws("s3").put_object(Bucket="kueue-here", Key="chart.zip", Body=content.getvalue())
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h200"}}
    resources = {
        "Release": cluster.custom("HelmChart", Release="kueue", Namespace="kueue-system", CreateNamespace=True,
                                  ChartAssetURL="s3://kueue-here/chart.zip"),
        "Queues": {**cluster.manifests(flavor), "DependsOn": ["Release"]},
    }  # fmt: skip
    assert stack.create(resources) == "CREATE_COMPLETE", stack.reasons("Queues")
    (items,) = cluster.get("/apis/kueue.x-k8s.io/v1beta2/resourceflavors")["items"]
    assert items["metadata"]["name"] == "h200"


def client(cluster: Cluster, folder: Path, program: Any, *arguments: str) -> str:
    """Run the real kubectl or helm on the cluster."""
    (folder / "authority.pem").write_bytes(base64.b64decode(cluster.description["certificateAuthority"]["data"]))
    server = {"server": cluster.description["endpoint"], "certificate-authority": str(folder / "authority.pem")}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": token()}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (folder / "config").write_text(json.dumps(config))
    environment = os.environ | {"HOME": str(folder), "NO_PROXY": "localhost"}
    command = [tool(program), "--kubeconfig", str(folder / "config"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_real_kubectl_reads_and_writes(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(config_map("typed", "default", a="1")))
    client(cluster, tmp_path, "kubectl", "create", "--validate=false", "-f", str(tmp_path / "one.json"))
    assert "typed" in client(cluster, tmp_path, "kubectl", "get", "cm")
    patch = json.dumps({"data": {"a": "2"}})
    client(cluster, tmp_path, "kubectl", "patch", "cm", "typed", "--type=merge", "-p", patch)
    assert client(cluster, tmp_path, "kubectl", "get", "cm", "typed", "-o", "jsonpath={.data.a}") == "2"
    client(cluster, tmp_path, "kubectl", "delete", "cm", "typed")
    assert "typed" not in client(cluster, tmp_path, "kubectl", "get", "cm")
    assert client(cluster, tmp_path, "kubectl", "version").endswith("v1.34.0-sandbox\n")


JOBS = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 4}
governance: {teams: {llm: {quota: {h100: 2}}, other: {quota: {h100: 2}}}}
platform: {cert_manager: {}, training_operator: {}}
jobs:
  llama:
    kind: hyperpod_pytorch
    team: llm
    group: h100
    image: 111122223333.dkr.ecr.us-west-2.amazonaws.com/llama:1
    command: [train.py]
    elastic: {min_replicas: 1, max_replicas: 2, step: 1}
"""


def test_a_job_is_submitted_by_the_real_kubectl(
    cluster: Cluster,
    stack: StackUnderTest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An operator that knows a field otherwise refuses the job, and podwright names the setting and its line."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/test.yaml").write_text(JOBS)
    client(cluster, tmp_path, "kubectl", "version")  # writes the kubeconfig
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setattr(
        "podwright.operations.arguments.account_of",
        lambda *_: SimpleNamespace(endpoint=cluster.description["endpoint"]),
    )
    monkeypatch.setattr(in_vpc, "way", lambda *_: Kubectl(tmp_path / "config", is_real=False))
    words = ["test", "llama", "--sandbox", "--project", str(tmp_path)]
    kind = custom_kinds.definition("sagemaker.amazonaws.com", "HyperPodPyTorchJob")
    older = copy.deepcopy(kind)
    spec = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["elasticPolicy"]["properties"]["replicaIncrementStep"] = {"type": "string"}
    team = namespace("hyperpod-ns-llm")
    assert stack.create({"Objects": cluster.manifests(older, team)}) == "CREATE_COMPLETE", stack.reasons("Objects")
    assert main(["submit", *words]) == 1
    refused = capsys.readouterr().err
    assert "the cluster refuses llama" in refused
    assert "test.yaml:16" in refused
    assert "jobs.llama.elastic.step became spec.elasticPolicy.replicaIncrementStep" in refused

    assert stack.update({"Objects": cluster.manifests(kind, team)}) == "UPDATE_COMPLETE", stack.reasons("Objects")
    assert main(["submit", *words]) == 0
    output = capsys.readouterr().out
    assert "hyperpodpytorchjob.sagemaker.amazonaws.com/llama created" in output
    assert "It stays as it is: this sandbox's Kubernetes is a store, without a scheduler." in output
    (job,) = cluster.get("/apis/sagemaker.amazonaws.com/v1/namespaces/hyperpod-ns-llm/hyperpodpytorchjobs")["items"]
    assert job["spec"]["elasticPolicy"]["maxReplicas"] == 2
    assert main(["jobs", *words[:1], *words[2:]]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^llm +llama ", output, re.MULTILINE)
    assert "They stay as they are: this sandbox's Kubernetes is a store, without a scheduler." in output
    assert main(["stop", *words]) == 0
    assert cluster.get("/apis/sagemaker.amazonaws.com/v1/hyperpodpytorchjobs")["items"] == []


def test_who_may_enter(cluster: Cluster, aws: Aws) -> None:
    stranger = aws("iam").create_role(RoleName="stranger", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    keys = aws("sts").assume_role(RoleArn=stranger, RoleSessionName="stranger")["Credentials"]
    for bearer in ("nonsense", token(keys["AccessKeyId"])):
        with pytest.raises(urllib.error.HTTPError) as refused:
            cluster.get("/api/v1/nodes", bearer)
        assert refused.value.code == 401
        refused.value.close()
    aws("eks").create_access_entry(clusterName=cluster.name, principalArn=stranger)
    assert cluster.get("/api/v1/nodes", token(keys["AccessKeyId"]))["items"] == []


def test_an_addon_brings_its_kinds(cluster: Cluster, aws: Aws) -> None:
    path = "/apis/workspace.jupyter.org/v1alpha1/workspaces"
    with pytest.raises(urllib.error.HTTPError) as absent:
        cluster.get(path)
    assert absent.value.code == 404
    absent.value.close()
    aws("eks").create_addon(clusterName=cluster.name, addonName="amazon-sagemaker-spaces")
    assert cluster.get(path)["items"] == []


@pytest.mark.parametrize("preserve", [False, True])
def test_an_addon_is_deleted_with_its_pod_identity_associations(cluster: Cluster, aws: Aws, preserve: bool) -> None:
    eks, of_cluster = aws("eks"), {"clusterName": cluster.name}
    role, account = cluster.around.role, f"account-{preserve}"
    addon = {"addonName": "vpc-cni", "podIdentityAssociations": [{"serviceAccount": account, "roleArn": role}]}
    eks.create_addon(**of_cluster, **addon)
    eks.create_pod_identity_association(**of_cluster, namespace="team", serviceAccount=f"own-{preserve}", roleArn=role)
    eks.delete_addon(**of_cluster, addonName="vpc-cni", preserve=preserve)
    left = {item["serviceAccount"] for item in eks.list_pod_identity_associations(**of_cluster)["associations"]}
    assert f"own-{preserve}" in left
    assert (account in left) == preserve


def test_eks_keeps_to_its_rules(cluster: Cluster, aws: Aws) -> None:
    eks = aws("eks")
    with pytest.raises(ClientError, match="ResourceInUseException"):
        eks.create_access_entry(clusterName=cluster.name, principalArn=cluster.around.role)
    eks_cluster(aws, cluster.around, "old", mode="CONFIG_MAP")
    with pytest.raises(ClientError, match="must be set to one of"):
        eks.create_access_entry(clusterName="old", principalArn=cluster.around.role)
    one_zone = surroundings(aws, zones=("usw2-az1", "usw2-az1"))
    with pytest.raises(ClientError, match="at least two different AZs"):
        eks_cluster(aws, one_zone, "narrow")
    with pytest.raises(ClientError, match=r"Unsupported Kubernetes minor version update from 1\.34 to 1\.36"):
        eks.update_cluster_version(name=cluster.name, version="1.36")
