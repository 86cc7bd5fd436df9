"""InferenceEndpointConfig and JumpStartModel, of HyperPod's inference operator.

Sources: sagemaker-hyperpod 3.12.0 (fields and types); hyperpod-custom-inference-template 1.2.1 and
hyperpod-jumpstart-inference-template 1.2.0 (which exclude each other); SageMaker Developer Guide, deploying custom
models, 2026-11.
"""

from ...config.settings.jobs.services import InferenceEndpoint, JumpStartModel, ModelSource
from ...planning.jobs.plan import JobPlan
from .endpoint_parts import parts, probes, stated
from .pod import Manifest, metadata, node_affinity, resources
from .volumes import variables

_API_VERSION = "inference.sagemaker.aws.amazon.com/v1"


def manifests(plan: JobPlan) -> list[Manifest]:
    """The object of an endpoint with a model of one's own."""
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
    if job.probes:
        worker["probes"] = probes(job.probes, job.port)
    if limits := job.request_limits:
        worker["requestLimits"] = stated(
            maxConcurrentRequests=limits.concurrent, maxQueueSize=limits.queue, overflowStatusCode=limits.status
        )
    spec: Manifest = {
        "modelName": job.model_name,
        "replicas": job.start,
        "invocationEndpoint": job.path,
        "loadBalancer": stated(healthCheckPath=job.health_path, routingAlgorithm=job.balance),
        "modelSourceConfig": _source(job.model, plan.region),
        # In place of `instanceTypes`, which the operator takes alone and which know of no group and no node's health.
        "nodeAffinity": node_affinity(job.affinity, plan.pod.node_selector),
        "worker": worker,
    }
    spec |= stated(endpointName=job.endpoint, modelVersion=job.model_version)
    if job.service_account:
        spec["kubernetes"] = {"serviceAccountName": job.service_account}
    spec |= parts(job)
    return [{"apiVersion": _API_VERSION, "kind": "InferenceEndpointConfig", "metadata": metadata(plan), "spec": spec}]


def jumpstart(plan: JobPlan) -> list[Manifest]:
    """The object of an endpoint with a model of JumpStart."""
    job: JumpStartModel = plan.job
    model = {"modelId": job.model_id, "acceptEula": job.accept_eula}
    model |= stated(
        modelVersion=job.model_version,
        modelHubName=job.hub,
        gatedModelDownloadRole=job.gated_role,
        additionalConfigs=[{"name": name, "value": value} for name, value in job.configs.items()],
    )
    server = stated(
        # One type: a rule refuses groups of several.
        instanceType=plan.instance_types[0],
        acceleratorPartitionType=job.partition,
        executionRole=job.execution_role,
    )
    spec: Manifest = {
        "model": model,
        "server": server,
        "replicas": job.start,
        "environmentVariables": [{"name": name, "value": value} for name, value in job.env.items()],
    }
    if job.endpoint:
        spec["sageMakerEndpoint"] = {"name": job.endpoint}
    if balancer := stated(healthCheckPath=job.health_path, routingAlgorithm=job.balance):
        spec["loadBalancer"] = balancer
    spec |= parts(job)
    return [{"apiVersion": _API_VERSION, "kind": "JumpStartModel", "metadata": metadata(plan), "spec": spec}]


def _source(model: ModelSource, region: str) -> Manifest:
    common: Manifest = {"prefetchEnabled": model.prefetch}
    if model.location:
        common["modelLocation"] = model.location
    if model.bucket:
        storage = {"bucketName": model.bucket, "region": model.region or region}
        return {"modelSourceType": "s3", "s3Storage": storage} | common
    if model.file_system:
        return {"modelSourceType": "fsx", "fsxStorage": {"fileSystemId": model.file_system}} | common
    hub: Manifest = {"modelId": model.hugging_face} | stated(commitSHA=model.revision)
    if model.token_secret:
        hub["tokenSecretRef"] = {"name": model.token_secret, "key": "token"}
    return {"modelSourceType": "huggingface", "huggingFaceModel": hub} | common
