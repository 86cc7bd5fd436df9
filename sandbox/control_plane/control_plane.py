"""A Kubernetes control plane of upstream programs on the loopback interface, with one etcd."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...config.errors import CommandError
from .cache import Cache, State
from .certificates import Authority
from .pins import Pins
from .processes import Component, Processes, Running, free_ports, require_free

_SERVICE_CIDR = "10.96.0.0/16"
_NAMES_IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where everything listens on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peers: int
    etcd_health: int


class ControlPlane:
    """The upstream programs of a Kubernetes control plane, whose data, keys and logs lie in one folder."""

    def __init__(self, folder: Path, pins: Pins, cache: Cache) -> None:
        """Raises CommandError where a part of the control plane is not installed."""
        absent = [part.name for part in pins.parts if cache.state(part) is not State.INSTALLED]
        if absent:
            raise CommandError(
                f"the control plane lacks {', '.join(absent)}", "install it by `podwright sandbox kubernetes install`"
            )
        self._folder = folder.resolve()
        self._keys = self._folder / "keys"
        self._parts = {part.name: cache.folder(part) for part in pins.parts}
        self._processes = Processes(self._folder / "processes")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._keys / "admin.kubeconfig"

    @property
    def running(self) -> list[Running]:
        """Its living processes, in the order of their start."""
        return self._processes.running

    def start(self, port: int = 0) -> None:
        """Start everything; what the folder's etcd holds is there again.

        Args:
            port: Of the API server; 0 for any.

        Raises:
            CommandError: It runs already, the port is taken, or a component does not get ready. Then all are stopped.
        """
        if self.running:
            raise CommandError(f"the control plane in {self._folder} runs already", "stop it first")
        if port:
            require_free(port)
        any_port, *others = free_ports(4)
        ports = Ports(port or any_port, *others)
        authority = Authority.open(self._keys)
        components = [self._etcd(ports), self._api_server(ports, authority)]
        self._write_kubeconfig("admin", "podwright", ["system:masters"], ports, authority)
        try:
            for component in components:
                self._processes.start(component, authority.file)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all of its processes. Its data stay."""
        self._processes.stop()

    def _etcd(self, ports: Ports) -> Component:
        """One member, for clients of an authority of its own: the certificates of Kubernetes' users do not open it."""
        authority = Authority.open(self._keys / "etcd")
        pair = authority.server("etcd")
        authority.client("kube-apiserver", "kube-apiserver")
        clients, peers = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peers}"
        health = f"http://127.0.0.1:{ports.etcd_health}"
        options = {
            "name": "sandbox",
            "data-dir": str(self._folder / "etcd"),
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"sandbox={peers}",
            "listen-metrics-urls": health,
            # A sandbox may lose its last writes with the machine's power.
            "unsafe-no-fsync": "true",
        }
        options |= {"cert-file": str(pair.certificate), "key-file": str(pair.key), "client-cert-auth": "true"}
        options |= {"peer-cert-file": str(pair.certificate), "peer-key-file": str(pair.key)}
        options |= {"trusted-ca-file": str(authority.file), "peer-trusted-ca-file": str(authority.file)}
        options |= {"peer-client-cert-auth": "true"}
        return self._component("etcd", "etcd", options, f"{health}/health")

    def _api_server(self, ports: Ports, authority: Authority) -> Component:
        store, proxy = Authority.open(self._keys / "etcd"), Authority.open(self._keys / "front-proxy")
        store_client = store.client("kube-apiserver", "kube-apiserver")
        proxy_client = proxy.client("front-proxy-client", "front-proxy-client")
        server = authority.server("kube-apiserver", _NAMES_IN_CLUSTER)
        accounts = authority.client("service-accounts", "service-accounts")
        options = {
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": str(ports.api),
            "etcd-servers": f"https://127.0.0.1:{ports.etcd}",
            "etcd-cafile": str(store.file),
            "etcd-certfile": str(store_client.certificate),
            "etcd-keyfile": str(store_client.key),
            "tls-cert-file": str(server.certificate),
            "tls-private-key-file": str(server.key),
            "client-ca-file": str(authority.file),
            "authorization-mode": "Node,RBAC",
            "service-cluster-ip-range": _SERVICE_CIDR,
            # As in a cluster, and not the address: tokens stay valid when the port changes.
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(accounts.key),
            "service-account-signing-key-file": str(accounts.key),
            # Extension API servers trust what comes from the aggregation layer by this certificate.
            "requestheader-client-ca-file": str(proxy.file),
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": str(proxy_client.certificate),
            "proxy-client-key-file": str(proxy_client.key),
            # The Service `kubernetes` would otherwise be reconciled to loopback, which Endpoints refuse.
            "endpoint-reconciler-type": "none",
        }
        url = f"https://127.0.0.1:{ports.api}/readyz"
        return self._component("kubernetes", "kube-apiserver", options, url)

    def _component(self, part: str, program: str, options: dict[str, str], ready: str) -> Component:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return Component(program, [str(self._parts[part] / program), *arguments], ready)

    def _write_kubeconfig(
        self, name: str, user: str, groups: Sequence[str], ports: Ports, authority: Authority
    ) -> Path:
        """The kubeconfig of a user. JSON is YAML, too."""
        pair = authority.client(name, user, groups)
        cluster = {"server": f"https://127.0.0.1:{ports.api}", "certificate-authority": str(authority.file)}
        credentials = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user}}],
        }
        file = self._keys / f"{name}.kubeconfig"
        file.write_text(json.dumps(config), encoding="utf-8")
        return file
