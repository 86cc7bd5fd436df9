"""TCP connections that go from one network namespace into another, without a route between them."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_BYTES: Final = 65_536


async def relay(listener: socket.socket, address: tuple[str, int], make: Callable[[], socket.socket]) -> None:
    """Accept connections for as long as this runs, and connect each of them to an address.

    Args:
        listener: A listening socket.
        address: Host and port that connections go to.
        make: Makes a socket of the network that `address` is in.
    """
    loop = asyncio.get_running_loop()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = make()
        target.setblocking(False)
        try:
            await loop.sock_connect(target, address)
            target_reader, target_writer = await asyncio.open_connection(sock=target)
        except OSError:
            # No program listens at the address, so the client's connection is closed.
            target.close()
            writer.close()
            return
        await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
        target_writer.close()
        writer.close()

    server = await asyncio.start_server(accepted, sock=listener)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one end closes its direction, and close the same direction of the other end."""
    with suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()
