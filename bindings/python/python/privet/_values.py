"""What lookups give."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any, Union, overload

from . import _privet
from ._errors import PrivetError
from ._keys import Keys

Kind = tuple[Any, ...]
"""The type of a column: its name, and what it is made of."""

Description = tuple[bool, tuple[tuple[str, Kind], ...]]
"""Whether values are raw, and their columns."""

RawValue = Union[bytes, list[bytes]]


class Value:
    """The value of a key.

    It does not print its content. Ask for :attr:`bytes`, :attr:`text`, :meth:`json` or
    :attr:`values`.
    """

    __slots__ = ("_bytes", "_description", "_others")

    def __init__(self, raw: RawValue, description: Description | None) -> None:
        self._others: list[bytes] | None = raw if isinstance(raw, list) else None
        self._bytes = raw[0] if isinstance(raw, list) else raw
        self._description = description

    @property
    def bytes(self) -> bytes:
        """The value as it is stored. Of several values, the first."""
        return self._bytes

    @property
    def text(self) -> str:
        """The value as text, in UTF-8."""
        try:
            return self._bytes.decode()
        except UnicodeDecodeError:
            # Its own error has the value in it.
            raise ValueError("the value is no text in UTF-8") from None

    def json(self) -> Any:
        """The value read as JSON, with JSON's types."""
        return self._read(json.loads)

    def _read(self, loads: Callable[[builtins_bytes], Any]) -> Any:
        try:
            return loads(self._bytes)
        except (ValueError, RecursionError):
            # Its own error has the value in it.
            raise ValueError("the value cannot be read as JSON") from None

    @property
    def values(self) -> Any:
        """The value with the types of the table's columns: a dictionary, or the one raw value.

        Where the table does not say what its values are, this is :meth:`json`, or else the bytes.
        """
        if self._description is None:
            try:
                return self.json()
            except ValueError:
                return self._bytes
        is_raw, columns = self._description
        if is_raw:
            kind = columns[0][1]
            return self._bytes if kind[0] == "bytes" else _typed(self.text, kind)
        kind = ("struct", columns)
        return self._read(lambda value: _typed(json.loads(value, parse_float=_Written), kind))

    @property
    def all(self) -> list[Value]:
        """All values, in a table whose keys can have several."""
        return [Value(raw, self._description) for raw in self._others or [self._bytes]]

    def __bytes__(self) -> builtins_bytes:
        return self._bytes

    def __len__(self) -> int:
        return len(self._bytes)

    def __bool__(self) -> bool:
        # An empty value is a value.
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value):
            return (self._bytes, self._others) == (other._bytes, other._others)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return "Value(…)"


builtins_bytes = bytes


class _Written(float):
    """A float that knows how it was written, for columns of decimals."""

    written: str

    def __new__(cls, written: str) -> _Written:
        number = super().__new__(cls, written)
        number.written = written
        return number


def _typed(value: Any, kind: Kind) -> Any:
    """A value of JSON as what it was. What is of another type stays what it is."""
    if value is None:
        return None
    name = kind[0]
    try:
        if name == "decimal":
            return Decimal(value.written if isinstance(value, _Written) else value)
        if name == "float":
            return float(value)
        if name == "bytes":
            return base64.b64decode(value, validate=True)
        if name == "date":
            return date.fromisoformat(value)
        if name == "time":
            return time.fromisoformat(_microseconds(value))
        if name == "timestamp":
            read = datetime.fromisoformat(_microseconds(value).replace("Z", "+00:00"))
            return read.astimezone(_zone(kind[2])) if kind[2] else read
        if name == "list" and isinstance(value, list):
            return [_typed(item, kind[1]) for item in value]
        if name == "map" and isinstance(value, dict):
            return {key: _typed(item, kind[1]) for key, item in value.items()}
        if name == "struct" and isinstance(value, dict):
            kinds = dict(kind[1])
            return {key: _typed(item, kinds.get(key, ("any",))) for key, item in value.items()}
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        pass
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, _Written):
        return float(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _microseconds(text: str) -> str:
    """The time without what Python cannot hold: digits beyond the microsecond."""
    head, point, tail = text.partition(".")
    if not point:
        return text
    digits = tail.rstrip("Z")
    return f"{head}.{digits[:6].ljust(6, '0')}{tail[len(digits):]}"


def _zone(name: str) -> Any:
    """The time zone; UTC, in which it is the same instant, if this machine does not know it."""
    if name in ("UTC", "Z", "+00:00"):
        return timezone.utc
    from zoneinfo import ZoneInfo

    try:
        return datetime.strptime(name, "%z").tzinfo if name[:1] in "+-" else ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        return timezone.utc


@dataclass(frozen=True, repr=False)
class Answer:
    """What came of one key. ``key, value = answer`` raises the error if there is one."""

    key: Any
    """The key as it was given."""
    value: Value | None
    error: PrivetError | None = None

    @property
    def found(self) -> bool:
        return self.value is not None

    def __iter__(self) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        return iter((self.key, self.value))

    def __repr__(self) -> str:
        return "Answer(…)"


class Answers:
    """What came of several keys, in their order.

    Data frames take it as it is, such as ``polars.DataFrame(answers)`` or
    ``pyarrow.table(answers)``: ``key``, ``found``, the columns of the values, ``error``. A key with
    several values has as many rows. Keys are of the type in which they were given.

    It needs no client any more, and can be pickled. The pickle has keys and values in it.
    """

    def __init__(
        self,
        keys: Keys,
        outcomes: list[Any],
        description: Description | None,
        encoded: bytes | None,
    ) -> None:
        self._keys = keys
        self._outcomes = outcomes
        self._description = description
        self._encoded = encoded

    def __len__(self) -> int:
        return len(self._outcomes)

    @overload
    def __getitem__(self, number: int) -> Answer: ...

    @overload
    def __getitem__(self, number: slice) -> list[Answer]: ...

    def __getitem__(self, number: int | slice) -> Answer | list[Answer]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return answer(self._keys.given[number], self._outcomes[number], self._description)

    def __iter__(self) -> Iterator[Answer]:
        return (self[number] for number in range(len(self)))

    @property
    def errors(self) -> list[PrivetError]:
        """The errors of lookups that failed, the gravest first: those after which nothing may be
        tried again stand before all others.
        """
        errors = [outcome for outcome in self._outcomes if isinstance(outcome, PrivetError)]
        return sorted(errors, key=lambda error: not error.is_final)

    def values(self) -> list[Value | None]:
        """The values; ``None`` for keys that the table does not have.

        Raises the gravest error if a lookup failed.
        """
        for error in self.errors:
            raise error
        return [answer.value for answer in self]

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        for keys in self._keys.in_columns():
            try:
                return _privet.stream(keys, self._outcomes, self._encoded)
            except Exception:  # Arrow has no type for what is in the column.
                pass
        return _privet.stream(self._keys.sent, self._outcomes, self._encoded)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``."""
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        import polars  # type: ignore[import-not-found,unused-ignore]

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``. Needs pyarrow as well."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"Answers of {len(self)} lookups"


def answer(key: Any, outcome: Any, description: Description | None) -> Answer:
    """What a lookup's outcome is to its caller."""
    if isinstance(outcome, PrivetError):
        return Answer(key, None, outcome)
    return Answer(key, None if outcome is None else Value(outcome, description))
