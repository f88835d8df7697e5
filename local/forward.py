"""Lets containers reach a port of this machine's loopback interface while a block runs."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator

from .settings import LOOPBACK


@contextlib.contextmanager
def forwarding(device: str, address: str, port: int) -> Iterator[None]:
    """Hands connections to the engine's network device on to the same port of 127.0.0.1.

    The socket is bound to the device, so that no other machine reaches it by routing.
    """

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

        def server_bind(self) -> None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            super().server_bind()

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((LOOPBACK, port)) as inner:
                back = threading.Thread(target=pump, args=(inner, self.request), daemon=True)
                back.start()
                pump(self.request, inner)
                back.join()

    with Server((address, port), Forward) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Copies bytes until the source ends, then ends the sink."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
