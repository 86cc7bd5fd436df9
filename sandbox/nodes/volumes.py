"""A stand-in for the driver of FSx for Lustre on a node: `python volumes.py`, as a program of the node.

A file system is a folder that all real nodes of the cluster share. Its volumes are mounted from there, at the path that
their attributes name. Nothing else of podwright is in a node, so this imports nothing of it.

Sources: csi.proto 1.9 (Identity and Node), Kubernetes' pluginregistration v1, and the attributes of volumes of
aws-fsx-csi-driver (dnsname, mountname).
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

DRIVER: Final = "fsx.csi.aws.com"
FILE_SYSTEMS: Final = Path("/fsx")

_SOCKET: Final = Path(f"/var/lib/kubelet/plugins/{DRIVER}/csi.sock")
_REGISTRATION: Final = Path(f"/var/lib/kubelet/plugins_registry/{DRIVER}.sock")
_LENGTH_DELIMITED: Final = 2

Fields = dict[int, list[bytes]]
Answer = Callable[[Fields], bytes]


class MountError(Exception):
    """A volume cannot be mounted; the kubelet writes the text into an event of the pod."""


def fields_of(message: bytes) -> Fields:
    """Return the fields of a message of protocol buffers by number; numbers as one byte.

    Source: protobuf.dev, "Encoding".
    """
    fields, rest = Fields(), iter(message)
    for tag in _numbers(rest):
        number, kind = tag >> 3, tag & 7
        value = next(_numbers(rest))
        content = bytes(next(rest) for _ in range(value)) if kind == _LENGTH_DELIMITED else bytes([min(value, 255)])
        fields.setdefault(number, []).append(content)
    return fields


def message_of(*fields: tuple[int, str | int]) -> bytes:
    """Return a message of texts and small numbers."""
    return b"".join(map(_field, fields))


def _numbers(rest: Iterator[int]) -> Iterator[int]:
    """Read numbers of variable length until the message ends."""
    for byte in rest:
        number, shift = byte & 0x7F, 7
        while byte & 0x80:
            byte = next(rest)
            number, shift = number | (byte & 0x7F) << shift, shift + 7
        yield number


def _field(field: tuple[int, str | int]) -> bytes:
    number, value = field
    if isinstance(value, int):
        return bytes([number << 3, value])
    content = value.encode()
    return bytes([number << 3 | _LENGTH_DELIMITED, *_length(len(content))]) + content


def _length(number: int) -> Iterable[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def source_of(request: Fields) -> Path:
    """Return the folder behind a volume, which is below that of its file system.

    Args:
        request: NodePublishVolumeRequest.

    Raises:
        MountError: The volume does not say which file system it is of, or leads out of it.
    """
    entries = [fields_of(entry) for entry in request.get(8, ())]
    attributes = {entry[1][0].decode(): entry[2][0].decode() for entry in entries}
    absent = [name for name in ("dnsname", "mountname") if not attributes.get(name)]
    if absent:
        raise MountError(f"the volume lacks {' and '.join(absent)} of its file system")
    parts = (attributes["dnsname"], *attributes["mountname"].strip("/").split("/"))
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise MountError(f"mountname is {attributes['mountname']!r}, which is no path below a file system")
    return FILE_SYSTEMS.joinpath(*parts)


def is_read_only(request: Fields) -> bool:
    """Whether a volume is mounted for reading alone: by the pod, or by the volume's mount options."""
    [capability] = [fields_of(item) for item in request[5]]
    options = [option for mount in capability.get(2, ()) for option in fields_of(mount).get(2, ())]
    return b"ro" in options or request.get(6) == [b"\x01"]


def publish(request: Fields) -> bytes:
    """Mount a volume where the kubelet wants it for a pod."""
    source, target = source_of(request), Path(request[4][0].decode())
    source.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    if not _is_mounted(target):
        _run("mount", "--bind", str(source), str(target))
        if is_read_only(request):
            _run("mount", "-o", "remount,bind,ro", str(target))
    return b""


def unpublish(request: Fields) -> bytes:
    """Unmount a volume of a pod."""
    target = Path(request[2][0].decode())
    if _is_mounted(target):
        _run("umount", str(target))
    if target.exists():
        target.rmdir()
    return b""


def _is_mounted(target: Path) -> bool:
    """Whether something is mounted at a path. `Path.is_mount` does not see a folder of the same disk."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] == str(target) for line in lines)


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise MountError(result.stderr.strip())


def _served(services: dict[str, dict[str, Answer]], address: Path) -> Any:
    """Serve methods of services at a socket."""
    address.parent.mkdir(parents=True, exist_ok=True)
    address.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(4))
    for service, answers in services.items():
        handlers = {name: grpc.unary_unary_rpc_method_handler(_handler(answer)) for name, answer in answers.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix://{address}")
    server.start()
    return server


def _handler(answer: Answer) -> Callable[[bytes, Any], bytes]:
    def handle(request: bytes, context: Any) -> bytes:
        try:
            return answer(fields_of(request))
        except (MountError, OSError) as error:
            context.abort(grpc.StatusCode.INTERNAL, str(error))
            raise

    return handle


def main(node: str) -> None:
    """Serve the node's volumes until the node ends, and register with its kubelet."""
    identity: dict[str, Answer] = {
        "GetPluginInfo": lambda _: message_of((1, DRIVER), (2, "sandbox")),
        "GetPluginCapabilities": lambda _: b"",
        "Probe": lambda _: b"",
    }
    volumes: dict[str, Answer] = {
        "NodeGetInfo": lambda _: message_of((1, node)),
        "NodeGetCapabilities": lambda _: b"",
        "NodePublishVolume": publish,
        "NodeUnpublishVolume": unpublish,
    }
    registration: dict[str, Answer] = {
        "GetInfo": lambda _: message_of((1, "CSIPlugin"), (2, DRIVER), (3, str(_SOCKET)), (4, "1.0.0")),
        "NotifyRegistrationStatus": lambda _: b"",
    }
    servers = [
        _served({"csi.v1.Identity": identity, "csi.v1.Node": volumes}, _SOCKET),
        _served({"pluginregistration.Registration": registration}, _REGISTRATION),
    ]
    for server in servers:
        server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
