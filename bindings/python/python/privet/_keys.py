"""Keys as people have them: lists, and columns of frames."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any, SupportsIndex, Union
from uuid import UUID

Sent = Union[str, bytes, int]
"""A key as it is looked up, or the number of a row."""


class Keys:
    """Several keys, as they were given and as they are looked up."""

    def __init__(
        self, given: list[Any], sent: list[Sent], missing: list[int], column: Any = None
    ) -> None:
        self.given = given
        self.sent = sent
        self.missing = missing
        """The rows that have none."""
        self.column = column
        """A frame of the keys alone, if they came as a column."""

    def in_columns(self) -> Iterable[Any]:
        """The keys as Arrow may take them, the best form first."""
        if self.column is not None:
            yield self.column
        plain = [_plain(key) for key in self.given]
        if all(isinstance(key, (str, bytes, int)) for key in plain):
            yield plain
        else:
            try:
                import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

                yield pyarrow.table({"key": pyarrow.array(plain)})
            except Exception:  # It is not installed, or has no type for them.
                pass


def keys_of(keys: Any, by_key: bool, missing: Sent | None = None) -> Keys:
    """Takes a list or a column of keys. All of them are checked.

    :param missing: what to look up for keys that are missing; ``None`` refuses them.
    """
    given, column = _listed(keys)
    sent: list[Sent] = []
    empty = []
    for row, key in enumerate(given):
        if type(key) is str and by_key:
            sent.append(key)
            continue
        name = missing_name(key)
        if name is None:
            sent.append(sent_as(key, by_key, row))
        elif missing is None:
            raise TypeError(f"row {row}, counted from 0, is missing ({name}): leave it out")
        else:
            empty.append(row)
            sent.append(missing)
    return Keys(given, sent, empty, column)


def sent_as(key: Any, by_key: bool, row: int | None = None) -> Sent:
    """A key in a form in which the table may have it. No error has it in it."""
    if by_key:
        if isinstance(key, (str, bytes)):
            return key
        if isinstance(key, (bytearray, memoryview)):
            return bytes(key)
        if not isinstance(key, (bool, datetime)):
            if isinstance(key, (date, Decimal, IPv4Address, IPv6Address, UUID)):
                return str(key)
            if _is_whole(key):
                return str(int(key))
        raise _wrong(key, row, "a key is text, bytes or a whole number, and no")
    if _is_whole(key) and not isinstance(key, bool):
        return int(key)
    raise _wrong(key, row, "this table is looked up by the number of a row, and not by")


def missing_name(key: Any) -> str | None:
    """What a missing key is called: ``None``, or what frames put in its place."""
    if key is None:
        return "None"
    kind = type(key).__name__
    if kind in ("NAType", "NaTType"):
        return {"NAType": "NA", "NaTType": "NaT"}[kind]
    if _is_float(key) or kind == "datetime64":
        return None if key == key else "NaN"
    return None


def column_of(frame: Any) -> Any:
    """The one column of a frame. Other frames are refused: they would be lists of names."""
    names = frame_columns(frame)
    if names is None or len(names) == 1:
        return frame
    named = f", such as frame[{names[0]!r}]" if names else ""
    raise TypeError(f"a frame of {len(names)} columns is no list of keys: give one column{named}")


def frame_columns(data: Any) -> list[str] | None:
    """The names of a frame's columns; ``None`` if it is no frame."""
    refuse_lazy(data)
    if isinstance(data, type):
        return None
    if hasattr(data, "column_names") and hasattr(data, "num_columns"):  # pyarrow
        return list(data.column_names)
    is_frame = hasattr(data, "__dataframe__") or hasattr(data, "__arrow_c_stream__")
    columns = getattr(data, "columns", None)
    if is_frame and columns is not None and not callable(columns):  # pandas, polars, duckdb
        return list(columns)
    schema = getattr(data, "schema", None)
    if hasattr(data, "read_next_batch") and schema is not None:  # a reader of pyarrow
        return list(schema.names)
    return None


def is_column(data: Any) -> bool:
    """Whether it is a column of pandas, polars or pyarrow."""
    kind = type(data)
    home = kind.__module__.partition(".")[0]
    if home == "pyarrow":
        return kind.__name__.endswith("Array")
    return home in ("pandas", "polars") and (
        kind.__name__ == "Series" or kind.__name__.endswith(("Index", "Array"))
    )


def refuse_lazy(data: Any) -> None:
    """Refuses what has no rows yet."""
    kind = type(data)
    if kind.__name__ == "LazyFrame":
        raise TypeError("a LazyFrame has no rows yet: collect it first, with `.collect()`")
    if kind.__module__.partition(".")[0] == "polars" and kind.__name__ == "Expr":
        raise TypeError("an expression of polars has no rows: select it from a frame first")


def _listed(keys: Any) -> tuple[list[Any], Any]:
    """The keys one by one; and as a frame of one column, if they came as a column."""
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise TypeError("several keys are a list of them, and not one text")
    if isinstance(keys, Mapping):
        raise TypeError("several keys are a list or a column, and no dictionary")
    names = frame_columns(column_of(keys))
    if names is not None:
        return _of_frame(keys, names[0])
    if is_column(keys):
        return _of_column(keys)
    if hasattr(keys, "ndim") and hasattr(keys, "tolist"):  # an array of numpy
        if keys.ndim != 1:
            raise TypeError(f"keys are one column, and this array has {keys.ndim} dimensions")
        return keys.tolist(), None
    if not isinstance(keys, Iterable):
        kind = type(keys).__name__
        raise TypeError(f"several keys are a list or a column of them, and no {kind}")
    return list(keys), None


def _of_frame(frame: Any, name: str) -> tuple[list[Any], Any]:
    if hasattr(frame, "read_all"):
        frame = frame.read_all()
    home = type(frame).__module__.partition(".")[0]
    if home in ("pandas", "polars"):
        return _of_column(frame[name])
    if home != "pyarrow":
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        frame = pyarrow.table(frame)
    return _of_column(frame.column(0))


def _of_column(column: Any) -> tuple[list[Any], Any]:
    home = type(column).__module__.partition(".")[0]
    if home == "polars":
        return column.to_list(), column.alias("key").to_frame()
    if home == "pyarrow":
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return column.to_pylist(), pyarrow.table({"key": column})
    if not hasattr(column, "to_frame"):  # an array of pandas
        return list(column), None
    # Whoever changes the column later does not change the answers.
    frame = column.to_frame(name="key").reset_index(drop=True).copy()
    return column.tolist(), frame


def _is_whole(key: Any) -> bool:
    if _is_float(key):
        # Frames turn whole numbers into floats where some are missing.
        return bool(abs(key) < 2**53 and key == int(key))
    # Arrays of one number have an index too.
    return isinstance(key, SupportsIndex) and not hasattr(key, "__len__")


def _is_float(key: Any) -> bool:
    return isinstance(key, float) or type(key).__name__ in ("float16", "float32")


def _plain(key: Any) -> Any:
    if isinstance(key, (bytearray, memoryview)):
        return bytes(key)
    if isinstance(key, str):
        return str(key)
    return operator.index(key) if isinstance(key, SupportsIndex) else key


def _wrong(key: Any, row: int | None, what: str) -> TypeError:
    kind = type(key).__name__
    place = "" if row is None else f"row {row}, counted from 0: "
    more = ""
    if row is None and (hasattr(key, "__len__") or frame_columns(key) is not None):
        more = ": `get_many` takes several keys"
    return TypeError(f"{place}{what} {kind}{more}")
