"""HyperPodPyTorchJobs as AWS's own model and `hyp create hyp-pytorch-job` take and make them."""

import json
import os
import subprocess
import sys
from typing import Any

from pydantic import BaseModel

from job_environment import AWS_PACKAGES
from needs import require

MODEL = "sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py"
# What `hyp create hyp-pytorch-job` makes of its options, up to the call of the cluster.
HYP = """
import json, sys
from hyperpod_pytorch_job_template.v1_1.model import PyTorchJobConfig
jobs = [PyTorchJobConfig.model_validate(options).to_domain() for options in json.loads(sys.stdin.read())]
print(json.dumps([job.model_dump(exclude_none=True, mode="json") for job in jobs]))
"""


def options(manifest: dict[str, Any]) -> dict[str, Any]:
    """What one would type to get the manifest, as far as `hyp` has options."""
    spec, metadata = manifest["spec"], manifest["metadata"]
    replicas, elastic, labels = spec["replicaSpecs"][0], spec.get("elasticPolicy", {}), metadata["labels"]
    template, pod = replicas["template"], replicas["template"]["spec"]
    (container,) = pod["containers"]
    selector = dict(pod["nodeSelector"])
    claims = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod.get("volumes", ())}
    typed = {
        "job_name": metadata["name"],
        "namespace": metadata["namespace"],
        "image": container["image"],
        "command": container.get("command"),
        "args": container.get("args"),
        "environment": {item["name"]: item["value"] for item in container["env"] if "value" in item},
        "instance_type": selector.pop("node.kubernetes.io/instance-type"),
        "label_selector": selector,
        "queue_name": labels["kueue.x-k8s.io/queue-name"],
        "priority": labels.get("kueue.x-k8s.io/priority-class"),
        "preferred_topology": template["metadata"]
        .get("annotations", {})
        .get("kueue.x-k8s.io/podset-preferred-topology"),
        "service_account_name": pod.get("serviceAccountName"),
        "volume": [
            {"name": mount["name"], "type": "pvc", "mount_path": mount["mountPath"]}
            | {"claim_name": claim["claimName"], "read_only": "false"}
            for mount in container.get("volumeMounts", ())
            if (claim := claims[mount["name"]])
        ],
        "tasks_per_node": spec["nprocPerNode"],
        "max_retry": spec["runPolicy"].get("jobMaxRetryCount"),
        "replica_count": replicas["replicas"],
        "max_replica_count": replicas.get("maxReplicas"),
        "elastic_replica_increment_step": elastic.get("replicaIncrementStep"),
        "elastic_replica_discrete_values": elastic.get("replicaDiscreteValues"),
        "elastic_scaling_timeout_in_seconds": elastic.get("scalingTimeoutInSeconds"),
        "elastic_graceful_shutdown_timeout_in_seconds": elastic.get("gracefulShutdownTimeoutInSeconds"),
    }
    return {name: value for name, value in typed.items() if value not in (None, [], {})}


def has_options(spec: dict[str, Any]) -> bool:
    """Whether `hyp` has options for all of a job's parts and mounts."""
    if len(spec["replicaSpecs"]) > 1:
        return False
    (container,) = spec["replicaSpecs"][0]["template"]["spec"]["containers"]
    names = [mount["name"] for mount in container.get("volumeMounts", ())]
    return len(names) == len(set(names))


def made_by_hyp(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The jobs that AWS's command makes of the options of these manifests."""
    require((AWS_PACKAGES / "hyperpod_pytorch_job_template").is_dir(), "sagemaker-hyperpod, where .ci/run puts it")
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", HYP],
        input=json.dumps([options(job) for job in jobs]),
        env=os.environ | {"PYTHONPATH": str(AWS_PACKAGES)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compared(spec: dict[str, Any]) -> dict[str, Any]:
    """What both commands decide about a job, in one form; `hyp` knows neither requests of memory nor more volumes."""
    replicas = spec["replicaSpecs"][0]
    template, pod = replicas["template"], replicas["template"]["spec"]
    (container,) = pod["containers"]
    elastic = spec.get("elasticPolicy", {})
    own = {"faultyScaleDownTimeoutInSeconds", "minReplicas"}
    return {
        "elastic": {key: value for key, value in elastic.items() if key not in own},
        "sizes": (replicas["replicas"], replicas.get("maxReplicas", 0)),
        "processes": spec["nprocPerNode"],
        "retries": spec.get("runPolicy", {}).get("jobMaxRetryCount"),
        "nodes": pod["nodeSelector"],
        "queue": {key: value for key, value in template["metadata"]["labels"].items() if key.startswith("kueue")},
        "container": [container.get(key) for key in ("image", "command", "args")],
        "account": pod.get("serviceAccountName"),
        "claims": [volume for volume in pod.get("volumes", ()) if "persistentVolumeClaim" in volume],
    }


def accepted(model: type[BaseModel], manifest: dict[str, Any]) -> None:
    """Hold the spec of a job to a model of AWS's."""
    model.model_validate(manifest["spec"], by_name=True, by_alias=False)
