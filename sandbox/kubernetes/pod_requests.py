"""HTTP requests to pods on real nodes, through the API server and the kubelet: this machine has no route to pods."""

from http.client import HTTPConnection
from typing import Final

from ..protocol.json_objects import JsonObject
from .api_objects import Connection

_REAL: Final = "containerd://"
_HEADERS: Final = {"Content-Type": "application/json"}


def is_on_real_node(pod: JsonObject) -> bool:
    """Return True if a container of the pod was started by the containerd of a real node."""
    statuses = pod["status"].get("containerStatuses") or ()
    return any(str(status.get("containerID", "")).startswith(_REAL) for status in statuses)


def ask_pod(
    api: Connection, pod: JsonObject, port: int, method: str, path: str, body: bytes, seconds: float = 10
) -> tuple[int, bytes]:
    """Return the HTTP status and the body of a pod's answer.

    Args:
        api: The pod's API server, as a user who may forward ports.
        pod: The pod.
        port: Port of the server in the pod.
        method: HTTP method.
        path: Path with its query.
        body: JSON, or nothing.
        seconds: Limit of each wait for the program in the pod.

    Raises:
        OSError: No program listens at the port, or it does not answer in time.
        HTTPException: The answer is no HTTP.
    """
    from kubernetes.client import ApiClient, CoreV1Api
    from kubernetes.client.exceptions import ApiException
    from kubernetes.stream import portforward

    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    # portforward replaces a method of its client meanwhile, so other threads must not use the same client.
    with ApiClient(api.client.configuration) as client:
        method_of_api = CoreV1Api(client).connect_get_namespaced_pod_portforward
        try:
            forwarded = portforward(method_of_api, name, namespace, ports=str(port))
        except (ApiException, AttributeError) as error:
            # The client decodes the body of each error. That of a refused WebSocket has none.
            refusal = error.__context__ if isinstance(error, AttributeError) else error
            if not isinstance(refusal, ApiException):
                raise
            raise OSError(f"no way to port {port} of {name}: {refusal.reason}") from error
    http = HTTPConnection("localhost", port, timeout=seconds)
    http.sock = forwarded.socket(port)
    http.sock.settimeout(seconds)
    try:
        http.request(method, path, body, _HEADERS)
        answer = http.getresponse()
        return answer.status, answer.read()
    finally:
        http.close()
        forwarded.close()
