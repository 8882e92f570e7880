"""A relay between a client and its server, which notes what the client sends."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
HEAD = 9
"""Bytes before the payload of a frame: its length in 3 bytes, its kind, and what is not used."""


class Relay:
    """Listens at ``url``, and passes everything on to the server at ``to``.

    While ``passes`` is not set, nothing of what the server says goes on to the client.
    """

    def __init__(self, to: str) -> None:
        place = urlsplit(to)
        self._to = (place.hostname, place.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.passes = threading.Event()
        self.passes.set()
        self.sent: list[tuple[float, int]] = []
        """When the client sent data, and how many bytes: one entry for each frame of HTTP/2."""
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.passes.set()
        self._listener.close()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._to)
            self._sockets += [client, server]
            for pump in (self._from_client, self._from_server):
                threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _from_client(self, client: socket.socket, server: socket.socket) -> None:
        left = bytearray()
        skipped = False
        for some in _received(client, server):
            left += some
            if not skipped and len(left) >= PREFACE:
                del left[:PREFACE]
                skipped = True
            while skipped and len(left) >= HEAD:
                length = int.from_bytes(left[:3], "big")
                if len(left) < HEAD + length:
                    break
                if left[3] == 0 and length > 0:  # Data. All other frames follow from what came.
                    self.sent.append((time.monotonic(), length))
                del left[: HEAD + length]

    def _from_server(self, client: socket.socket, server: socket.socket) -> None:
        for _ in _received(server, client, self.passes):
            pass

    def lengths(self) -> Counter[int]:
        """How often the client sent data of each length."""
        return Counter(length for _, length in list(self.sent))

    def saw(self, lengths: Counter[int], within: float) -> bool:
        """Whether the client sends all that in `within` seconds, if nothing else happens. Holds
        up the thread that calls it.
        """
        until = time.monotonic() + within
        while time.monotonic() < until:
            if self.lengths() >= lengths:
                return True
            time.sleep(0.01)
        return False


def _received(source: socket.socket, to: socket.socket, passes: threading.Event | None = None):
    """What comes from ``source``, after it was passed on."""
    try:
        while some := source.recv(1 << 16):
            if passes is not None:
                passes.wait()
            to.sendall(some)
            yield some
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # One of the two has ended.
