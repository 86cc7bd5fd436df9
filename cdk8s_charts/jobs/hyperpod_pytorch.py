"""HyperPodPyTorchJob, of HyperPod's training operator.

Sources: sagemaker-hyperpod 3.12.0 (fields and types); SageMaker Developer Guide, using the training operator and
elastic training, 2026-11; hyperpod-elastic-agent 1.1.3 (hyperpodrun); hyperpod-checkpointless-training 1.0.1.
"""

from ...config.settings.jobs.pytorch import Elastic, HyperPodPyTorchJob, LogRule
from ...planning.jobs.launcher import HYPERPODRUN, started_by_launcher
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.queue import PRIORITY_LABEL
from .pod import Manifest, metadata, pod_template

# The agent listens here for the operator; checkpointless training takes the others.
_AGENT_PORT = 8080
_PEER_PORTS = range(9000, 9006)
_CLEAN_PODS = {"all": "All", "only_complete": "OnlyComplete", "none": "None"}
# Ports for connections between all ranks, which rootless initialisation makes at once.
_MORE_PORTS = 'sysctl -w net.ipv4.ip_local_port_range="20000 65535" && exec "$@"'


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object."""
    job: HyperPodPyTorchJob = plan.job
    spec: Manifest = {
        "nprocPerNode": str(_processes(plan)),
        "replicaSpecs": _replicas(plan),
        "runPolicy": _run_policy(job),
    }
    if job.elastic:
        spec["elasticPolicy"] = _elastic_policy(job.elastic)
    meta = metadata(plan)
    if _two_priorities(job):
        # A label on the job would give both its workloads the same priority.
        for each in (meta, *(replicas["template"]["metadata"] for replicas in spec["replicaSpecs"])):
            each["labels"].pop(PRIORITY_LABEL, None)
    return [{"apiVersion": "sagemaker.amazonaws.com/v1", "kind": "HyperPodPyTorchJob", "metadata": meta, "spec": spec}]


def _two_priorities(job: HyperPodPyTorchJob) -> bool:
    return job.elastic is not None and job.elastic.extra_priority is not None


def _processes(plan: JobPlan) -> int:
    return plan.job.processes_per_node or plan.pod.ranks


def _replicas(plan: JobPlan) -> list[Manifest]:
    """The replica specs: one, or two where pods beyond the smallest size have a priority of their own."""
    job: HyperPodPyTorchJob = plan.job
    elastic = job.elastic
    if elastic is None:
        only = {"name": "pods", "replicas": job.start, "template": _template(plan)}
        return [only | ({"spares": job.spares} if job.spares else {})]
    if elastic.extra_priority is None:
        return [
            {"name": "pods", "replicas": job.start, "maxReplicas": elastic.max_replicas, "template": _template(plan)}
        ]
    extra = _template(plan)
    extra["spec"]["priorityClassName"] = plan.placement.priority_classes[elastic.extra_priority]
    return [
        {"name": "base", "replicas": elastic.min_replicas, "template": _template(plan)},
        {
            "name": "elastic",
            "replicas": job.start - elastic.min_replicas,
            "maxReplicas": elastic.max_replicas - elastic.min_replicas,
            "template": extra,
        },
    ]


def _template(plan: JobPlan) -> Manifest:
    """The pod template, with the agent's ports and the command that the launcher wants."""
    job: HyperPodPyTorchJob = plan.job
    ports = [_AGENT_PORT, *(_PEER_PORTS if job.checkpoints.checkpointless else ())]
    container: Manifest = {"name": "pytorch", "ports": [{"containerPort": port} for port in ports]}
    if job.checkpoints.checkpointless:
        container["securityContext"] = {"privileged": True}
    if job.launch == "hyperpodrun":
        own = started_by_launcher(job.command)
        launched = [HYPERPODRUN, *_arguments(plan), *own.retained, *own.script]
        if job.checkpoints.checkpointless:
            container |= {"command": ["/bin/sh", "-c", _MORE_PORTS, "--"], "args": launched}
        else:
            container |= {"command": launched[:1], "args": launched[1:]}
    elif job.command:
        container["command"] = list(job.command)
    template = pod_template(plan, container)
    if _two_priorities(job) and job.priority:
        template["spec"]["priorityClassName"] = plan.placement.priority_classes[job.priority]
    if job.elastic:
        # Kubernetes kills a pod after 30 seconds otherwise, in the middle of a checkpoint.
        template["spec"]["terminationGracePeriodSeconds"] = job.elastic.graceful_shutdown_timeout_seconds + 30
    return template


def _arguments(plan: JobPlan) -> list[str]:
    """What hyperpodrun is told before the script. The operator tells the agent how many pods there are later."""
    job: HyperPodPyTorchJob = plan.job
    arguments = [
        f"--nnodes={job.start}",
        f"--nproc-per-node={_processes(plan)}",
        "--rdzv-backend=hyperpod",
        "--tee=3",
        "--log-dir=/tmp/hyperpod",
    ]
    if job.checkpoints.checkpointless:
        arguments.append("--inprocess-restart")
    if job.elastic:
        # After SIGTERM the agent kills processes within 15 seconds otherwise, whatever Kubernetes grants the pod.
        arguments.append(f"--shutdown-timeout={job.elastic.graceful_shutdown_timeout_seconds}")
    return arguments + list(job.hyperpodrun_args)


def _run_policy(job: HyperPodPyTorchJob) -> Manifest:
    """When HyperPod restarts pods, the job, or gives up."""
    restarts = job.restarts
    policy: Manifest = {
        "cleanPodPolicy": _CLEAN_PODS[job.clean_pods],
        "jobMaxRetryCount": restarts.retries,
        "ttlSecondsAfterFinished": job.keep_seconds,
        "restartPolicy": _given(
            evalPeriodSeconds=restarts.window_seconds,
            numRestartBeforeFullJobRestart=restarts.before_full,
            maxFullJobRestarts=restarts.full,
            maxNumRepeatOffendersToAvoid=restarts.avoid_repeat_offenders,
            scaleUpSnoozeTimeInSeconds=restarts.scale_up_pause_seconds or None,
        ),
    }
    policy |= _given(
        activeDeadlineSeconds=job.active_deadline_seconds,
        startupDeadlineSeconds=job.startup_deadline_seconds,
        faultDeadlineSeconds=job.fault_deadline_seconds,
    )
    if job.log_rules:
        policy["logMonitoringConfiguration"] = [_log_rule(name, rule) for name, rule in job.log_rules.items()]
    return policy


def _log_rule(name: str, rule: LogRule) -> Manifest:
    threshold = rule.threshold
    return _given(
        name=name,
        logPattern=rule.pattern,
        expectedStartCutOffInSeconds=rule.start_seconds,
        expectedRecurringFrequencyInSeconds=rule.every_seconds,
        metricThreshold=int(threshold) if threshold is not None and threshold == int(threshold) else threshold,
        operator=rule.operator,
        metricEvaluationDataPoints=rule.data_points,
        stopPattern=rule.stop_pattern,
        faultOnMatch=rule.fault_on_match or None,
    )


def _elastic_policy(elastic: Elastic) -> Manifest:
    return _given(
        minReplicas=elastic.min_replicas,
        maxReplicas=elastic.max_replicas,
        replicaIncrementStep=elastic.step,
        replicaDiscreteValues=list(elastic.values) or None,
        scalingTimeoutInSeconds=elastic.scaling_timeout_seconds,
        gracefulShutdownTimeoutInSeconds=elastic.graceful_shutdown_timeout_seconds,
        faultyScaleDownTimeoutInSeconds=elastic.faulty_scale_down_timeout_seconds,
    )


def _given(**fields: object) -> Manifest:
    return {name: value for name, value in fields.items() if value is not None}
