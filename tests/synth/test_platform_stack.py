"""Where the platform stands among the stacks, and what is left of them without a cluster."""

import json

from synthesis import environment, environment_of, synthesis, synthesize


def depends_on(environment_name: str, stack: str) -> set[str]:
    """Ids of the stacks that come before a stack."""
    manifest = json.loads((synthesis(environment_name).directory / "manifest.json").read_text())
    artifacts = manifest["artifacts"]
    (items,) = [item for name, item in artifacts.items() if item.get("displayName", "").endswith(f"/{stack}")]
    before = [artifacts[name].get("displayName", "") for name in items["dependencies"]]
    return {name.rpartition("/")[2].partition(" ")[0] for name in before if name}


def test_operators_come_after_the_nodes_and_before_quotas() -> None:
    assert "cluster" in depends_on("dev", "platform")
    assert "platform" in depends_on("dev", "governance")


def test_every_part_that_is_wanted_is_there() -> None:
    template = synthesis("dev").templates["platform"]["Resources"]
    addons = [item["Properties"]["AddonName"] for item in template.values() if item["Type"] == "AWS::EKS::Addon"]
    assert sorted(addons) == sorted(environment("dev").platform.addons)
    releases = {
        name: item["Properties"] for name, item in template.items() if item["Type"] == "Custom::AWSCDK-EKS-HelmChart"
    }
    assert {(item["Release"], item["Namespace"]) for item in releases.values()} == {
        ("kuberay-operator", "kuberay-system"),
        ("kubeflow-trainer", "kubeflow-system"),
    }
    assert all(item["Wait"] and item["CreateNamespace"] for item in releases.values())


def test_leader_worker_sets_bring_a_release_and_a_stack_for_it() -> None:
    text = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
platform: {leader_worker_set: {}}
"""
    releases = synthesize(environment_of(text)).resources("Custom::AWSCDK-EKS-HelmChart")
    (release,) = [item["Properties"] for name, item in releases.items() if name.startswith("platform/")]
    assert (release["Release"], release["Namespace"]) == ("lws", "lws-system")
    assert "nodeSelector" in json.loads(release["Values"])


def test_runtimes_come_after_the_trainer() -> None:
    template = synthesis("dev").templates["platform"]["Resources"]
    (runtime,) = [
        item for item in template.values() if "ClusterTrainingRuntime" in item.get("Properties", {}).get("Manifest", "")
    ]
    (trainer,) = [
        name for name, item in template.items() if item.get("Properties", {}).get("Release") == "kubeflow-trainer"
    ]
    reached = set(runtime["DependsOn"])
    for name in list(reached):
        reached |= set(template[name].get("DependsOn", ()))
    assert trainer in reached


def test_the_gpu_operator_comes_with_hyperpods_chart() -> None:
    releases = synthesis("dev").resources("Custom::AWSCDK-EKS-HelmChart")
    values = json.loads(
        next(item for name, item in releases.items() if name.startswith("eks/"))["Properties"]["Values"]
    )
    assert values["gpu-operator"]["enabled"] is True
    assert values["nvidia-device-plugin"]["devicePlugin"]["enabled"] is False


def test_queues_need_network_and_storage_alone() -> None:
    assert set(synthesis("training-jobs-queue").templates) == {"network", "storage", "training-jobs", "observability"}
    queues = synthesis("training-jobs-queue").resources("AWS::Batch::JobQueue")
    names = {item["Properties"]["JobQueueName"] for item in queues.values()}
    assert names == {"training-jobs-queue-urgent", "training-jobs-queue-batch"}


def test_environments_without_parts_have_no_platform() -> None:
    assert "platform" not in synthesis("sandbox").templates
