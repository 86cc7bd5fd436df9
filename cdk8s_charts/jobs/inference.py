"""InferenceEndpointConfig, of HyperPod's inference operator.

Sources: sagemaker-hyperpod 3.12.0 (fields and types); hyperpod-custom-inference-template 1.2.1 (which exclude
each other); SageMaker Developer Guide, deploying custom models, 2026-11.
"""

from ...config.settings.jobs.services import InferenceEndpoint, ModelSource
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, node_affinity, resources
from .volumes import variables


def manifests(plan: JobPlan) -> list[Manifest]:
    """The endpoint object."""
    job: InferenceEndpoint = plan.job
    worker: Manifest = {
        "image": job.image,
        "modelInvocationPort": {"containerPort": job.port, "name": "http"},
        "modelVolumeMount": {"name": "model-weights", "mountPath": job.weights},
        "environmentVariables": variables(plan),
        "resources": resources(plan),
    }
    if job.command:
        worker["args"] = list(job.command)
    spec: Manifest = {
        "modelName": job.model_name,
        "replicas": job.replicas,
        "invocationEndpoint": job.path,
        "loadBalancer": {"healthCheckPath": job.health_path},
        "modelSourceConfig": _source(job.model, plan.region),
        # In place of `instanceTypes`, which the operator takes alone and which know of no group and no node's health.
        "nodeAffinity": node_affinity(job.affinity, plan.pod.node_selector),
        "worker": worker,
    }
    if job.endpoint:
        spec["endpointName"] = job.endpoint
    if job.service_account:
        spec["kubernetes"] = {"serviceAccountName": job.service_account}
    return [
        {
            "apiVersion": "inference.sagemaker.aws.amazon.com/v1",
            "kind": "InferenceEndpointConfig",
            "metadata": metadata(plan),
            "spec": spec,
        }
    ]


def _source(model: ModelSource, region: str) -> Manifest:
    common: Manifest = {"prefetchEnabled": model.prefetch}
    if model.location:
        common["modelLocation"] = model.location
    if model.bucket:
        storage = {"bucketName": model.bucket, "region": model.region or region}
        return {"modelSourceType": "s3", "s3Storage": storage} | common
    if model.file_system:
        return {"modelSourceType": "fsx", "fsxStorage": {"fileSystemId": model.file_system}} | common
    hub: Manifest = {"modelId": model.hugging_face}
    if model.token_secret:
        hub["tokenSecretRef"] = {"name": model.token_secret, "key": "token"}
    return {"modelSourceType": "huggingface", "huggingFaceModel": hub} | common
