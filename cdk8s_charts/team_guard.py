"""What keeps the pods of teams from their nodes, with every engine."""

from typing import Any, Final

from ..config.settings.governance.teams import Engine
from ..planning.kubernetes.isolation import CAPABILITIES, SCRATCH, PodFreedoms
from ..planning.quota.team_names import team_namespace
from .scheduler_guard import admission_policy

_NAMES: Final = "kubernetes.io/metadata.name"
# Containers of the three kinds have types of their own, which a list cannot hold together, hence dyn().
_CONTEXTS: Final = " + ".join(
    f"(has(object.spec.{field}) ? object.spec.{field}.filter(c, has(c.securityContext)).map(c, dyn(c.securityContext)) "
    ": [])"
    for field in ("containers", "initContainers", "ephemeralContainers")
)


def team_guard(engine: Engine, freedoms: PodFreedoms) -> list[dict[str, Any]]:
    """Objects that refuse pods which reach for their node, in the namespaces of the teams that the file does not free.

    No privileged containers, no further capabilities, no /proc unmasked; no network, processes or memory of the node;
    and of its files only the team's own folder below `SCRATCH`. That folder itself and none below it: a pod could put a
    link there, and another one mount where it leads. Pods mount what is below by `subPath`, which the kubelet opens
    without leaving the volume.

    Namespaces are named one by one, since the service's carry no label of ours. Kubernetes sets their
    `kubernetes.io/metadata.name`, and nobody can change it. The policy needs Kubernetes 1.30. Sources:
    Kubernetes documentation, "Pod Security Standards", "Validating Admission Policy" and "Volumes" (hostPath, subPath),
    2026-11.

    Args:
        engine: Quota engine, which decides what the namespaces are called.
        freedoms: What the pods of teams may do to their nodes.
    """
    if not freedoms.guarded:
        return []
    own = ", ".join(f"'{folder}/' + variables.team" for folder in SCRATCH)
    prefix = len(team_namespace(engine, ""))
    variables = {"contexts": _CONTEXTS, "team": f"object.metadata.namespace.substring({prefix})"}
    network = _in(engine, freedoms.host_network)
    privileged = _in(engine, freedoms.privileged)
    more = "; access.pod_security: privileged of the team lifts this"
    validations = [
        {
            "expression": f"{privileged} || !variables.contexts.exists(c, has(c.privileged) && c.privileged)",
            "message": f"containers in a team's namespace are not privileged{more}",
        },
        {
            "expression": f"{privileged} || variables.contexts.all(c, !has(c.capabilities) || "
            f"!has(c.capabilities.add) || c.capabilities.add.all(name, name in [{_texts(CAPABILITIES)}]))",
            "message": f"containers in a team's namespace add no capability beyond baseline's and IPC_LOCK{more}",
        },
        {
            "expression": "variables.contexts.all(c, !has(c.procMount) || c.procMount == 'Default')",
            "message": f"containers in a team's namespace do not unmask /proc{more}",
        },
        {
            "expression": f"{network} || !has(object.spec.hostNetwork) || !object.spec.hostNetwork",
            "message": f"pods in a team's namespace have a network of their own: leave out hostNetwork{more}",
        },
        {
            "expression": "(!has(object.spec.hostPID) || !object.spec.hostPID) && "
            "(!has(object.spec.hostIPC) || !object.spec.hostIPC)",
            "message": f"pods in a team's namespace do not share processes or memory with the node{more}",
        },
        {
            "expression": "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath) || "
            f"v.hostPath.path in [{own}])",
            "message": "of a node's files, pods in a team's namespace mount their team's folder below "
            f"{' or '.join(SCRATCH)}, and what is in it by subPath{more}",
        },
    ]
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "scope": "Namespaced"}
    rules = [
        # What pods have of all this never changes, but for the containers that are added to look into them.
        {**pods, "resources": ["pods"], "operations": ["CREATE"]},
        {**pods, "resources": ["pods/ephemeralcontainers"], "operations": ["UPDATE"]},
    ]
    names = [team_namespace(engine, team) for team in freedoms.guarded]
    return admission_policy(
        "podwright-team-pods", rules, {"key": _NAMES, "operator": "In", "values": names}, variables, validations
    )


def _in(engine: Engine, teams: tuple[str, ...]) -> str:
    """Whether the pod is in the namespace of one of some teams."""
    return f"object.metadata.namespace in [{_texts(tuple(team_namespace(engine, team) for team in teams))}]"


def _texts(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)
