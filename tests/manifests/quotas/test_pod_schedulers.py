"""What jobs tell the engines that schedule pods themselves: gangs, places in the network, and who may be stopped."""

import json
from typing import Any

import pytest

from job_environment import rendered

PYTORCH = {"elastic": {"min_replicas": 2, "max_replicas": 4}, "topology": "network_layer_3"}


def engine_settings(engine: str) -> dict[str, Any]:
    return {"governance": {"engine": engine}}


def worker(engine: str, **job: Any) -> dict[str, Any]:
    (manifest,) = rendered("pytorch", overrides=engine_settings(engine), **job)
    return manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]


def test_yunikorn_learns_of_a_gang_from_its_pods() -> None:
    template = worker("yunikorn", **PYTORCH)
    annotations, spec = template["metadata"]["annotations"], template["spec"]
    (group,) = json.loads(annotations["yunikorn.apache.org/task-groups"])
    assert annotations["yunikorn.apache.org/task-group-name"] == group["name"]
    assert group["minMember"] == 2
    assert group["minResource"] == spec["containers"][0]["resources"]["requests"]
    assert (group["nodeSelector"], group["affinity"]) == (spec["nodeSelector"], spec["affinity"])


@pytest.mark.parametrize("engine", ["hyperpod", "kueue", "kai"])
def test_others_need_no_telling(engine: str) -> None:
    assert "yunikorn" not in json.dumps(worker(engine, **PYTORCH))


def test_a_single_pod_is_no_gang() -> None:
    assert "yunikorn.apache.org/task-groups" not in worker("yunikorn", nodes=1)["metadata"].get("annotations", {})


def test_a_service_is_no_gang() -> None:
    """Its pods come and go one by one."""
    model = {"bucket": "acme-models", "location": "mistral"}
    manifests = rendered("inference", overrides=engine_settings("yunikorn"), model_name="m", model=model, replicas=2)
    assert "task-groups" not in json.dumps(manifests)


def test_kuberay_makes_gangs_of_ray_for_yunikorn() -> None:
    (job,) = rendered(
        "ray", overrides=engine_settings("yunikorn"), nodes=2, ray_version="2.49.0", command=["python", "a.py"]
    )
    labels = job["metadata"]["labels"]
    assert labels["ray.io/gang-scheduling-enabled"] == "true"
    assert labels["yunikorn.apache.org/queue"] == "root.h100.llm"
    assert "task-groups" not in json.dumps(job)
    (job,) = rendered(
        "ray", overrides=engine_settings("kai"), nodes=2, ray_version="2.49.0", command=["python", "a.py"]
    )
    assert "ray.io/gang-scheduling-enabled" not in job["metadata"]["labels"]


def test_kai_reads_the_place_in_the_network_from_the_job() -> None:
    (job,) = rendered("pytorch", overrides=engine_settings("kai"), **PYTORCH)
    assert job["metadata"]["annotations"] == {
        "kai.scheduler/topology": "p5",
        "kai.scheduler/topology-preferred-placement": "topology.k8s.aws/network-node-layer-3",
    }


def test_kai_may_stop_jobs_of_any_weight() -> None:
    """It takes a priority of 100 or more as one that nobody may stop, and lets such jobs borrow nothing."""
    (job,) = rendered("pytorch", overrides=engine_settings("kai"), nodes=2, priority="inference")
    pods = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    assert pods["spec"]["priorityClassName"] == "inference-100"
    for metadata in (job["metadata"], pods["metadata"]):
        assert metadata["labels"]["kai.scheduler/preemptibility"] == "preemptible"
