"""Writes samples to a Prometheus workspace by its remote-write protocol, with the standard library and botocore.

A request is a protobuf message, compressed as snappy says. Snappy allows a block of nothing but literals, which is a
valid block that is not smaller; the samples of a whole cluster are a few hundred kilobytes, so that costs nothing.
Sources: Prometheus Remote-Write 1.0 specification; snappy format description; Protocol Buffers encoding; 2026-11.
"""

import struct
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

_BATCH: Final = 2000
"""Series in a request; the service takes a megabyte of them."""
# The longest literal whose length fits the two bytes that follow its tag.
_LITERAL: Final = 65536
_TIMEOUT_SECONDS: Final = 10
_HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of one series now."""

    name: str
    labels: Mapping[str, str]
    value: float


def write(session: boto3.Session, endpoint: str, samples: Iterable[Sample], timestamp: float) -> int:
    """Write samples of `timestamp`, seconds since 1970, to the workspace at `endpoint`. Returns how many there were.

    Raises:
        OSError: the workspace cannot be reached or refuses them.
    """
    written, left = 0, iter(samples)
    credentials: Any = session.get_credentials()
    while batch := list(islice(left, _BATCH)):
        body = snappy(b"".join(_field(1, _series(sample, int(timestamp * 1000))) for sample in batch))
        url = f"{endpoint.rstrip('/')}/api/v1/remote_write"
        request = AWSRequest("POST", url, dict(_HEADERS), body)
        SigV4Auth(credentials, "aps", session.region_name).add_auth(request)
        asked = urllib.request.Request(url, body, dict(request.headers.items()), method="POST")
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_SECONDS):
            written += len(batch)
    return written


def snappy(data: bytes) -> bytes:
    """`data` as a snappy block of literals."""
    return _varint(len(data)) + b"".join(_literals(data))


def _literals(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _LITERAL):
        chunk = data[at : at + _LITERAL]
        # Tag 61: a literal whose length, less one, follows in two bytes.
        yield bytes([61 << 2]) + struct.pack("<H", len(chunk) - 1) + chunk


def _series(sample: Sample, milliseconds: int) -> bytes:
    """A TimeSeries: labels, sorted by name as the protocol wants them, and one sample."""
    # Prometheus wants labels in order of their names, and takes an empty one for an absent one.
    labels = sorted({"__name__": sample.name, **{name: text for name, text in sample.labels.items() if text}}.items())
    written = b"".join(_field(1, _text(1, name) + _text(2, text)) for name, text in labels)
    # Field 1 is a double (wire type 1), field 2 an int64 (wire type 0).
    return written + _field(2, b"\x09" + struct.pack("<d", sample.value) + b"\x10" + _varint(milliseconds))


def _field(number: int, content: bytes) -> bytes:
    # Wire type 2: a length, and so many bytes.
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _varint(number: int) -> bytes:
    # Seven bits a byte, the lowest first; the eighth says that more follow.
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])
