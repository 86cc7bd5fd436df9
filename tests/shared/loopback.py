"""An HTTP server on loopback whose answers a test writes, with or without TLS."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Call:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """What the server answers."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Answers every request with what `answer` returns, and remembers the requests."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Call], Reply], certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.calls: list[Call] = []
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server_port}"
        if certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client that hangs up, or refuses our certificate, is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    def _serve(self) -> None:
        assert isinstance(self.server, Server)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        call = Call(self.command, self.path, dict(self.headers), body)
        self.server.calls.append(call)
        reply = self.server.answer(call)
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is its own."""


@contextmanager
def serving(answer: Callable[[Call], Reply], certificate: Path | None = None) -> Iterator[Server]:
    """A server that runs until the `with` block ends."""
    server = Server(answer, certificate)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
