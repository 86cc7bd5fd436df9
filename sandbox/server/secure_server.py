"""The HTTPS server of the clusters' Kubernetes API, on loopback."""

from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from ..kubernetes.certificates import Pair


class _Handler(WSGIRequestHandler):
    # werkzeug writes head and body of an answer apart; by Nagle's algorithm the body would wait 10 ms for the head.
    disable_nagle_algorithm = True


def secure_server(
    application: Callable[..., Iterable[Any]], pair: Pair, *, port: int = 0, socket: int | None = None
) -> BaseWSGIServer:
    """The server of a WSGI application, on a port or on the file descriptor of a listening socket."""
    tls = (str(pair.certificate), str(pair.key))
    return make_server(
        "127.0.0.1", port, application, threaded=True, request_handler=_Handler, ssl_context=tls, fd=socket
    )
