"""What both kinds of HyperPod's inference operator say of an endpoint, in the words of its objects."""

from typing import Any

from ...config.settings.jobs.endpoints import (
    Autoscaling,
    Capture,
    CloudWatchTrigger,
    DataCapture,
    KvCache,
    PodCapture,
    Probe,
    Probes,
    PrometheusTrigger,
    Tls,
)
from ...config.settings.jobs.services import Endpoint

_Fields = dict[str, Any]
_MEASURES = {"average": "Average", "value": "Value"}
_PARTS = {"input": "Input", "output": "Output"}


def parts(job: Endpoint) -> _Fields:
    """The fields of an endpoint that are not its model, its pods and its load balancer.

    What a file leaves out is not there, so that the operator's defaults hold.
    """
    routing = job.routing and stated(
        enabled=True,
        routingStrategy=job.routing.strategy.replace("_", ""),
        autoScalingSpec=job.routing.autoscaling and _autoscaling(job.routing.autoscaling),
    )
    metrics = job.metrics and {
        "enabled": True,
        "metricsScrapeIntervalSeconds": job.metrics.every_seconds,
        "modelMetrics": {"path": job.metrics.path, "port": job.metrics.port},
    }
    return stated(
        autoScalingSpec=job.autoscaling and _autoscaling(job.autoscaling),
        kvCacheSpec=job.kv_cache and _kv_cache(job.kv_cache),
        intelligentRoutingSpec=routing,
        tlsConfig=job.tls and _tls(job.tls),
        dnsConfig=job.tls and job.tls.hosted_zone and {"hostedZoneId": job.tls.hosted_zone},
        dataCapture=job.data_capture and _data_capture(job.data_capture),
        metrics=metrics,
        maxDeployTimeInSeconds=job.deploy_seconds,
    )


def stated(**fields: Any) -> _Fields:
    """Those of some fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def probes(settings: Probes, port: int) -> _Fields:
    """Probes of a container that serves on a port."""
    named = {"startupProbe": settings.startup, "readinessProbe": settings.readiness, "livenessProbe": settings.liveness}
    return {name: _probe(probe, port) for name, probe in named.items() if probe}


def _probe(probe: Probe, port: int) -> _Fields:
    if probe.command:
        how: _Fields = {"exec": {"command": list(probe.command)}}
    elif probe.path:
        how = {"httpGet": {"path": probe.path, "port": probe.port or port}}
    else:
        how = {"tcpSocket": {"port": probe.port}}
    return how | stated(
        initialDelaySeconds=probe.delay_seconds,
        periodSeconds=probe.period_seconds,
        timeoutSeconds=probe.timeout_seconds,
        failureThreshold=probe.failures,
    )


def _autoscaling(settings: Autoscaling) -> _Fields:
    """When pods come and go. Several triggers have a list, which goes before the field for one."""
    return stated(
        minReplicaCount=settings.min_replicas,
        maxReplicaCount=settings.max_replicas,
        pollingInterval=settings.polling_seconds,
        cooldownPeriod=settings.cooldown_seconds,
        initialCooldownPeriod=settings.initial_cooldown_seconds,
        scaleUpStabilizationTime=settings.scale_up_seconds,
        scaleDownStabilizationTime=settings.scale_down_seconds,
        cloudWatchTriggerList=[_cloudwatch(name, each) for name, each in settings.cloudwatch.items()],
        prometheusTriggerList=[_prometheus(name, each) for name, each in settings.prometheus.items()],
    )


def _cloudwatch(name: str, trigger: CloudWatchTrigger) -> _Fields:
    return _trigger(name, trigger) | stated(
        namespace=trigger.namespace,
        metricName=trigger.metric,
        dimensions=[{"name": key, "value": value} for key, value in trigger.dimensions.items()],
        metricStat=trigger.statistic,
        metricCollectionPeriod=trigger.period_seconds,
        metricCollectionStartTime=trigger.window_seconds,
        minValue=trigger.empty,
    )


def _prometheus(name: str, trigger: PrometheusTrigger) -> _Fields:
    return _trigger(name, trigger) | stated(
        query=trigger.query, serverAddress=trigger.server, namespace=trigger.namespace
    )


def _trigger(name: str, trigger: CloudWatchTrigger | PrometheusTrigger) -> _Fields:
    return stated(
        name=name,
        metricType=_MEASURES[trigger.measure],
        targetValue=trigger.target,
        activationTargetValue=trigger.activation,
        useCachedMetrics=trigger.cached,
    )


def _kv_cache(settings: KvCache) -> _Fields:
    return stated(
        enableL1Cache=settings.cpu,
        enableL2Cache=settings.shared is not None,
        l2CacheSpec=stated(l2CacheBackend=settings.shared, l2CacheLocalUrl=settings.redis),
        cacheConfigFile=settings.config_file,
    )


def _tls(settings: Tls) -> _Fields:
    own = {"acmArn": settings.certificate, "domainName": settings.domain} if settings.certificate else {}
    return stated(customCertificateConfig=own, tlsCertificateOutputS3Uri=settings.output)


def _data_capture(settings: DataCapture) -> _Fields:
    pods = settings.pods and _capture(settings.pods) | _writing(settings.pods)
    endpoint = settings.endpoint and _capture(settings.endpoint)
    logs = {"enabled": True} if settings.load_balancer else {}
    return stated(s3Uri=settings.s3, sagemakerEndpoint=endpoint, loadBalancer=logs, modelPod=pods)


def _capture(settings: Capture) -> _Fields:
    types = stated(jsonContentTypes=list(settings.json_types), csvContentTypes=list(settings.csv_types))
    return stated(
        enabled=True,
        initialSamplingPercentage=settings.percent,
        captureOptions=[{"captureMode": _PARTS[part]} for part in settings.parts],
        kmsKeyId=settings.key,
        captureContentTypeHeader=types,
    )


def _writing(settings: PodCapture) -> _Fields:
    return {
        "bufferConfig": {"batchSize": settings.batch, "flushIntervalSeconds": settings.flush_seconds},
        "payloadConfig": {"maxPayloadSizeKB": settings.max_payload_kb},
    }
