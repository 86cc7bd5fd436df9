"""What pods of a job mount and read: claims, secrets, config maps, scratch and shared memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ...config.settings.jobs.pods import FromConfigMap, FromSecret
from ...planning.jobs.mlflow import MLFLOW, TRACKING_URI
from ...planning.jobs.plan import JobPlan

_Object = dict[str, Any]
# The driver makes a Secret of Kubernetes, which variables need, only while some pod mounts the secret.
_UNSAID: Final = "/run/podwright-secrets"
_CSI_DRIVER: Final = "secrets-store.csi.k8s.io"


class Mounted(NamedTuple):
    """Volumes of a pod, and where its containers see them."""

    volumes: list[_Object]
    mounts: list[_Object]


def mounted(plan: JobPlan) -> Mounted:
    """Everything that the pods of a job mount.

    A claim is one volume however often it is mounted: a pod with two volumes of one claim hangs.
    """
    volumes: dict[str, _Object] = {}
    mounts: list[_Object] = []
    claims = list(dict.fromkeys(mount.claim for mount in plan.job.mounts.values()))
    for path, mount in plan.job.mounts.items():
        name = f"claim-{claims.index(mount.claim)}"
        volumes[name] = {"persistentVolumeClaim": {"claimName": mount.claim}}
        folder = {"subPath": mount.sub_path} if mount.sub_path else {}
        mounts.append({"name": name, "mountPath": path} | folder | ({"readOnly": True} if mount.read_only else {}))
    if plan.pod.shm_mib:
        volumes["shm"] = {"emptyDir": {"medium": "Memory", "sizeLimit": f"{plan.pod.shm_mib}Mi"}}
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    if plan.job.scratch:
        volumes["scratch"] = {"hostPath": {"path": plan.pod.scratch, "type": "DirectoryOrCreate"}}
        mounts.append({"name": "scratch", "mountPath": plan.job.scratch})
    for name, (path, volume) in _read_only(plan):
        volumes[name] = volume
        mounts.append({"name": name, "mountPath": path, "readOnly": True})
    return Mounted([{"name": name, **volume} for name, volume in volumes.items()], mounts)


def _read_only(plan: JobPlan) -> "Iterator[tuple[str, tuple[str, _Object]]]":
    """Folders with a file for each key of secrets and config maps, by the name of their volume."""
    for number, (name, secret) in enumerate(plan.job.secrets.items()):
        if secret.secrets_manager:
            attributes = {"secretProviderClass": _own(plan, name)}
            csi = {"driver": _CSI_DRIVER, "readOnly": True, "volumeAttributes": attributes}
            yield f"secret-{number}", (secret.path or f"{_UNSAID}/{name}", {"csi": csi})
        elif secret.path:
            # Projected, since AWS's model of HyperPodPyTorchJob knows secrets of pods in no other way.
            yield f"secret-{number}", (secret.path, {"projected": {"sources": [{"secret": {"name": name}}]}})
    for number, (name, config_map) in enumerate(plan.job.config_maps.items()):
        if config_map.path:
            yield f"config-map-{number}", (config_map.path, {"configMap": {"name": name}})


def variables(plan: JobPlan) -> list[_Object]:
    """The environment of the job's containers: fields of the pod, values, then keys of secrets and config maps."""
    specified = [plan.job.env, *(source.env for source in (*plan.job.secrets.values(), *plan.job.config_maps.values()))]
    own = {name for variables in specified for name in variables}
    # Kubernetes expands $(NAME) only to a variable that comes earlier in the list.
    values: list[_Object] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
        for name, field in plan.pod.rendezvous.fields.items()
        if name not in own
    ]
    further = {name: value for name, value in plan.pod.rendezvous.values.items() if name not in own}
    values += [{"name": name, "value": value} for name, value in {**further, **plan.pod.env}.items()]
    if plan.mlflow:
        values += _references(FromConfigMap(env={TRACKING_URI: TRACKING_URI}), "configMapKeyRef", MLFLOW)
    for name, secret in plan.job.secrets.items():
        values += _references(secret, "secretKeyRef", _own(plan, name) if secret.secrets_manager else name)
    for name, config_map in plan.job.config_maps.items():
        values += _references(config_map, "configMapKeyRef", name)
    return values


def _references(source: FromConfigMap, kind: str, name: str) -> list[_Object]:
    return [{"name": variable, "valueFrom": {kind: {"name": name, "key": key}}} for variable, key in source.env.items()]


def provider_classes(plan: JobPlan) -> list[_Object]:
    """What tells the Secrets Store CSI driver which secrets of AWS Secrets Manager the job's pods get.

    Pods ask with the role of their service account, by pod identity. A secret that gives variables is a Secret of
    Kubernetes as well, as long as a pod mounts it, for which the driver has to run with `syncSecret.enabled`.
    Source: AWS Secrets Manager User Guide, ASCP code examples, and Secrets Store CSI driver documentation, sync as
    Kubernetes secret, 2026-11.
    """
    specified: Mapping[str, FromSecret] = plan.job.secrets
    return [
        {
            "apiVersion": "secrets-store.csi.x-k8s.io/v1",
            "kind": "SecretProviderClass",
            "metadata": {"name": _own(plan, name), "namespace": plan.placement.namespace},
            "spec": _provided(plan, name, secret),
        }
        for name, secret in specified.items()
        if secret.secrets_manager
    ]


def _provided(plan: JobPlan, name: str, secret: FromSecret) -> _Object:
    """Spec of the class of one secret: its keys as files, or the whole of it as one that has its name."""
    keys = sorted(set(secret.env.values()))
    # JSON is YAML too, which the provider reads.
    item: _Object = {"objectName": secret.secrets_manager, "objectType": "secretsmanager", "objectAlias": name}
    if keys:
        # Quoted, since a name with a hyphen is no path of JMESPath otherwise.
        item["jmesPath"] = [{"path": f'"{key}"', "objectAlias": key} for key in keys]
    parameters = {"region": plan.region, "usePodIdentity": "true", "objects": json.dumps([item])}
    spec: _Object = {"provider": "aws", "parameters": parameters}
    if keys:
        data = [{"objectName": key, "key": key} for key in keys]
        spec["secretObjects"] = [{"secretName": _own(plan, name), "type": "Opaque", "data": data}]
    return spec


def _own(plan: JobPlan, secret: str) -> str:
    return f"{plan.name}-{secret}"
