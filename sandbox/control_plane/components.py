"""The programs of a control plane with their arguments, certificates and kubeconfigs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..kubernetes.certificates import Authority
from ..kubernetes.ray_dashboard import RayDashboard
from .cluster_api import account_token
from .operators import CONFIGURATION, TIME_SCALE, Operator, settings_of
from .processes import Component, Ports
from .webhooks import mount_secret

_SERVICE_CIDR = "10.96.0.0/16"
SERVICE_ADDRESS: Final = "10.96.0.1"
"""Address of the Service `kubernetes`, the first of the range."""
_ACCOUNTS = ("system:serviceaccounts",)
_PODS = Path(__file__).with_name("pods.yaml")
_AUDIT = Path(__file__).with_name("audit.yaml")
_NAMES_IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Components:
    """The programs of one control plane."""

    folder: Path
    parts: Mapping[str, Path]
    ports: Ports
    time_scale: float = 1.0
    """Factor for the waits of podwright's own operators."""

    @property
    def _keys(self) -> Path:
        return self.folder / "keys"

    @property
    def authority(self) -> Authority:
        """The authority that signs the certificates of Kubernetes' servers and users."""
        return Authority.open(self._keys)

    @property
    def audit_log(self) -> Path:
        """File of the API server's events on jobs, pods and quotas, as lines of JSON."""
        return self.folder / "audit.log"

    def etcd(self) -> Component:
        """Return an etcd of one member. Its own authority refuses the certificates of Kubernetes' users."""
        authority = Authority.open(self._keys / "etcd")
        pair = authority.server("etcd")
        authority.client("kube-apiserver", "kube-apiserver")
        clients, peers = f"https://127.0.0.1:{self.ports.etcd}", f"https://127.0.0.1:{self.ports.etcd_peers}"
        health = f"http://127.0.0.1:{self.ports.etcd_health}"
        options = {
            "name": "sandbox",
            "data-dir": str(self.folder / "etcd"),
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"sandbox={peers}",
            "listen-metrics-urls": health,
            # A sandbox may lose its last writes in a power failure.
            "unsafe-no-fsync": "true",
        }
        options |= {"cert-file": str(pair.certificate), "key-file": str(pair.key), "client-cert-auth": "true"}
        options |= {"peer-cert-file": str(pair.certificate), "peer-key-file": str(pair.key)}
        options |= {"trusted-ca-file": str(authority.file), "peer-trusted-ca-file": str(authority.file)}
        options |= {"peer-client-cert-auth": "true"}
        return replace(self._component("etcd", "etcd", options, f"{health}/health"), holds_data=True)

    def api_server(self, more: Mapping[str, str]) -> Component:
        """Return the API server, with the aggregation layer for extension API servers. `more` overrides options."""
        authority = self.authority
        store, proxy = Authority.open(self._keys / "etcd"), Authority.open(self._keys / "front-proxy")
        store_client = store.client("kube-apiserver", "kube-apiserver")
        proxy_client = proxy.client("front-proxy-client", "front-proxy-client")
        kubelets = Authority.open(self._keys / "kubelets")
        kubelet_client = kubelets.client("kube-apiserver", "kube-apiserver")
        server = authority.server("kube-apiserver", _NAMES_IN_CLUSTER, SERVICE_ADDRESS)
        # Only the key of this pair is used: it signs tokens.
        accounts = authority.client("service-accounts", "service-accounts")
        options = {
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": str(self.ports.api),
            "etcd-servers": f"https://127.0.0.1:{self.ports.etcd}",
            "etcd-cafile": str(store.file),
            "etcd-certfile": str(store_client.certificate),
            "etcd-keyfile": str(store_client.key),
            "tls-cert-file": str(server.certificate),
            "tls-private-key-file": str(server.key),
            "client-ca-file": str(authority.file),
            "authorization-mode": "Node,RBAC",
            # As on EKS: a kubelet may change only its own node and pods.
            "enable-admission-plugins": "NodeRestriction",
            # As on EKS, whose network plugin runs privileged. Policies restrict other pods.
            "allow-privileged": "true",
            "service-cluster-ip-range": _SERVICE_CIDR,
            # Not the address, so that tokens remain valid when the port changes.
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(accounts.key),
            "service-account-signing-key-file": str(accounts.key),
            # Extension API servers trust requests of the aggregation layer by this certificate.
            "requestheader-client-ca-file": str(proxy.file),
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": str(proxy_client.certificate),
            "proxy-client-key-file": str(proxy_client.key),
            # Kubelets answer only the API server, on loopback addresses, which their nodes have as InternalDNS.
            "kubelet-preferred-address-types": "InternalDNS",
            "kubelet-certificate-authority": str(kubelets.file),
            "kubelet-client-certificate": str(kubelet_client.certificate),
            "kubelet-client-key": str(kubelet_client.key),
            # The Service `kubernetes` would otherwise be reconciled to loopback, which Endpoints refuse.
            "endpoint-reconciler-type": "none",
            # It needs a newer etcd than the one on PyPI. Clients would request it and retry.
            "feature-gates": "WatchList=false",
            "audit-policy-file": str(_AUDIT),
            "audit-log-path": str(self.audit_log),
            # In MB. The API server keeps one full log.
            "audit-log-maxsize": "8",
            "audit-log-maxbackup": "1",
        }
        url = f"https://127.0.0.1:{self.ports.api}/readyz"
        return self._component("kubernetes", "kube-apiserver", options | dict(more), url)

    def controller_manager(self) -> Component:
        """Return the controller manager, whose controllers use their own service accounts as in a cluster."""
        options = self._served("kube-controller-manager", self.ports.controller_manager) | {
            "service-account-private-key-file": str(self._keys / "service-accounts.key"),
            "root-ca-file": str(self.authority.file),
            "use-service-account-credentials": "true",
            "leader-elect": "false",
        }
        url = f"https://127.0.0.1:{self.ports.controller_manager}/healthz"
        return self._component("kubernetes", "kube-controller-manager", options, url)

    def scheduler(self) -> Component:
        """Return the default scheduler."""
        options = self._served("kube-scheduler", self.ports.scheduler) | {"leader-elect": "false"}
        url = f"https://127.0.0.1:{self.ports.scheduler}/healthz"
        return self._component("kubernetes", "kube-scheduler", options, url)

    def kwok(self) -> Component:
        """Return kwok, the kubelet of all nodes with its annotation."""
        address = f"127.0.0.1:{self.ports.kwok}"
        user = "system:serviceaccount:kube-system:kwok-controller"
        options = {
            "kubeconfig": str(self.account_kubeconfig("kwok", user)),
            "config": f"{self.parts['kwok'] / 'nodes.yaml'},{_PODS}",
            "manage-nodes-with-annotation-selector": "kwok.x-k8s.io/node=fake",
            # Without leases the heartbeats are too rare, and the controller manager marks nodes as not ready.
            "node-lease-duration-seconds": "40",
            "server-address": address,
        }
        return self._component("kwok", "kwok", options, f"http://{address}/healthz")

    def operator(self, operator: Operator) -> Component:
        """Return the process of an operator whose release has been applied."""
        folder = self.folder / "processes" / operator.name
        folder.mkdir(parents=True, exist_ok=True)
        kubeconfig = self._of_account(operator)
        admin = self.admin
        arguments = operator.arguments(folder, kubeconfig, settings_of(operator, admin))
        command = [str(self.parts[operator.name] / operator.program), *arguments]
        certificates = operator.certificates(folder)

        def mount() -> bool:
            return not operator.secret or mount_secret(admin, operator.namespace, operator.secret, certificates)

        variables = {"TMPDIR": str(folder), "HEALTH_ADDRESS": operator.health_address, TIME_SCALE: str(self.time_scale)}
        if operator.name == "yunikorn":
            variables |= {"KUBECONFIG": str(kubeconfig), "NAMESPACE": operator.namespace}
        if operator.name == "kuberay":
            # Go sends no request for loopback to a proxy.
            variables["HTTP_PROXY"] = f"http://127.0.0.1:{self.ports.ray_dashboard}"
            # A simulated Ray has no ports. The kubelet of a real node would probe them, and end the containers.
            variables["ENABLE_PROBES_INJECTION"] = "false"
        ready = f"http://{operator.health_address}/{operator.ready}"
        return Component(operator.name, command, ready, variables, mount)

    def ray_dashboard(self) -> RayDashboard:
        """Start the proxy to Ray's dashboards. KubeRay's own account may not forward ports to pods."""
        return RayDashboard(self.ports.ray_dashboard, self.admin)

    def is_configured(self, operator: Operator) -> bool:
        """True if an operator was started with the cluster's current configuration."""
        folder = self.folder / "processes" / operator.name
        file = folder / CONFIGURATION
        settings = settings_of(operator, self.admin)
        return not file.exists() or file.read_text(encoding="utf-8") == operator.configuration(folder, settings)

    @property
    def admin(self) -> Path:
        """The administrator's kubeconfig."""
        return self.kubeconfig("admin", "podwright", ["system:masters"])

    def _served(self, name: str, port: int) -> dict[str, str]:
        """Return options for a health endpoint, and for access to the API server as the program's own user."""
        server = self.authority.server(f"{name}-server")
        kubeconfig = str(self.kubeconfig(name, f"system:{name}"))
        return {
            "bind-address": "127.0.0.1",
            "secure-port": str(port),
            "tls-cert-file": str(server.certificate),
            "tls-private-key-file": str(server.key),
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
        }

    def _component(self, part: str, program: str, options: dict[str, str], ready: str) -> Component:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return Component(program, [str(self.parts[part] / program), *arguments], ready)

    def kubeconfig(self, name: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Return the kubeconfig of a user, in JSON, which is valid YAML."""
        pair = self.authority.client(name, user, groups)
        credentials = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        return self._kubeconfig(name, user, credentials)

    def account_kubeconfig(self, name: str, user: str) -> Path:
        """Return the kubeconfig of a service account with a certificate, if its user name has at most 64 characters."""
        return self.kubeconfig(name, user, _ACCOUNTS)

    def _of_account(self, operator: Operator) -> Path:
        """Return the kubeconfig of an operator with a token: its user name may be too long for a certificate."""
        token = account_token(self.admin, operator.namespace, operator.account)
        return self._kubeconfig(operator.name, operator.user, {"token": token})

    def _kubeconfig(self, name: str, user: str, credentials: Mapping[str, str]) -> Path:
        """Write the kubeconfig of a user with these credentials. Returns its file."""
        cluster = {"server": f"https://127.0.0.1:{self.ports.api}", "certificate-authority": str(self.authority.file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user}}],
        }
        file = self._keys / f"{name}.kubeconfig"
        # Other processes may read it at the same time.
        new = file.with_suffix(".new")
        new.touch(0o600)
        new.write_text(json.dumps(config), encoding="utf-8")
        new.replace(file)
        return file
