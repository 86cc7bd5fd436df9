"""What a node is started with, and the files of its programs.

They are containerd 1.6 with runc and the CNI plugins, Kubernetes' kubelet and kube-proxy, and CoreDNS.
"""

import base64
import json
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ..control_plane.cache import State
from ..control_plane.pytorch import PyTorch
from ..protocol.json_objects import JsonObject
from . import containers, simulated, volumes
from .images import EXPLANATIONS, HOST_PATHS, LINKED, TOOLS

PAUSE_IMAGE: Final = "podwright.local/pause:1"
"""The image that each pod's first container has, so that a node with a pod has it."""
CONTAINERD: Final = "/run/containerd/containerd.sock"
REGISTRY: Final = ("127.0.0.1", 5000)
KUBERNETES: Final = ("10.96.0.1", 443)
"""Address of the Service `kubernetes` (see components.py)."""
NAMES: Final = "10.96.0.10"
"""Address at which a node's CoreDNS answers; pods have it in their resolv.conf."""
PODS: Final = "10.244.0.0/16"
"""Network of all pods, of which each node has a part."""

_DOMAIN: Final = "cluster.local"
CNI: Final = "/usr/lib/cni"
_SEARCH_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_CAPABILITIES: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_MKNOD": 27,
    "CAP_AUDIT_WRITE": 29,
    "CAP_SETFCAP": 31,
}
"""Capabilities that containerd gives containers by default, with the kernel's numbers.

Sources: containerd 1.6, oci/spec.go; capability.h. A base specification without them leaves containers without any.
"""

_COREFILE: Final = f"""
.:53 {{
    bind {NAMES}
    errors
    kubernetes {_DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig /etc/coredns/kubeconfig.json
        pods insecure
        ttl 5
    }}
}}
"""

# What containerd calls in place of runc.
_RUNC: Final = f"""#!/bin/sh
case " $* " in *" create "*) {shlex.quote(sys.executable)} -I -S /etc/podwright/containers.py "$@" || exit ;; esac
exec runc "$@"
"""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a certificate and its key."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files that a node's programs prove themselves with, and know others by."""

    server: Files
    """The kubelet's, as a server."""
    kubelet: Files
    kube_proxy: Files
    coredns: Files
    api_authority: str
    """Signs the API server."""
    clients_authority: str
    """Signs who may ask the kubelet."""

    @classmethod
    def read(cls, values: JsonObject) -> "Credentials":
        """Make them of what `asdict` made of them."""
        pairs: JsonObject = {name: Files(**item) for name, item in values.items() if isinstance(item, dict)}
        return cls(**{**values, **pairs})


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a node that the control plane's parts have."""

    kubelet: str
    kube_proxy: str
    coredns: str

    @property
    def folders(self) -> list[str]:
        """Their folders."""
        programs = (self.kubelet, self.kube_proxy, self.coredns)
        return list(dict.fromkeys(str(Path(program).parent) for program in programs))


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One node."""

    name: str
    address: str
    pods: str
    """The network of its pods."""
    max_pods: int
    cpus: int
    threads_per_core: int
    memory_kib: int
    huge_pages: int
    """Of 2 MiB."""
    boot: str
    """Id of its boot, another one after each reboot."""
    reserved_cpu_millis: int
    reserved_memory_mib: int
    programs: Programs
    kubelet_port: int
    """Where its kubelet listens, in the node and on this machine's loopback interface."""
    api_port: int
    """Where the API server listens on this machine's loopback interface."""
    cgroup: str
    file_systems: str
    """The folder of the cluster's file systems."""
    credentials: Credentials

    @classmethod
    def read(cls, file: Path) -> "NodeSettings":
        """Read the settings of a node."""
        values = json.loads(file.read_text(encoding="utf-8"))
        credentials, programs = Credentials.read(values["credentials"]), Programs(**values["programs"])
        return cls(**values | {"credentials": credentials, "programs": programs})

    def write(self, file: Path) -> None:
        """Write the settings of a node."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")


def python_folders() -> list[str]:
    """Return the folders of this Python and of PyTorch's that are not below /usr."""
    own = (sys.prefix, sys.base_prefix)
    training = [str(folder) for item in _pytorch() for folder in (item.folder, item.python_home)]
    return [folder for folder in dict.fromkeys((*own, *training)) if not folder.startswith("/usr")]


def _pytorch() -> list[PyTorch]:
    """Return PyTorch's environment if it is installed."""
    pytorch = PyTorch.of_user()
    return [pytorch] if pytorch.state is State.INSTALLED else []


def shared_paths() -> list[str]:
    """Return what nodes and containers have of this machine, read-only."""
    linked = [path for path in LINKED if not Path(path).is_symlink()]
    return [path for path in (*HOST_PATHS, *linked, *python_folders()) if Path(path).exists()]


def search_path() -> list[str]:
    """Return the folders in which containers look up commands."""
    # A pod may mount a volume over a virtual environment; then the Python below it remains.
    pythons = [*(str(item.programs) for item in _pytorch()), f"{sys.prefix}/bin", f"{sys.base_prefix}/bin"]
    return [EXPLANATIONS, *dict.fromkeys(pythons), *_SEARCH_PATH, TOOLS]


def write_files(node: NodeSettings, disk: Path) -> None:
    """Write what the node's programs read into the `etc` folder of its disk."""
    credentials = node.credentials
    cni = {"cniVersion": "0.4.0", "name": "pods", "plugins": [_cni_plugin(node)]}
    files = {
        "containerd/config.toml": _containerd(),
        "containerd/spec.json": json.dumps(_runtime_specification()),
        "containerd/registries/_default/hosts.toml": _registry(),
        "cni/net.d/10-pods.conflist": json.dumps(cni),
        "kubernetes/kubelet.json": json.dumps(_kubelet(node)),
        "kubernetes/kubeconfig.json": json.dumps(_kubeconfig(credentials, credentials.kubelet)),
        "kubernetes/server.crt": Path(credentials.server.certificate).read_text(encoding="ascii"),
        "kubernetes/server.key": Path(credentials.server.key).read_text(encoding="ascii"),
        "kubernetes/clients.crt": Path(credentials.clients_authority).read_text(encoding="ascii"),
        "kube-proxy/configuration.json": json.dumps(_kube_proxy(node)),
        "kube-proxy/kubeconfig.json": json.dumps(_kubeconfig(credentials, credentials.kube_proxy)),
        "podwright/volumes.py": Path(volumes.__file__).read_text(encoding="utf-8"),
        "podwright/containers.py": Path(containers.__file__).read_text(encoding="utf-8"),
        "podwright/simulated.py": Path(simulated.__file__).read_text(encoding="utf-8"),
        "podwright/runc": _RUNC,
        "coredns/Corefile": _COREFILE,
        "coredns/kubeconfig.json": json.dumps(_kubeconfig(credentials, credentials.coredns)),
    }
    for name, text in files.items():
        file = disk / "etc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o600)
        file.write_text(text, encoding="utf-8")
        if name.startswith("podwright/"):
            # Programs, one of which containers run as any user.
            file.chmod(0o755)


def commands(node: NodeSettings) -> dict[str, list[str]]:
    """Return the command lines of the node's programs, in the order of their start."""
    return {
        "containerd": ["containerd", "--config=/etc/containerd/config.toml"],
        "kubelet": _kubelet_command(node),
        "coredns": [node.programs.coredns, "-conf=/etc/coredns/Corefile"],
        "volumes": [sys.executable, "-P", "/etc/podwright/volumes.py", node.name],
        "kube-proxy": [node.programs.kube_proxy, "--config=/etc/kube-proxy/configuration.json"],
    }


def _kubelet_command(node: NodeSettings) -> list[str]:
    return [
        node.programs.kubelet,
        "--config=/etc/kubernetes/kubelet.json",
        "--kubeconfig=/etc/kubernetes/kubeconfig.json",
        "--root-dir=/var/lib/kubelet",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        # As on EKS: the addresses are those of the cloud, which whoever created the node wrote.
        "--cloud-provider=external",
    ]


def _cni_plugin(node: NodeSettings) -> JsonObject:
    ranges = {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": node.pods}]]}
    return {"type": "ptp", "ipam": ranges | {"routes": [{"dst": "0.0.0.0/0"}]}}


def _containerd() -> str:
    """The configuration of containerd."""
    url = "io.containerd.grpc.v1.cri"
    unused = ("snapshotter.v1.aufs", "snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.zfs")
    disabled = json.dumps([*(f"io.containerd.{name}" for name in unused), "io.containerd.tracing.processor.v1.otlp"])
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = {disabled}
[grpc]
address = "{CONTAINERD}"
[plugins."{url}"]
sandbox_image = "{PAUSE_IMAGE}"
disable_apparmor = true
disable_hugetlb_controller = true
# Without CAP_SYS_RESOURCE, runc cannot lower the score by which the kernel selects what it kills.
restrict_oom_score_adj = true
[plugins."{url}".containerd]
# Layers hold a few small files, and overlays do not work everywhere.
snapshotter = "native"
default_runtime_name = "runc"
[plugins."{url}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "/etc/containerd/spec.json"
[plugins."{url}".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "/etc/podwright/runc"
[plugins."{url}".cni]
bin_dir = "{CNI}"
conf_dir = "/etc/cni/net.d"
[plugins."{url}".registry]
config_path = "/etc/containerd/registries"
"""


def _registry() -> str:
    url = "http://{}:{}".format(*REGISTRY)
    return f'server = "{url}"\n[host."{url}"]\ncapabilities = ["pull", "resolve"]\n'


def _capabilities() -> list[str]:
    """Return the capabilities of containers that ask for none and drop none, of those that this process has."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    own = next(int(line.split()[1], 16) for line in lines if line.startswith("CapBnd:"))
    return [name for name, number in _CAPABILITIES.items() if own >> number & 1]


def _runtime_specification() -> JsonObject:
    """The specification that containerd starts from for each container, with this machine's files."""
    options = ["nosuid", "noexec", "nodev"]
    mounts: list[JsonObject] = [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": options},
        {
            "destination": "/dev",
            "type": "tmpfs",
            "source": "tmpfs",
            "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
        },
        {
            "destination": "/dev/pts",
            "type": "devpts",
            "source": "devpts",
            "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        },
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": options},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*options, "ro"]},
    ]
    shared = ({"destination": path, "type": "bind", "source": path} for path in shared_paths())
    mounts += [item | {"options": ["rbind", "ro", "nosuid", "nodev"]} for item in shared]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "cwd": "/",
            "noNewPrivileges": False,
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _capabilities()),
        },
        "root": {"path": "rootfs"},
        "mounts": mounts,
        "linux": {
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "namespaces": [{"type": name} for name in ("pid", "ipc", "uts", "mount", "network")],
            "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }


def _kubelet(node: NodeSettings) -> JsonObject:
    """The kubelet's configuration: the instance type's resources, and the API server as its only client."""
    retained = {"cpu": f"{node.reserved_cpu_millis}m", "memory": f"{node.reserved_memory_mib}Mi"}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "port": node.kubelet_port,
        "tlsCertFile": "/etc/kubernetes/server.crt",
        "tlsPrivateKeyFile": "/etc/kubernetes/server.key",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": "/etc/kubernetes/clients.crt"},
        },
        # The API server is the only client that this authority signed.
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "cgroupDriver": "cgroupfs",
        # Its group of all pods would have the CPUs of the instance type, of which this machine lacks most.
        "cgroupsPerQOS": False,
        "failCgroupV1": False,
        "failSwapOn": False,
        "maxPods": node.max_pods,
        "kubeReserved": retained,
        "enforceNodeAllocatable": [],
        # Memory is the instance type's and never scarce; a full disk is.
        "evictionHard": {"nodefs.available": "2%", "nodefs.inodesFree": "1%", "imagefs.available": "2%"},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "nodeStatusUpdateFrequency": "5s",
        "resolvConf": "/etc/resolv.conf",
        "clusterDNS": [NAMES],
        "clusterDomain": _DOMAIN,
    }


def _kube_proxy(node: NodeSettings) -> JsonObject:
    """The configuration of kube-proxy, which leaves the kernel's limits of connections as they are."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "hostnameOverride": node.name,
        "clusterCIDR": PODS,
        "clientConnection": {"kubeconfig": "/etc/kube-proxy/kubeconfig.json"},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # A Service's changes reach pods within a second.
        "iptables": {"minSyncPeriod": "0s"},
    }


def _kubeconfig(credentials: Credentials, client: Files) -> JsonObject:
    """A program's kubeconfig, which has its keys in it: their files are outside of the node."""
    host, port = KUBERNETES
    cluster = {
        "server": f"https://{host}:{port}",
        "tls-server-name": "localhost",
        "certificate-authority-data": _encoded(credentials.api_authority),
    }
    user = {"client-certificate-data": _encoded(client.certificate), "client-key-data": _encoded(client.key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "node",
        "clusters": [{"name": "node", "cluster": cluster}],
        "users": [{"name": "node", "user": user}],
        "contexts": [{"name": "node", "context": {"cluster": "node", "user": "node"}}],
    }


def _encoded(file: str) -> str:
    return base64.b64encode(Path(file).read_bytes()).decode()
