"""Tables: from data frames and files, and their updates."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from html import escape
from os import PathLike
from typing import Any, Literal, Union

from . import _privet
from ._keys import frame_columns, is_column, keys_of, refuse_lazy
from ._progress import ProgressOption, reporter

PathName = Union[str, "PathLike[str]"]


@dataclass(frozen=True)
class BuildReport:
    """A table that was built."""

    file: str
    rows: int
    keys: int | None
    """``None`` in a table by the number of a row."""
    records: int
    record_len: int
    """Bytes of a record."""
    value_bytes: int
    layout_bytes: int
    """Bytes that each client receives to know where keys lie."""
    overhead: float
    """Bytes of all records and of the layout, for each byte of values."""
    duplicates_dropped: int
    empty_keys_skipped: int
    file_bytes: int
    table_id: str
    digest: str
    root: str | None
    """What clients verify an authenticated table against."""
    publisher: str | None
    """Who signs the table's updates."""
    next_key: str | None
    """The digest of the key without which nobody hands the table on."""
    seconds: float

    def _repr_html_(self) -> str:
        return _html(self)


@dataclass(frozen=True)
class UpdateReport:
    """What an update changed."""

    file: str
    epoch: int
    inserted: int
    replaced: int
    deleted: int
    absent: int
    """Keys to delete that the table did not have."""
    unchanged: int | None
    """Of ``replace_with``: keys that have the value that they had."""
    records_changed: int
    records: int
    digest: str
    publisher: str
    log_bytes: int
    compacted: bool

    def _repr_html_(self) -> str:
        return _html(self)


def build(
    data: Any,
    path: PathName,
    *,
    key: str | None = None,
    values: str | Iterable[str] | None = None,
    raw: str | None = None,
    range_from: str | None = None,
    range_to: str | None = None,
    normalize: str | Iterable[str] = (),
    key_format: Literal["text", "hex", "base64"] | None = None,
    key_map: Literal["buckets", "cuckoo"] = "buckets",
    parts: int | None = None,
    on_duplicate: Literal["error", "first", "last", "all"] = "error",
    on_empty_key: Literal["error", "skip"] = "error",
    max_value: int | None = None,
    authenticate: bool = False,
    publisher_key: PathName | None = None,
    next_key: str | None = None,
    succeeds: PathName | None = None,
    hand_over_to: PathName | None = None,
    format: Literal["csv", "tsv", "jsonl", "parquet"] | None = None,
    delimiter: str | None = None,
    types: str | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> BuildReport:
    """Builds a table of ``data`` into the file ``path``.

    :param data: a data frame or anything else with ``__arrow_c_stream__`` (pandas, polars, pyarrow,
        duckdb); the path of a CSV, TSV, JSON Lines or Parquet file; or a list of either, such as
        record batches, which have the same columns.
    :param key: the column of the keys; without it, rows are looked up by number, from 0.
    :param values: the columns of the value; default: all but the key.
    :param raw: the one column whose bytes are the value.
    :param range_from: the column of the first key of a range; a row answers for all keys of it.
    :param range_to: the column of the last key of a range.
    :param normalize: differences between keys that do not count: ``trim``, ``trim-invisible``,
        ``nfc``, ``lower``, ``upper``, ``fold``, ``alphanumeric``, ``number``.
    :param key_format: how keys are written where they are text; default: ``text``, or ``hex`` if
        the column has bytes. A client takes keys of bytes as they are, and text in this form.
    :param key_map: ``cuckoo`` for tables that change often.
    :param parts: how many records the value of a key may lie in, 1 to 16.
    :param on_duplicate: what to do with a key that is there twice; ``all`` keeps all its values.
    :param on_empty_key: what to do with a row without a key.
    :param max_value: refuse values of more bytes.
    :param authenticate: store with each record the proof that it belongs to the table.
    :param publisher_key: the key file of whoever will sign updates, as :func:`keygen` makes it.
    :param next_key: the digest of the key without which nobody hands the table on: of
        ``keygen(..., next=True)``.
    :param succeeds: the file of the table that ends for this one. Clients that know it follow to
        this one. Its publisher signs that, with ``publisher_key``.
    :param hand_over_to: with ``succeeds``, the key file of who publishes from now on: the next key,
        if the table before has one. Without ``publisher_key`` it signs alone, and updates that are
        not in the log of that table are void.
    :param format: the format of files; default: by their names.
    :param delimiter: what separates cells in CSV.
    :param types: what columns of CSV are: ``auto``, or ``column=number,…``.
    :param force: replace a file at ``path`` that is no table.
    :param progress: as for :class:`Client`.

    If it fails or is interrupted while it reads rows, the file at ``path`` is as it was before.
    Messages may name a row or a key of the data.
    """
    options = {
        "key": key, "value": _names(values or []), "raw_value": raw, "range_from": range_from,
        "range_to": range_to, "normalize": _names(normalize), "key_format": key_format,
        "key_map": key_map, "parts": parts, "on_duplicate": on_duplicate,
        "on_empty_key": on_empty_key, "max_value": max_value, "authenticate": authenticate,
        "publisher_key": publisher_key, "next_key": next_key, "succeeds": succeeds,
        "hand_over_to": hand_over_to, "format": format, "delimiter": delimiter, "types": types,
        "force": force,
    }  # fmt: skip
    inputs = _inputs(data)
    began = time.monotonic()
    with reporter(progress) as bars:
        report = _privet.build(inputs, path, options, bars.tell())
    return _of(BuildReport, {**report, "seconds": time.monotonic() - began})


def update(
    path: PathName,
    key_file: PathName,
    *,
    set: Mapping[str, Any] | None = None,
    delete: Iterable[str] = (),
    from_: Any = None,
    replace_with: Any = None,
    replace: bool = False,
    compact: int | None = None,
    begin_history: bool = False,
    hand_over_to: PathName | None = None,
    next_key: str | None = None,
) -> UpdateReport:
    """Signs the next version of a table, and appends it to the log beside the table's file.

    :param path: the table's file.
    :param key_file: the publisher's secret key, as :func:`keygen` makes it.
    :param set: keys and their new values: a dictionary of all columns, or text where values are
        raw. For dates and other types that JSON does not have, use ``from_``.
    :param delete: keys to remove: a list, or a column.
    :param from_: rows to set, as ``data`` of :func:`build`.
    :param replace_with: all rows that the table is to hold, as ``data`` of :func:`build`:
        keys that are not among them are removed, and equal values change nothing. Not together with
        ``set``, ``delete`` or ``from_``. If the table cannot take all rows, it stays as it is.
    :param replace: let a value take the place of one with more columns, or of other types.
    :param compact: afterwards write the table anew, if the log has grown to so many percent of it.
    :param hand_over_to: the key file of who signs from now on: the next key, if the table has one.
        Clients follow. It is an update of its own.
    :param next_key: the digest of the next key from now on, as for :func:`build`.
    :param begin_history: sign a table for the first time that was built without ``publisher_key``.
        Clients that know it refuse it from then on, until they ``accept_new_table``. Also for a
        table whose log is lost for good: what its file has goes on as another table.

    After an interruption, look at the epoch (:func:`inspect`) before you repeat it: what was being
    signed then may be signed.
    """
    if isinstance(compact, bool):
        raise TypeError("`compact` is a number of percent: 0 compacts whatever the log takes")
    if replace_with is not None and (set or from_ is not None or delete):
        raise TypeError("`replace_with` says all that the table is to hold: give nothing beside it")
    if set is not None and (frame_columns(set) is not None or is_column(set)):
        raise TypeError("`set` is a dictionary of keys and values; rows of a frame go to `from_`")
    given = dict(set or {})
    options = {
        "set": list(zip(_texts(list(given)), map(_value, given.values()))),
        "delete": _texts(delete), "from_": _input(from_), "replace_with": _input(replace_with),
        "replace": replace, "compact": compact, "begin_history": begin_history,
        "hand_over_to": hand_over_to, "next_key": next_key,
    }  # fmt: skip
    return _of(UpdateReport, _privet.update(path, key_file, options))


def keygen(path: PathName, *, next: bool = False) -> str:
    """Makes the key with which a table's owner signs its updates, in a new file.

    Whoever has the file can sign in the owner's name. Returns the publisher: what clients pin.

    :param next: make a next key, which signs nothing before a table is handed on, and can stay
        offline. Returns its digest, for :func:`build`.
    """
    return _privet.keygen(path, next)


@dataclass(frozen=True)
class TableReport:
    """What a table's file and its log say, in the table's last version."""

    file: str
    file_bytes: int
    table_id: str
    epoch: int
    digest: str
    records: int
    record_len: int
    """Bytes of a record."""
    keys: int | None
    """``None`` in a table by the number of a row. Counted when the file was written."""
    key_column: str | None
    columns: tuple[tuple[str, str], ...] | None
    """Names and types of the values' columns, if the table says them."""
    root: str | None
    """What clients verify an authenticated table against."""
    publisher: str | None
    """Who signs the table's updates."""
    next_key: str | None
    """The digest of the key without which nobody hands the table on."""
    log_bytes: int
    verified: bool
    """Whether every byte was read and checked."""
    report: dict[str, Any] = field(repr=False)
    """Everything, as ``privet inspect --json`` prints it."""

    def _repr_html_(self) -> str:
        return _html(self)


def inspect(path: PathName, *, verify: bool = False) -> TableReport:
    """What a table's file says about itself.

    :param verify: read all of it, and check every byte.
    """
    report = json.loads(_privet.inspect(path, verify))
    # The last version stands in the log, if there is one.
    updates = report.get("updates") or {}
    columns = report.get("columns")
    latest = {name: updates[name] for name in ("epoch", "digest", "records") if updates}
    latest["publisher"] = updates.get("publisher")
    latest["next_key"] = updates.get("next_key")
    latest["log_bytes"] = updates.get("log_bytes", 0)
    latest["columns"] = columns and tuple((each["name"], each["type"]) for each in columns)
    return _of(TableReport, {**report, **latest, "report": report})


def _names(names: str | Iterable[str]) -> list[str]:
    """Several names, or one."""
    return [names] if isinstance(names, str) else list(names)


def _texts(keys: Any) -> list[str]:
    """Keys as the command takes them: as text, written as the table's keys are."""
    texts = []
    for row, key in enumerate(keys_of(keys, by_key=True).sent):
        if isinstance(key, bytes):
            raise TypeError(
                f"row {row}, counted from 0, is bytes: keys are given as text here, in the form in "
                "which the table's keys are written"
            )
        texts.append(str(key))
    return texts


def _inputs(data: Any) -> list[Any]:
    """Paths; or data with Arrow's stream, each with a name for errors."""
    refuse_lazy(data)
    if is_column(data):
        raise TypeError("a column is no frame: give the frame, or make one with `.to_frame()`")
    listed = [data]
    if not isinstance(data, (str, PathLike)) and not hasattr(data, "__arrow_c_stream__"):
        if not isinstance(data, Iterable) or isinstance(data, (bytes, Mapping)):
            raise TypeError(
                "data is a data frame, anything else with __arrow_c_stream__, a path, or a list "
                f"of these, and no {type(data).__name__}"
            )
        listed = list(data)
    inputs: list[Any] = []
    for number, each in enumerate(listed, 1):
        refuse_lazy(each)
        if isinstance(each, (str, PathLike)):
            inputs.append(each)
        elif hasattr(each, "__arrow_c_stream__"):
            inputs.append(("the data" if len(listed) == 1 else f"the data, number {number}", each))
        else:
            raise TypeError(f"a {type(each).__name__} has no __arrow_c_stream__, and is no path")
    if len({isinstance(each, tuple) for each in inputs}) > 1:
        raise TypeError("data comes from frames or from files, and not from both at once")
    return inputs


def _input(data: Any) -> Any:
    """The same for data that is one input, if there is any."""
    if data is None:
        return None
    inputs = _inputs(data)
    if len(inputs) != 1:
        raise TypeError("an update takes one frame, or one file")
    return inputs[0]


def _value(value: Any) -> str:
    """A new value as text: JSON, or what is raw."""
    if isinstance(value, Mapping):
        cells = (f"{json.dumps(str(name))}:{_json(cell)}" for name, cell in value.items())
        return "{" + ",".join(cells) + "}"
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def _json(value: Any) -> str:
    if isinstance(value, Mapping):
        return _value(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if type(value) is date:
        return json.dumps(value.isoformat())
    return json.dumps(value, ensure_ascii=False)


def _of(kind: Any, report: dict[str, Any]) -> Any:
    return kind(**{one.name: report[one.name] for one in fields(kind)})


def _html(report: Any) -> str:
    rows = (
        f"<tr><th>{escape(one.name.replace('_', ' '))}</th>"
        f"<td>{escape(str(getattr(report, one.name)))}</td></tr>"
        for one in fields(report)
        if one.repr and getattr(report, one.name) is not None
    )
    return f"<table>{''.join(rows)}</table>"
