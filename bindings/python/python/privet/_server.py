"""Servers in this process, for tests and notebooks."""

from __future__ import annotations

from os import PathLike, fspath

from . import _privet
from ._closing import Closing
from ._table import PathName


class Server(Closing):
    """A running server of one table. See :func:`serve`."""

    def __init__(self, inner: _privet.Server) -> None:
        self._inner = inner

    @property
    def url(self) -> str:
        """Where clients find it."""
        return self._inner.url

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return self._inner.scheme

    def close(self) -> None:
        """Stops it, after requests under way have come to their end."""
        self._inner.close()

    def __repr__(self) -> str:
        state = "closed" if self._inner.is_closed else self.url
        return f"<privet.Server: {state}>"


def serve(
    path: PathName,
    *,
    scheme: str = "auto",
    name: str | None = None,
    listen: str = "127.0.0.1:0",
    threads: int | None = None,
    cache: str | PathLike[str] | None = None,
    insecure: bool = False,
) -> Server:
    """Serves a table from this process, until the ``with`` block ends or :meth:`Server.close`.

    It follows the table's updates. For everything else, such as TLS, limits and metrics, run
    ``privet serve``.

    :param scheme: the scheme; ``auto`` takes one by the size of the table.
    :param name: the table's name; default: the file's.
    :param listen: an address and a port; port 0 takes a free one.
    :param threads: how many threads compute; default: one for each core.
    :param cache: a directory for hints that take long to compute.
    :param insecure: listen on any address without TLS.
    """
    return Server(start(path, scheme, name, listen, threads, cache, insecure))


def start(
    path: PathName,
    scheme: str,
    name: str | None = None,
    listen: str = "127.0.0.1:0",
    threads: int | None = None,
    cache: str | PathLike[str] | None = None,
    insecure: bool = False,
    observe: bool = False,
    beside: _privet.Server | None = None,
) -> _privet.Server:
    """Starts a server."""
    return _privet.Server(
        fspath(path),
        name=name,
        scheme=None if scheme == "auto" else scheme,
        listen=listen,
        threads=threads,
        cache=None if cache is None else fspath(cache),
        insecure=insecure,
        observe=observe,
        beside=beside,
    )
