"""HTTPS servers on loopback: of the clusters' Kubernetes API, and of their kubelets."""

import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from .certificates import Pair


class _Handler(WSGIRequestHandler):
    # werkzeug writes headers and body separately; Nagle's algorithm would delay the body by 10 ms.
    disable_nagle_algorithm = True


def secure_server(
    application: Callable[..., Iterable[Any]],
    pair: Pair,
    *,
    port: int = 0,
    socket: int | None = None,
    clients: Path | None = None,
) -> BaseWSGIServer:
    """Return the server of a WSGI application, on a port or the file descriptor of a listening socket.

    Args:
        application: What it serves.
        pair: Its certificate and key.
        port: 0 for any.
        socket: The descriptor, in place of a port.
        clients: The authority that has to have signed the certificates of clients; without it they need none.
    """
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(clients) if clients else None)
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return make_server(
        "127.0.0.1", port, application, threaded=True, request_handler=_Handler, ssl_context=tls, fd=socket
    )
