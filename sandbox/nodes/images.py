"""One image for every name: a registry that answers each pull with the same few files.

A container has the programs of this machine, which its node mounts read-only. So jobs of any image run with this
machine's Python. Source of the protocol: the OCI distribution specification 1.1, "Pull".
"""

import hashlib
import io
import json
import platform
import re
import shlex
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

from ..protocol.json_objects import JsonObject

HOST_PATHS: Final = ("/usr", "/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache")
"""What containers have of this machine besides Python, where it exists."""
LINKED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders that are links into /usr on most machines."""

TOOLS: Final = "/podwright/bin"
"""Folder of the image that has busybox by the names of its tools, and stand-ins for PyTorch's launchers."""
EXPLANATIONS: Final = "/podwright/devices"
"""Folder of the image whose programs say that a node has no accelerators; commands are looked up there first."""

_FOLDERS: Final = (
    "dev",
    "etc",
    "home",
    "opt",
    "podwright",
    "podwright/bin",
    "podwright/devices",
    "proc",
    "root",
    "run",
    "run/sshd",
    "sys",
    "tmp",
    "var/tmp",
)
_USERS: Final = """\
root:x:0:0:root:/root:/bin/sh
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/:/bin/false
"""
_SSHD: Final = "/usr/sbin/sshd"
_OPEN: Final = ("tmp", "var/tmp")
_SHELL: Final = "/podwright/busybox"
_NAME_QUERY: Final = "nslookup"
"""Workers of PyTorchJob wait for their master by it. That of busybox fails if one search domain lacks the name."""
_NOTICE: Final = (
    "the sandbox has no images: this container has the programs of the machine that the sandbox runs on, and no "
    "program was named, so it waits until it is stopped"
)
_NO_PYTORCH: Final = (
    "containers of the sandbox have no PyTorch on this machine: install it by `podwright sandbox kubernetes install "
    "--pytorch`, then `podwright sandbox stop` and `podwright sandbox start`"
)
_NO_DEVICES: Final = (
    "this node of podwright's sandbox advertises {} so that manifests run unchanged, and has none: programs that open "
    "one fail"
)
_LAUNCHERS: Final = ("torchrun", "hyperpodrun")
_VARIABLES: Final = {
    # Ray would start a process for each CPU of the instance type, and send statistics to its makers.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Of an instance's memory Ray would take up to 200 GB for objects, and this machine has less.
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "2000000000",
}
"""Variables of the image besides PATH. Those of a container replace them."""
_DEVICE_PROGRAMS: Final = {
    "nvidia-smi": "GPUs",
    "dcgmi": "GPUs",
    "neuron-ls": "Neuron devices",
    "neuron-top": "Neuron devices",
    "fi_info": "EFA interfaces",
    "ibv_devinfo": "EFA interfaces",
}
_NOT_FOUND: Final = 127
_NO_DEVICE: Final = 9
"""Exit code of nvidia-smi without a driver."""
# An image's entry point is unknown; most run their arguments.
_START: Final = f"""
if [ $# -gt 0 ] && command -v "$1" >/dev/null; then exec "$@"; fi
echo '{_NOTICE}'
trap 'exit 0' TERM INT
while :; do {_SHELL} sleep 3600 & wait $!; done
"""
_DOCKER: Final = "application/vnd.docker"
_MANIFEST: Final = f"{_DOCKER}.distribution.manifest.v2+json"
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_REFERENCE: Final = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/]+)")


@dataclass(frozen=True, slots=True)
class Image:
    """The files of an image: its manifest, and the blobs by digest."""

    manifest: bytes
    blobs: dict[str, bytes]

    @classmethod
    def of_machine(cls, search_path: Sequence[str], folders: Sequence[str]) -> "Image":
        """Make the image whose containers run programs of this machine.

        Args:
            search_path: Folders in which a command is looked up.
            folders: Folders of this machine that a node mounts into containers.
        """
        layer = _layer([*HOST_PATHS, *folders])
        settings: JsonObject = {
            "architecture": _MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {
                "Env": [f"PATH={':'.join(search_path)}", *(f"{name}={value}" for name, value in _VARIABLES.items())],
                "Entrypoint": [_SHELL, "sh", "-c", _START, "start"],
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
        configuration = json.dumps(settings).encode()
        manifest: JsonObject = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(configuration, f"{_DOCKER}.container.image.v1+json"),
            "layers": [_described(layer, f"{_DOCKER}.image.rootfs.diff.tar")],
        }
        return cls(json.dumps(manifest).encode(), {_digest(item): item for item in (configuration, layer)})

    def answer(self, kind: str, reference: str) -> bytes | None:
        """Return a manifest by tag or digest, or a blob; None where a digest is that of another image."""
        if kind == "blobs":
            return self.blobs.get(reference)
        return self.manifest if ":" not in reference or reference == _digest(self.manifest) else None


class Registry(ThreadingHTTPServer):
    """Serves an image under every name, on a listening socket."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, image: Image, missing: Callable[[str], None]) -> None:
        """Serve.

        Args:
            listener: The socket.
            image: The image.
            missing: Takes the full name of an image by a digest that is another's, before that is refused.
        """
        super().__init__(listener.getsockname(), _Answers, bind_and_activate=False)
        self.socket.close()
        self.socket, self.image, self.missing = listener, image, missing
        threading.Thread(target=self.serve_forever, daemon=True, name="registry").start()


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the file's headers."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        """Answer with a file of the image; everything else is a check whether a registry is here."""
        body, media_type = b"{}", "application/json"
        url, registry = urlsplit(self.path), cast(Registry, self.server)
        if (asked := _REFERENCE.fullmatch(url.path)) is not None:
            content = registry.image.answer(asked["kind"], asked["reference"])
            if content is None:
                # containerd says in `ns` which registry the image's name has.
                for host in parse_qs(url.query).get("ns", ()):
                    registry.missing(f"{host}/{asked['name']}@{asked['reference']}")
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body, media_type = content, _MANIFEST if asked["kind"] == "manifests" else "application/octet-stream"
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", _digest(body))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: containerd's log has each pull."""


def _layer(mounted: Sequence[str]) -> bytes:
    """Return a tar with a shell, links into /usr and the folders that something is mounted on."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        folders = {name for path in mounted for name in _with_parents(path) if Path("/", name).is_dir()}
        for name in sorted({*_FOLDERS, "var", *folders}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name in _OPEN else 0o755
            archive.addfile(entry)
        links = {path.lstrip("/"): str(Path(path).readlink()) for path in LINKED if Path(path).is_symlink()}
        # Init containers use small tools that this machine may lack.
        tools = set(subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split())
        tools -= {_NAME_QUERY}
        for name, target in (links | {f"{TOOLS.lstrip('/')}/{tool}": _SHELL for tool in sorted(tools)}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        for name, script in _scripts().items():
            _add(archive, name.lstrip("/"), f"#!{_SHELL} sh\n{script}\n".encode(), 0o755)
        _add(archive, "podwright/busybox", Path(cast(str, shutil.which("busybox"))).read_bytes(), 0o755)
        _add(archive, "etc/passwd", _USERS.encode(), 0o644)
        _add(archive, "etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644)
        for name, (text, mode) in _ssh_files().items():
            _add(archive, name, text.encode(), mode)
        for path in mounted:
            if Path(path).is_file():
                _add(archive, path.lstrip("/"), b"", 0o644)
    return content.getvalue()


def _scripts() -> dict[str, str]:
    """Return the image's own programs: shell scripts by their paths."""
    launchers = {f"{TOOLS}/{name}": _failure(name, _NO_PYTORCH, _NOT_FOUND) for name in _LAUNCHERS}
    devices = {
        f"{EXPLANATIONS}/{name}": _failure(name, _NO_DEVICES.format(kind), _NO_DEVICE)
        for name, kind in _DEVICE_PROGRAMS.items()
    }
    return {f"{TOOLS}/{_NAME_QUERY}": 'exec getent hosts "$1"'} | launchers | devices


def _ssh_files() -> dict[str, tuple[str, int]]:
    """Return what images of MPI have for sshd and ssh, with a mode each: a host's key, and settings.

    The MPI operator mounts the keys of users, whose folder has the mode of a volume. Workers are new hosts each time.
    """
    if not (Path(_SSHD).exists() and shutil.which("ssh-keygen")):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        private = key.read_text(encoding="ascii")
    return {
        "etc/ssh/host_key": (private, 0o600),
        "etc/ssh/sshd_config": ("HostKey /etc/ssh/host_key\nStrictModes no\n", 0o644),
        "etc/ssh/ssh_config": ("Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n", 0o644),
    }


def _failure(name: str, message: str, code: int) -> str:
    """Return a shell script that prints a message and fails."""
    return f"echo {shlex.quote(f'{name}: {message}')} >&2\nexit {code}"


def _with_parents(path: str) -> list[str]:
    parts = Path(path.lstrip("/"))
    return [str(parts), *(str(parent) for parent in parts.parents if parent.name)]


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _described(content: bytes, media_type: str) -> JsonObject:
    return {"mediaType": media_type, "size": len(content), "digest": _digest(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
