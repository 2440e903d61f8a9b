"""A server on loopback that sends whatever bytes a test gives it."""

from __future__ import annotations

import re
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class RawServer:
    """Answers each connection with the bytes of `reply`, as long as the client reads them.

    Attributes:
        sent: bytes that were sent.
        requests: what clients asked, head and body.
    """

    def __init__(self, reply: Callable[[bytes], Iterator[bytes]]) -> None:
        self.sent = 0
        self.requests: list[bytes] = []
        self._reply = reply
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(10)
            try:
                request = _read(connection)
                self.requests.append(request)
                for piece in self._reply(request):
                    connection.sendall(piece)
                    self.sent += len(piece)
            except OSError:  # the client gave up, as tests want it to
                return


def _read(connection: socket.socket) -> bytes:
    request = b""
    while piece := connection.recv(65_536):
        request += piece
        head, end, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and len(body) >= (int(length[1]) if length else 0):
            break
    return request


def head(status: int = 200, *lines: str) -> bytes:
    """Return the first lines of a reply."""
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode("latin-1")
