"""Requests to servers that hold artifacts: tried again where that helps, through the proxy that the machine has.

urllib3 rather than urllib, for its `Retry`: growing pauses, `Retry-After`, and bodies sent from the start again.
"""

import shutil
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from typing import IO, Final
from urllib.parse import unquote, urlsplit

from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, Retry, Timeout, make_headers
from urllib3.exceptions import HTTPError

from ...config.errors import PodwrightError

RETRIES: Final = Retry(
    total=3,
    backoff_factor=1,
    # Every method: what is sent here is the same after the second time.
    allowed_methods=None,
    status_forcelist=(429, 500, 502, 503, 504),
    # So that the last answer with such a status is returned, with the server's own words.
    raise_on_status=False,
    # Of a server that asks for more; somebody is waiting.
    retry_after_max=60,
)
_TIMEOUT: Final = Timeout(60)


class RequestFailed(PodwrightError, OSError):
    """A server that cannot be reached, or refuses. `answer` is its refusal; None where there is none."""

    def __init__(self, message: str, answer: BaseHTTPResponse | None = None) -> None:
        super().__init__(message)
        self.answer = answer

    @property
    def status(self) -> int | None:
        """The status of the refusal."""
        return self.answer.status if self.answer else None


def request(
    method: str,
    address: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | IO[bytes] | None = None,
    *,
    retries: Retry = RETRIES,
    stream: bool = False,
) -> BaseHTTPResponse:
    """The answer with its body in `data`; with `stream` it is not read yet, and wants a `with` block.

    Raises:
        RequestFailed: there is none after the last attempt, or its status is 400 or more.
    """
    try:
        answer = _pool(_proxy(address)).request(
            method,
            address,
            body=body,
            headers=headers,
            retries=retries,
            timeout=_TIMEOUT,
            preload_content=not stream,
            # The bytes as they come: digests are over those.
            decode_content=False,
        )
    except HTTPError as error:
        raise RequestFailed(str(getattr(error, "reason", error))) from error
    if answer.status >= 400:
        raise RequestFailed(f"HTTP status {answer.status}: {answer.reason}", answer)
    return answer


def save(opened: Callable[[Retry], BaseHTTPResponse], into: IO[bytes]) -> None:
    """Write a body into a file; from the start again when the connection breaks before its announced end.

    Args:
        opened: Asks for the body with as many retries as are left.
        into: The file.

    Raises:
        RequestFailed: as `request`, or the last attempt broke as well.
    """
    retries = RETRIES
    while True:
        try:
            with opened(retries) as answer:
                shutil.copyfileobj(answer, into)
            return
        except HTTPError as broken:
            try:
                retries = retries.increment("GET", error=broken)
            except HTTPError as last:
                raise RequestFailed(f"it ended early: {broken}") from last
        retries.sleep()
        # What came before the break is written again from the start.
        into.seek(0)
        into.truncate()


def _proxy(address: str) -> str | None:
    """The proxy for an address. urllib3 itself heeds neither HTTPS_PROXY nor NO_PROXY."""
    parts = urlsplit(address)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy is None or urllib.request.proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@cache
def _pool(proxy: str | None) -> PoolManager:
    """The connections through a proxy, or without one."""
    if proxy is None:
        return PoolManager()
    user = urlsplit(proxy)
    login = unquote(f"{user.username}:{user.password}") if user.username else None
    return ProxyManager(proxy, proxy_headers=make_headers(proxy_basic_auth=login))
