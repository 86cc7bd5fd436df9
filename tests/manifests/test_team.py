"""What a team finds in Kubernetes: each kind against the schemas, and what the kinds say."""

import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from podwright.cdk8s_charts.team import team_namespaces, team_objects, team_roles
from podwright.cdk8s_charts.team_folders import team_folders
from podwright.cdk8s_charts.team_guard import team_guard
from podwright.config.settings.governance.team_access import TeamAccess
from podwright.config.settings.governance.teams import Governance, Team
from podwright.config.settings.jobs.kinds import BatchJob
from podwright.planning.helm.chart_values import SystemPlacement
from podwright.planning.kubernetes.deployed_values import DeployedValues, LustreValues
from podwright.planning.kubernetes.isolation import PodFreedoms, pod_freedoms, team_gid

LUSTRE = LustreValues("fs-0123456789abcdef0", "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "abcdefgh")
VALUES = DeployedValues("arn", "prod", "bucket", {"lustre": LUSTRE}, {})
PLACEMENT = SystemPlacement({"group": "system"}, ({"key": "system", "operator": "Exists", "effect": "NoSchedule"},))
EVERYTHING = {
    "roles": {"arn:aws:iam::111122223333:role/Llm": "edit"},
    "service_accounts": {"trainer": {"checkpoints": True}},
    "storage": {"work": {"path": "/teams/llm"}, "data": {"path": "/datasets", "read_only": True}},
    "caps": {"accelerators": 16, "efa": 64, "vcpu": 96.5, "memory_gib": 512.5, "pods": 20, "others": {"services": 3}},
    "limits": {"request": {"vcpu": 1}, "limit": {"vcpu": 2, "memory_gib": 0.5}, "most": {"memory_gib": 64}},
    "network": {"from_namespaces": ["metrics"], "to_namespaces": ["mlflow"], "to_ranges": ["10.1.0.0/16"]},
    "pod_security": "baseline",
    "mlflow": True,
}
Object = dict[str, Any]


def objects(access: Mapping[str, Any] | None = None, engine: Any = "kueue") -> dict[tuple[str, str], Object]:
    teams = {"llm": Team.model_validate({"access": access})}
    folders = team_folders(teams, VALUES, PLACEMENT)
    actual = [*team_roles(), *folders, *team_namespaces(engine, teams), *team_objects(engine, teams, VALUES)]
    return {(item["kind"], item["metadata"]["name"]): item for item in actual}


@pytest.mark.parametrize("version", ["1.34", "1.35"])
@pytest.mark.parametrize("access", [None, EVERYTHING], ids=["nothing", "everything"])
def test_objects_are_valid(version: str, access: Mapping[str, Any] | None) -> None:
    for item in objects(access).values():
        kubernetes_validate.validate(item, version, strict=True)


def test_every_kind_that_kubectl_does_not_prune_is_always_there() -> None:
    pruned = {"ConfigMap", "Namespace", "PersistentVolume", "PersistentVolumeClaim"}
    harmless, without = {"ServiceAccount"}, objects(None)
    of_the_team = {key for key, item in objects(EVERYTHING).items() if "labels" in item["metadata"]}
    assert {kind for kind, _ in of_the_team - without.keys()} <= pruned | harmless


def test_a_setting_that_is_absent_has_no_effect() -> None:
    actual = objects(None)
    assert actual["ResourceQuota", "podwright-caps"]["spec"] == {}
    assert actual["LimitRange", "podwright-limits"]["spec"] == {"limits": []}
    policy = actual["NetworkPolicy", "podwright"]["spec"]
    assert policy["ingress"] == [{}]
    with_metadata = objects({"instance_metadata": True})["NetworkPolicy", "podwright"]["spec"]
    assert (with_metadata["ingress"], with_metadata["egress"]) == ([{}], [{}])


def reached(policy: Object, address: str, port: int) -> bool:
    """Whether a NetworkPolicy lets pods connect to an address outside of the cluster."""

    def holds(block: Object) -> bool:
        inside = [ip_address(address) in ip_network(text) for text in (block["cidr"], *block.get("except", ()))]
        return inside[0] and not any(inside[1:])

    return any(
        # A rule that names no end names them all.
        any(not end or ("ipBlock" in end and holds(end["ipBlock"])) for end in rule.get("to", [{}]))
        and port in [entry["port"] for entry in rule.get("ports", [{"port": port}])]
        for rule in policy["egress"]
    )


@pytest.mark.parametrize("network", [None, {}, {"to_ranges": ["0.0.0.0/0", "169.254.0.0/16"]}])
def test_pods_reach_their_roles_credentials_and_not_their_nodes(network: Mapping[str, Any] | None) -> None:
    policy = objects({"network": network})["NetworkPolicy", "podwright"]["spec"]
    assert not reached(policy, "169.254.169.254", 80)
    assert not reached(policy, "fd00:ec2::254", 80)
    assert reached(policy, "169.254.170.23", 80)
    assert reached(policy, "fd00:ec2::23", 80)
    assert reached(policy, "52.94.133.131", 443)


def test_a_job_of_the_file_frees_its_team_and_no_other() -> None:
    team = Team()
    free = Team.model_validate({"access": {"pod_security": "privileged"}})
    governance = Governance(teams={"llm": team, "vision": team, "kernel": free})
    job = BatchJob.model_validate(
        {
            "kind": "job",
            "group": "h200",
            "team": "llm",
            "image": "example.com/a",
            "command": ["a"],
            "host_network": True,
        }
    )
    freedoms = pod_freedoms(governance, [job])
    assert freedoms == PodFreedoms(guarded=("llm", "vision"), host_network=("llm",), privileged=())
    policy, binding = team_guard("hyperpod", freedoms)
    (names,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert names["values"] == ["hyperpod-ns-llm", "hyperpod-ns-vision"]
    (network,) = [item["expression"] for item in policy["spec"]["validations"] if "hostNetwork" in item["expression"]]
    assert network.startswith("object.metadata.namespace in ['hyperpod-ns-llm'] ||")
    for item in (policy, binding):
        kubernetes_validate.validate(item, "1.34", strict=True)
    assert team_guard("hyperpod", PodFreedoms((), (), ())) == []


def test_namespaces_are_ours_unless_the_service_makes_them() -> None:
    labels = objects(EVERYTHING)["Namespace", "team-llm"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    served = objects(EVERYTHING, "hyperpod")
    assert "Namespace" not in {kind for kind, _ in served}
    assert served["ResourceQuota", "podwright-caps"]["metadata"]["namespace"] == "hyperpod-ns-llm"


def test_ceilings_count_devices_by_requests() -> None:
    assert objects(EVERYTHING)["ResourceQuota", "podwright-caps"]["spec"]["hard"] == {
        "requests.nvidia.com/gpu": "16",
        "requests.aws.amazon.com/neurondevice": "16",
        "requests.vpc.amazonaws.com/efa": "64",
        "pods": "20",
        "requests.cpu": "96500m",
        "requests.memory": "524800Mi",
        "services": "3",
    }


def test_nobody_in_a_team_changes_what_keeps_it_apart() -> None:
    guarded = {"networkpolicies", "resourcequotas", "limitranges", "roles", "rolebindings", "namespaces", "*"}
    for name in ("edit", "view"):
        role = objects()["ClusterRole", f"podwright-team-{name}"]
        for rule in role["rules"]:
            assert "*" not in rule["verbs"]
            if guarded & set(rule["resources"]):
                assert set(rule["verbs"]) <= {"get", "list", "watch"}
    readable = objects()["ClusterRole", "podwright-team-view"]["rules"]
    assert all("secrets" not in rule["resources"] and "create" not in rule["verbs"] for rule in readable)


def test_hyperpods_pods_reach_the_agent_and_its_memory_is_reached() -> None:
    policy = objects({"network": {}})["NetworkPolicy", "podwright"]["spec"]

    def ports(rules: list[Object], end: str) -> set[int]:
        selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "aws-hyperpod"}}}
        return {port["port"] for rule in rules if rule[end] == [selector] for port in rule["ports"]}

    assert ports(policy["ingress"], "from") == {8080, 9200}
    assert ports(policy["egress"], "to") == {8080, 9200}
    assert {"podSelector": {}} in policy["ingress"][0]["from"]
    assert not [rule for rule in policy["ingress"] if not rule.get("from")]


def test_a_closed_team_still_asks_for_names() -> None:
    """An answer that is too long for UDP is asked for again over TCP."""
    policy = objects({"network": {}})["NetworkPolicy", "podwright"]["spec"]
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    (rule,) = [rule for rule in policy["egress"] if rule["to"] == [system]]
    assert {(port["protocol"], port["port"]) for port in rule["ports"]} == {("UDP", 53), ("TCP", 53)}


def test_a_claim_is_one_folder_and_bound_to_one_volume() -> None:
    actual = objects(EVERYTHING)
    volume, claim = actual["PersistentVolume", "team-llm-work"]["spec"], actual["PersistentVolumeClaim", "work"]["spec"]
    assert volume["csi"]["volumeAttributes"] == {"dnsname": LUSTRE.dns_name, "mountname": "abcdefgh/teams/llm"}
    assert volume["claimRef"] | {"name": "work", "namespace": "team-llm"} == volume["claimRef"]
    assert (claim["volumeName"], claim["storageClassName"]) == ("team-llm-work", "")
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    assert actual["PersistentVolume", "team-llm-data"]["spec"]["mountOptions"] == ["flock", "ro"]
    modes = {("work", "team-llm-work"): "ReadWriteMany", ("data", "team-llm-data"): "ReadOnlyMany"}
    for (name, bound), mode in modes.items():
        for key in (("PersistentVolumeClaim", name), ("PersistentVolume", bound)):
            assert actual[key]["spec"]["accessModes"] == [mode]
    handles = {item["spec"]["csi"]["volumeHandle"] for (kind, _), item in actual.items() if kind == "PersistentVolume"}
    assert len(handles) == 3
    assert max(map(len, handles)) <= 128


def test_a_job_makes_the_folders_and_another_one_comes_with_others(tmp_path: Path) -> None:
    actual = objects(EVERYTHING)
    (name,) = [name for kind, name in actual if kind == "Job"]
    pod = actual["Job", name]["spec"]["template"]["spec"]
    assert (pod["nodeSelector"], [item["key"] for item in pod["tolerations"]]) == ({"group": "system"}, ["system"])
    *_, first, second = pod["containers"][0]["command"]
    gid = team_gid("llm", None)
    assert (first, second) == ("::/root-of-lustre/datasets", f"2770:{gid}:/root-of-lustre/teams/llm")
    assert made(actual, tmp_path) == {"datasets": 0o755, "teams/llm": 0o2770}
    other = objects({"storage": {"work": {"path": "/teams/llm"}}})
    assert name not in {key for _, key in other}
    assert [kind for kind, _ in objects(None) if kind == "Job"] == []


def made(actual: Mapping[tuple[str, str], Object], root: Path) -> dict[str, int]:
    """Modes of the folders that the job makes below `root`, with the group of whoever runs this test."""
    (job,) = [item for (kind, _), item in actual.items() if kind == "Job"]
    _, *command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    words = [text.split(":") for text in command[2:]]
    folders = {folder.removeprefix("/root-of-lustre/"): root / folder.lstrip("/") for _, _, folder in words}
    arguments = [f"{mode}:{os.getgid()}:{root}{folder}" for mode, _, folder in words]
    subprocess.run([sys.executable, *command[:2], *arguments], check=True)
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in folders.items()}


def test_a_folder_of_a_team_that_was_open_to_all_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "root-of-lustre/teams/llm"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert made(objects({"storage": {"work": {"path": "/teams/llm"}}}), tmp_path) == {"teams/llm": 0o2770}


def test_who_uses_a_folder_decides_whose_it_is() -> None:
    def team(path: str, *, read_only: bool, gid: int) -> Team:
        claim = {"path": path, "read_only": read_only}
        return Team.model_validate({"access": {"storage": {"claim": claim}, "gid": gid}})

    def owner(*teams: Team) -> str:
        named = dict(zip(("one", "two"), teams, strict=False))
        job = team_folders(named, VALUES, PLACEMENT)[-1]
        return job["spec"]["template"]["spec"]["containers"][0]["command"][-1]

    writer, other = team("/shared", read_only=False, gid=5001), team("/shared", read_only=False, gid=5002)
    reader = team("/shared", read_only=True, gid=5003)
    assert owner(writer) == "2770:5001:/root-of-lustre/shared"
    assert owner(writer, reader) == "2775:5001:/root-of-lustre/shared"
    assert owner(writer, other) == "1777:0:/root-of-lustre/shared"
    assert owner(reader) == "::/root-of-lustre/shared"


def test_the_group_of_a_team_follows_from_its_name_alone() -> None:
    assert team_gid("llm", None) == team_gid("llm", TeamAccess()) != team_gid("vision", None)
    assert team_gid("llm", TeamAccess(gid=5000)) == 5000


def test_limits_of_containers_name_only_what_the_file_says() -> None:
    assert objects(EVERYTHING)["LimitRange", "podwright-limits"]["spec"]["limits"] == [
        {
            "type": "Container",
            "defaultRequest": {"cpu": "1"},
            "default": {"cpu": "2", "memory": "512Mi"},
            "max": {"memory": "64Gi"},
        }
    ]
