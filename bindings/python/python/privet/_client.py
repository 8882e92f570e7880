"""Clients: lookups without the server learning which."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Union

from . import _privet
from ._closing import Closing
from ._errors import NotFound, PrivetError, UsageError, is_told_before
from ._join import How, column_to_join, joined
from ._keys import Keys, Sent, keys_of, sent_as
from ._progress import ProgressOption, Reporter, log_notice, reporter
from ._values import Answer, Answers, Description, Value, answer

if TYPE_CHECKING:
    # Part of `typing` since Python 3.11.
    from typing_extensions import Unpack

Urls = Union[str, Iterable[Any], Any]
"""A server's address, or several: texts, or what has a ``url`` or ``urls``."""


@dataclass(frozen=True)
class Table:
    """The table that a client asks, as it was when the client connected."""

    name: str
    id: str
    epoch: int
    digest: str
    records: int
    record_len: int
    """Bytes of a record."""
    software: str
    """What the first server runs, as it says."""
    servers: int
    """How many servers the scheme takes."""
    by_key: bool
    """Whether records are looked up by key, and not by the number of a row."""
    columns: tuple[tuple[str, str], ...] | None
    """Names and types of the values' columns, if the table says them."""


@dataclass(frozen=True)
class Stats:
    """What a client did so far: bytes, and seconds. Never what it looked up."""

    lookups: int
    describe_sent: int
    describe_received: int
    prepare_sent: int
    prepare_received: int
    background_sent: int
    background_received: int
    lookup_sent: int
    lookup_received: int
    query_seconds: float
    recover_seconds: float
    journal_seconds: float
    ready_after: float
    """Seconds from the beginning to the first possible lookup."""
    hint_was_stored: bool | None


class _Open:
    """A connection, and what both kinds of clients do with it."""

    def __init__(self, inner: _privet.Client, bars: Reporter) -> None:
        self.inner = inner
        self.bars = bars
        self.description: Description | None = inner.values()

    def key(self, key: object) -> Sent:
        """The key in a form in which the table may have it. No error has it in it."""
        return sent_as(key, self.inner.is_by_key)

    def keys(self, keys: Any, pad_to: int | None, missing_too: bool = False) -> Keys:
        """Several keys, all of them checked. If missing keys may be among them, something else is
        looked up in their place: how many are missing is nobody's business.
        """
        instead: Sent = "" if self.inner.is_by_key else 0
        listed = keys_of(keys, self.inner.is_by_key, instead if missing_too else None)
        if pad_to is not None and len(listed.sent) > pad_to:
            raise UsageError(f"there are {len(listed.sent)} keys, more than `pad_to` allows")
        return listed

    def answers(self, keys: Keys, outcomes: list[Any]) -> Answers:
        for row in keys.missing:
            # What was looked up instead may be no key of this table.
            if not isinstance(outcomes[row], PrivetError) or isinstance(outcomes[row], UsageError):
                outcomes[row] = None
        return Answers(keys, outcomes, self.description, self.inner.encoded_values())

    def table(self) -> Table:
        columns = None
        if self.description is not None:
            columns = tuple((name, kind[0]) for name, kind in self.description[1])
        return Table(by_key=self.inner.is_by_key, columns=columns, **self.inner.table())

    def finishes_after(self, kind: type[BaseException] | None) -> bool:
        """Whether a ``with`` block waits for its lookups if such an exception ends it. An error
        may follow from an answer. If it ended the lookups, servers would see that.
        """
        is_interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        return not is_interrupted and not self.inner.is_closed

    def close(self) -> None:
        self.inner.close()
        self.bars.close()


def _addresses(urls: Any) -> list[str]:
    if isinstance(urls, str):
        return [urls]
    if hasattr(urls, "urls"):
        return list(urls.urls)
    if hasattr(urls, "url"):
        return [urls.url]
    return [address for each in urls for address in _addresses(each)]


class ClientOptions(TypedDict, total=False):
    """The options of both kinds of clients. :class:`Client` explains them."""

    table: str | None
    scheme: str | Iterable[str] | None
    verified: bool
    state: str | PathLike[str] | None
    keep: bool
    ca_file: str | PathLike[str] | None
    proxy: str | Iterable[str] | None
    accept_new_table: bool
    root: str | None
    publisher: str | None
    digest: str | None
    at_least_epoch: int | None
    insecure: bool
    max_download: int | None
    compare_streams: bool
    timeout: float | None
    max_time: float | None
    in_flight: int | None
    progress: ProgressOption


def _connected(urls: Urls, options: ClientOptions) -> _Open:
    for name in options.keys() - ClientOptions.__optional_keys__:
        raise TypeError(f"a client has no option {name!r}")
    given: dict[str, Any] = {**dict.fromkeys(ClientOptions.__optional_keys__), **options}
    for name in ("scheme", "proxy"):
        one_or_many = given.get(name) or []
        given[name] = [one_or_many] if isinstance(one_or_many, str) else list(one_or_many)
    bars = reporter(given.pop("progress", None))
    with bars:
        inner = _privet.Client(_addresses(urls), given, bars.tell() or log_notice)
    return _Open(inner, bars)


class _Connected:
    """What both kinds of clients say of themselves."""

    @property
    def _open(self) -> _Open:
        raise NotImplementedError

    @property
    def table(self) -> Table:
        """The table, as it was when this client connected."""
        return self._open.table()

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return self._open.inner.scheme

    @property
    def stats(self) -> Stats:
        """What was done so far."""
        return Stats(**self._open.inner.stats())

    def __reduce__(self) -> NoReturn:
        raise UsageError("a client cannot be pickled: connect in the process that uses it")


class Client(_Connected, Closing):
    """A client of one table.

    :param urls: the server's address, or the addresses of all servers of the scheme.
    :param table: the table's name; needed where a server has several.
    :param scheme: the scheme that may be used, or several, the most wanted first.
    :param verified: use only schemes that notice a wrong answer.
    :param state: where to keep hints, tables and what is known of servers. Default: where the
        command ``privet`` keeps them too.
    :param keep: ``False`` keeps all that in memory, for this client alone.
    :param ca_file: certificates to trust instead of the system's, in PEM. A file that has
        the system's as well trusts both.
    :param proxy: the proxy through which to reach the servers, or one for each in their order:
        ``http://host:port``, ``socks5h://host:port`` or ``none``. Default: as ``HTTPS_PROXY``,
        ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say.
    :param accept_new_table: believe a server that shows another table than last time.
    :param root: the root of an authenticated table, as its builder says.
    :param publisher: who signs the table's updates, as its owner says.
    :param digest: the digest of the only version to use. Nothing is asked of servers that say that
        they serve another.
    :param at_least_epoch: the earliest version to use. Nothing is asked of servers that are behind.
    :param insecure: ask several servers even over lines that are not encrypted.
    :param max_download: the most bytes to receive before the first lookup.
    :param compare_streams: compare the streams of two servers byte for byte.
    :param timeout: seconds for which a server may leave a call waiting, about: half of it for an
        answer, half of it for new attempts. Then the call fails, and a later one tries again.
        Default: 30, and more while a server computes hints or sends something long. After one
        second of silence a notice says so.
    :param max_time: seconds after which the client ends, whatever it does: counted from its
        beginning, and not for each call.
    :param in_flight: how many lookups may be under way at once.
    :param progress: ``True`` for bars, ``False`` for none, ``None`` for bars where somebody sees
        them, or a function that is called with each :class:`Progress`. Without bars and function,
        notices go to the logger ``privet``.

    Any thread may use it. A process that is forked may not: it connects a client of its own.
    """

    def __init__(self, urls: Urls, **options: Unpack[ClientOptions]) -> None:
        self._connection = _connected(urls, options)
        self._progress = options.get("progress")

    @property
    def _open(self) -> _Open:
        return self._connection

    def get(self, key: object, *, timeout: float | None = None) -> Value | None:
        """The value of a key, or of a row by its number; ``None`` if the table does not have it.

        Both cost the same, and look the same to the servers. Rows that an update appends are there
        for clients that connect after it.

        ``timeout`` is in seconds: after so long the call fails, whatever the servers do.
        """
        raw = self._open.inner.get(self._open.key(key), timeout)
        return None if raw is None else Value(raw, self._open.description)

    def __getitem__(self, key: object) -> Value:
        value = self.get(key)
        if value is None:
            raise NotFound from None
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    __iter__ = None  # A table cannot be listed.

    def get_many(
        self,
        keys: Iterable[object],
        *,
        pad_to: int | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
    ) -> Answers:
        """What comes of several keys, in their order. A failure of one does not end the others.

        ``keys`` is a list, or a column of pandas, polars, numpy or pyarrow. All are checked before
        the first is sent. They come back as they were given.

        The number of lookups is all that the servers learn. ``pad_to`` hides that too: it makes as
        many lookups in any case. A key that is there twice is looked up twice.

        ``progress`` shows nothing either: whether it is slow or raises, all lookups take their
        course. Two things end them: Ctrl-C, and ``timeout`` in seconds. Lookups that have
        not begun then never begin. After ``timeout`` their answers are errors.
        """
        return self._get_many(self._open.keys(keys, pad_to), pad_to, timeout, progress)

    def join(
        self,
        frame: Any,
        on: str,
        *,
        how: How = "left",
        suffix: str = "_value",
        pad_to: int | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
    ) -> Any:
        """The frame with the columns of the values beside those of its rows.

        As many lookups are made as there are rows, in one batch of :meth:`get_many`. Also for a
        row whose key is missing. The gravest error is raised if one failed.

        :param frame: of pandas or polars, or a table of pyarrow. The result is of the same kind.
        :param on: the column of the keys.
        :param how: ``left`` keeps all rows, and values that the table does not have are missing.
            ``inner`` keeps the rows whose key the table has.
        :param suffix: added to the name of a column that the frame has already.
        """
        column = column_to_join(frame, on, how, suffix)
        keys = self._open.keys(column, pad_to, missing_too=True)
        return joined(frame, self._get_many(keys, pad_to, timeout, progress), how, suffix)

    def _get_many(
        self, keys: Keys, pad_to: int | None, timeout: float | None, progress: ProgressOption
    ) -> Answers:
        with reporter(self._progress if progress is None else progress) as bars:
            tell = bars.tell()
            told = None if tell is None else lambda done, total: tell("looking up", done, total)
            outcomes = self._open.inner.get_many(keys.sent, pad_to or 0, told, timeout)
        return self._open.answers(keys, outcomes)

    def refresh(self) -> int:
        """Moves on to the newest version that the servers have, and returns its epoch.

        Lookups that begin later are made in this version. What servers see of a refresh does not
        depend on lookups. Without it, an open client asks for the version before a lookup, but at
        most once a minute, and by ``download`` never.
        """
        return self._open.inner.refresh()

    def finish(self) -> None:
        """Waits until all lookups are over and everything is kept.

        Clients with single-use hints prepare their share of the next ones here. The end of a
        ``with`` block calls it, also after an error: otherwise servers would see that there was
        one. Only Ctrl-C ends the block at once.
        """
        self._open.inner.finish()

    def close(self) -> None:
        """Ends the connections. Lookups under way are given up, and servers see how many are left:
        call :meth:`finish` first.
        """
        self._open.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._open.finishes_after(kind):
                self.finish()
        except PrivetError as failure:
            if error is None or is_told_before(failure, error):
                raise
        finally:
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self._open.inner.is_closed else self.scheme
        return f"<privet.Client: {state}>"


connect = Client
"""Connects to the server or servers of a table."""


class AsyncClient(_Connected):
    """A client for ``asyncio``: the same as :class:`Client`, with methods to await.

    A lookup that is cancelled takes its course all the same, also by ``asyncio.timeout``. ``async
    with`` waits for all of them, whatever ends the block.
    """

    def __init__(self, urls: Urls, **options: Unpack[ClientOptions]) -> None:
        self._urls = urls
        self._options = options
        self._opened: _Open | None = None

    @property
    def _open(self) -> _Open:
        if self._opened is None:
            raise UsageError("this client is not connected: use `async with`, or await `open()`")
        return self._opened

    async def open(self) -> AsyncClient:
        """Connects. ``async with`` calls it."""
        if self._opened is None:
            self._opened = await asyncio.to_thread(_connected, self._urls, self._options)
        return self

    async def __aenter__(self) -> AsyncClient:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._open.finishes_after(kind):
                await self.finish()
        except PrivetError as failure:
            if error is None or is_told_before(failure, error):
                raise
        finally:
            await self.aclose()

    def _begin(
        self, keys: list[Sent], pad_to: int = 0, timeout: float | None = None
    ) -> list[asyncio.Future[Any]]:
        """Hands lookups in now, whoever awaits the futures or cancels them later."""
        loop = asyncio.get_running_loop()
        number_of_lookups = max(len(keys), pad_to)
        futures: list[asyncio.Future[Any]] = [
            loop.create_future() for _ in range(number_of_lookups)
        ]
        open_futures = dict(enumerate(futures))
        timer: asyncio.TimerHandle | None = None

        def arrived(number: int, outcome: object) -> None:
            future = open_futures.pop(number)
            if timer is not None and not open_futures:
                timer.cancel()
            if not future.done():
                future.set_result(outcome)

        def reply(number: int, outcome: object) -> None:
            try:
                # Without arguments: asyncio logs those of callbacks that are slow or fail.
                loop.call_soon_threadsafe(lambda: arrived(number, outcome))
            except RuntimeError:
                pass  # The loop is closed, and nobody waits.

        inner = self._open.inner
        batch = inner.begin(keys, pad_to, reply, timeout)
        if timeout is not None and open_futures:
            seconds = timeout

            def time_is_up() -> None:
                late = [future for future in open_futures.values() if not future.done()]
                try:
                    error = inner.end(batch, seconds) if late else None
                except PrivetError:
                    return  # The client is closed, and ends its lookups itself.
                for future in late:
                    future.set_result(error)

            timer = loop.call_later(seconds, time_is_up)
        return futures

    async def get(self, key: object, *, timeout: float | None = None) -> Value | None:
        """As :meth:`Client.get`."""
        outcome = await self._begin([self._open.key(key)], timeout=timeout)[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return None if outcome is None else Value(outcome, self._open.description)

    async def get_many(
        self,
        keys: Iterable[object],
        *,
        pad_to: int | None = None,
        timeout: float | None = None,
    ) -> Answers:
        """As :meth:`Client.get_many`. All lookups are handed in before the first wait."""
        return await self._get_many(self._open.keys(keys, pad_to), pad_to, timeout)

    async def join(
        self,
        frame: Any,
        on: str,
        *,
        how: How = "left",
        suffix: str = "_value",
        pad_to: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """As :meth:`Client.join`."""
        column = column_to_join(frame, on, how, suffix)
        keys = self._open.keys(column, pad_to, missing_too=True)
        return joined(frame, await self._get_many(keys, pad_to, timeout), how, suffix)

    async def _get_many(self, keys: Keys, pad_to: int | None, timeout: float | None) -> Answers:
        opened = self._open
        outcomes = [await future for future in self._begin(keys.sent, pad_to or 0, timeout)]
        return opened.answers(keys, outcomes[: len(keys.sent)])

    async def stream(
        self, keys: Iterable[object], *, timeout: float | None = None
    ) -> AsyncIterator[Answer]:
        """What comes of several keys, one after the other, in their order.

        The first answers are there while other lookups are under way. All lookups are handed in at
        the first step, as by :meth:`get_many`, and answers wait in memory until they are taken.
        So whoever takes them slowly, or stops early, shows the servers nothing.
        ``key, value = answer`` raises the error of a lookup that failed.
        """
        opened = self._open
        listed = opened.keys(keys, None)
        futures = deque(self._begin(listed.sent, timeout=timeout))
        for key in listed.given:
            yield answer(key, await futures.popleft(), opened.description)

    async def refresh(self) -> int:
        """As :meth:`Client.refresh`."""
        return await asyncio.to_thread(self._open.inner.refresh)

    async def finish(self) -> None:
        """As :meth:`Client.finish`."""
        await asyncio.to_thread(self._open.inner.finish)

    async def aclose(self) -> None:
        """As :meth:`Client.close`."""
        if self._opened is not None:
            await asyncio.to_thread(self._opened.close)

    def __repr__(self) -> str:
        opened = self._opened
        state = "not connected" if opened is None else opened.inner.scheme
        return f"<privet.AsyncClient: {state}>"
