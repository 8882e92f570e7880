"""For tests of programs that look things up: servers that record what they see.

With pytest, ``from privet.testing import privet_servers`` in a ``conftest.py`` gives a fixture::

    def test_my_program(privet_servers, tmp_path):
        privet.build(frame, tmp_path / "t.privet", key="name")
        servers = privet_servers(tmp_path / "t.privet", "dpf")
        ...
        assert len(servers.observed()[0]) == 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import _privet
from ._closing import Closing
from ._server import start
from ._table import PathName


class Servers(Closing):
    """As many servers of one table as its scheme takes. See :func:`servers`."""

    def __init__(self, running: list[_privet.Server]) -> None:
        self._running = running

    @property
    def urls(self) -> list[str]:
        """Where clients find them."""
        return [server.url for server in self._running]

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return self._running[0].scheme

    def observed(self) -> list[list[bytes]]:
        """The queries that each server received since the last call."""
        return [server.observed() for server in self._running]

    def close(self) -> None:
        """Stops them."""
        for server in self._running:
            server.close()


def servers(path: PathName, scheme: str = "auto", *, count: int | None = None) -> Servers:
    """Starts servers of a table in this process.

    What a scheme needs beside the table, this process makes. So nothing is secret from it.

    :param count: how many; default: as many as the scheme takes.
    """
    first = start(path, scheme, observe=True)
    running = [first]
    while len(running) < (count or first.servers):
        running.append(start(path, scheme, observe=True, beside=first))
    return Servers(running)


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def privet_servers() -> Iterator[Callable[..., Servers]]:
        """:func:`servers`, which end with the test."""
        started: list[Servers] = []

        def begin(path: PathName, scheme: str = "auto", *, count: int | None = None) -> Servers:
            started.append(servers(path, scheme, count=count))
            return started[-1]

        yield begin
        for each in started:
            each.close()
