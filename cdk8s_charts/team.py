"""A team's place in Kubernetes: namespace, permissions, ceilings, network policy, service accounts and volumes."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any, Final

from ..config.catalog.kubernetes_groups import TEAM_LABEL, team_group
from ..config.settings.governance.team_access import Caps, ContainerLimits, Size, TeamAccess
from ..config.settings.governance.teams import Engine, Team
from ..planning.jobs.mlflow import MLFLOW, TRACKING_URI
from ..planning.kubernetes.deployed_values import DeployedValues
from ..planning.quota.team_names import team_namespace
from .lustre_volumes import lustre_volume

Object = dict[str, Any]
ROLES: Final = ("edit", "view")
ACCELERATORS: Final = ("nvidia.com/gpu", "aws.amazon.com/neurondevice")
_RBAC: Final = "rbac.authorization.k8s.io"
_NAMES: Final = "kubernetes.io/metadata.name"
_READ: Final = ("get", "list", "watch")
_WRITE: Final = (*_READ, "create", "update", "patch", "delete", "deletecollection")
# Where HyperPod's own pods are: the elastic agent is asked on 8080, and memory for checkpoints answers on 9200.
# Source: hyperpod-elastic-agent 1.1.3, --server-port; amzn-sagemaker-checkpointing, in-memory tier, 2026-11.
_HYPERPOD: Final = "aws-hyperpod"
_HYPERPOD_PORTS: Final = (8080, 9200)
# Where every pod gets the credentials of its service account. Source: Amazon EKS User Guide, EKS Pod Identity
# restrictions, 2026-11.
_IDENTITY_AGENT: Final = ("169.254.170.23/32", "fd00:ec2::23/128")
# Where every process of a node gets the credentials of the node's role. Source: Amazon EC2 User Guide, instance
# metadata, 2026-11.
_METADATA: Final = ("169.254.169.254/32", "fd00:ec2::254/128")
# API groups of jobs and of what belongs to them, which the built-in roles of Kubernetes do not know.
_JOBS: Final = {
    "batch": ("jobs", "cronjobs"),
    "apps": ("deployments", "statefulsets", "replicasets"),
    "sagemaker.amazonaws.com": ("hyperpodpytorchjobs",),
    "kubeflow.org": ("pytorchjobs", "mpijobs", "tfjobs", "xgboostjobs", "paddlejobs"),
    "trainer.kubeflow.org": ("trainjobs",),
    "ray.io": ("rayjobs", "rayclusters", "rayservices", "raycronjobs"),
    "jobset.x-k8s.io": ("jobsets",),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "inference.sagemaker.aws.amazon.com": ("inferenceendpointconfigs", "jumpstartmodels"),
    "workspace.jupyter.org": ("workspaces",),
    "resource.nvidia.com": ("computedomains",),
}


def team_roles() -> list[Object]:
    """The two cluster roles that every team's bindings use.

    Not Kubernetes' own `edit`: that may change network policies, make service accounts and act as them, and knows no
    training jobs. Neither role may change quotas, limits, policies or permissions. Logs and shells of pods go with
    `edit`, logs alone with `view`; only `edit` reads secrets.
    """
    pods = ("pods", "configmaps", "services", "persistentvolumeclaims", "events", "resourcequotas", "limitranges")
    edit = [
        _rule("", ("pods", "configmaps", "secrets", "services"), _WRITE),
        _rule("", ("pods/exec", "pods/attach", "pods/portforward"), ("create", "get")),
        _rule("", ("pods/log", "pods/status"), ("get",)),
        _rule("", (*pods[3:], "serviceaccounts"), _READ),
        *(_rule(group, kinds, _WRITE) for group, kinds in _JOBS.items()),
        _rule("kueue.x-k8s.io", ("workloads", "localqueues"), _READ),
    ]
    view = [
        _rule("", (*pods, "serviceaccounts"), _READ),
        _rule("", ("pods/log", "pods/status"), ("get",)),
        *(_rule(group, kinds, _READ) for group, kinds in _JOBS.items()),
        _rule("kueue.x-k8s.io", ("workloads", "localqueues"), _READ),
    ]
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": _role(name)}, "rules": rules}
        for name, rules in (("edit", edit), ("view", view))
    ]


def team_namespaces(engine: Engine, teams: Mapping[str, Team]) -> list[Object]:
    """The namespaces of all teams; none with engine hyperpod, where the service makes them with the quotas."""
    return [_namespace(engine, name, team) for name, team in teams.items()] if engine != "hyperpod" else []


def team_objects(engine: Engine, teams: Mapping[str, Team], values: DeployedValues) -> list[Object]:
    """What lies in the namespaces of all teams, with the volumes that their claims are bound to.

    Each team has all of it, also where a setting is absent: a quota without ceilings, limits of nothing, a network
    policy that keeps pods from instance metadata alone. A setting that goes from the file loses its effect.

    Args:
        engine: Quota engine, which decides what the namespaces are called.
        teams: Teams by name.
        values: What the deployment knows of the file systems.
    """
    return [item for name, team in teams.items() for item in _team(engine, name, team.access or TeamAccess(), values)]


def _team(engine: Engine, team: str, access: TeamAccess, values: DeployedValues) -> list[Object]:
    """The objects of a team's namespace: access, accounts, limits, network and storage."""
    namespace = team_namespace(engine, team)

    def made(api_version: str, kind: str, name: str, **fields: Any) -> Object:
        labels = {TEAM_LABEL: team}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    return [
        *(
            made(
                f"{_RBAC}/v1",
                "RoleBinding",
                _role(role),
                roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": _role(role)},
                subjects=[{"apiGroup": _RBAC, "kind": "Group", "name": team_group(team, role)}],
            )
            for role in ROLES
        ),
        made("v1", "ResourceQuota", "podwright-caps", spec={"hard": quota_keys(access.caps)} if access.caps else {}),
        made("v1", "LimitRange", "podwright-limits", spec={"limits": _limits(access.limits)}),
        made("networking.k8s.io/v1", "NetworkPolicy", "podwright", spec=_policy(access)),
        *(made("v1", "ServiceAccount", name) for name in access.service_accounts),
        *([made("v1", "ConfigMap", MLFLOW, data={TRACKING_URI: values.mlflow})] if access.mlflow else []),
        *(
            item
            for name, claim in access.storage.items()
            for item in lustre_volume(
                namespace,
                name,
                values.lustre[claim.file_system],
                path=claim.path,
                read_only=claim.read_only,
                labels={TEAM_LABEL: team},
            )
        ),
    ]


def _namespace(engine: Engine, name: str, team: Team) -> Object:
    level = team.access.pod_security if team.access else None
    labels = {TEAM_LABEL: name}
    if level:
        labels |= {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
    metadata: Object = {"name": team_namespace(engine, name), "labels": labels}
    if engine == "yunikorn":
        # Where YuniKorn was there before, its own filters may leave teams' namespaces out. Source: YuniKorn
        # documentation, labels and annotations, 2026-11.
        metadata["annotations"] = {"yunikorn.apache.org/namespace.enableYuniKorn": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def quota_keys(caps: Caps) -> dict[str, str]:
    """Ceilings as keys of a ResourceQuota. Devices count by requests, which always equal their limits."""
    amounts: dict[str, Any] = {f"requests.{name}": caps.accelerators for name in ACCELERATORS}
    amounts |= {"requests.vpc.amazonaws.com/efa": caps.efa, "pods": caps.pods}
    keys = {name: str(amount) for name, amount in amounts.items() if amount is not None}
    size = _size(Size(vcpu=caps.vcpu, memory_gib=caps.memory_gib))
    return keys | {f"requests.{name}": amount for name, amount in size.items()} | _texts(caps.others)


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def _limits(limits: ContainerLimits | None) -> list[Object]:
    if limits is None:
        return []
    fields = {"defaultRequest": limits.request, "default": limits.limit, "max": limits.most}
    return [{"type": "Container", **{name: _size(size) for name, size in fields.items() if size}}]


def _size(size: Size) -> dict[str, str]:
    """Processors in thousandths and memory in MiB, so that no fraction takes a form that Kubernetes rewrites."""
    results = {}
    if size.vcpu is not None:
        results["cpu"] = f"{round(size.vcpu * 1000)}m" if size.vcpu % 1 else f"{size.vcpu:.0f}"
    if size.memory_gib is not None:
        results["memory"] = f"{round(size.memory_gib * 1024)}Mi" if size.memory_gib % 1 else f"{size.memory_gib:.0f}Gi"
    return results


def _policy(access: TeamAccess) -> Object:
    """The NetworkPolicy of a namespace: open but for instance metadata, or closed but for what the team allows.

    A closed team's pods talk to each other, to HyperPod, and to HTTPS anywhere.
    """
    base = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    network, without = access.network, () if access.instance_metadata else _METADATA
    if network is None:
        # Ranges alone leave open whether they hold for pods; every namespace is named beside them.
        anywhere = [{"namespaceSelector": {}}, _range("0.0.0.0/0", without), _range("::/0", without)]
        return {**base, "ingress": [{}], "egress": [{"to": anywhere}] if without else [{}]}
    ranges = [_range(cidr, without) for cidr in network.to_ranges]
    own: Object = {"podSelector": {}}
    ports = _ports("TCP", *_HYPERPOD_PORTS)
    return {
        **base,
        "ingress": [
            {"from": [own, *map(_pods_of, network.from_namespaces)]},
            {"from": [_pods_of(_HYPERPOD)], "ports": ports},
        ],
        "egress": [
            {"to": [own, *map(_pods_of, network.to_namespaces), *ranges]},
            {"to": [_pods_of(_HYPERPOD)], "ports": ports},
            {"to": [_pods_of("kube-system")], "ports": _ports("UDP", 53) + _ports("TCP", 53)},
            {"to": [_range(address) for address in _IDENTITY_AGENT], "ports": _ports("TCP", 80)},
            # AWS's services, registries and the Kubernetes API; other teams' pods refuse it themselves.
            {"to": [_range("0.0.0.0/0", without)], "ports": _ports("TCP", 443)},
        ],
    }


def _pods_of(namespace: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {_NAMES: namespace}}}


def _range(cidr: str, without: Iterable[str] = ()) -> Object:
    """A range, less those addresses in it that are `without`. A range of just such an address stays."""
    block: Any = ip_network(cidr)
    inside = [text for text in without if _holds(block, ip_network(text))]
    exceptions = {"except": inside} if inside else {}
    return {"ipBlock": {"cidr": cidr} | exceptions}


def _holds(block: Any, part: Any) -> bool:
    return block.version == part.version and block != part and part.subnet_of(block)


def _ports(protocol: str, *ports: int) -> list[Object]:
    return [{"protocol": protocol, "port": port} for port in ports]


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(name: str) -> str:
    return f"podwright-team-{name}"
