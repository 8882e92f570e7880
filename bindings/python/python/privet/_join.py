"""Frames with what was looked up for their rows."""

from __future__ import annotations

from typing import Any, Literal

from ._errors import UsageError
from ._keys import frame_columns
from ._values import Answers, Description

How = Literal["left", "inner"]


def column_to_join(frame: Any, on: str, how: How, suffix: str) -> Any:
    """The column of the keys."""
    if how not in ("left", "inner"):
        raise UsageError("`how` is 'left' or 'inner'")
    names = frame_columns(frame)
    if names is None or _home(frame) not in ("pandas", "polars", "pyarrow"):
        kind = type(frame).__name__
        raise TypeError(f"`join` takes a frame of pandas, polars or pyarrow, and no {kind}")
    if not suffix:
        raise UsageError("`suffix` must not be empty")
    if on not in names:
        if on in getattr(getattr(frame, "index", None), "names", ()):
            return frame.index.get_level_values(on)
        raise UsageError(f"the frame has no column {on!r}")
    if names.count(on) > 1:
        raise UsageError(f"the frame has several columns {on!r}")
    return frame.column(on) if _home(frame) == "pyarrow" else frame[on]


def joined(frame: Any, answers: Answers, how: How, suffix: str) -> Any:
    """The frame with the columns of the values. Raises the gravest error if a lookup failed."""
    for error in answers.errors:
        raise error
    outcomes, description = answers._outcomes, answers._description
    # A key with several values has as many rows.
    rows = [row for row, one in enumerate(outcomes) for _ in (one if type(one) is list else "1")]
    as_they_are = len(rows) == len(outcomes)
    taken = set(frame_columns(frame) or ())
    names = []
    for name in _names(description):
        while name in taken:
            name += suffix
        taken.add(name)
        names.append(name)
    if _home(frame) == "polars":
        values = answers.to_polars()
        found, values = values["found"], values[:, 2:-1]
        values.columns = names
        whole = (frame if as_they_are else frame[rows]).hstack(values)
        return whole if how == "left" else whole.filter(found)
    table = answers.to_arrow()
    found = table.column("found")
    values = table.select(range(2, table.num_columns - 1)).rename_columns(names)
    if _home(frame) == "pandas":
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        left = frame if as_they_are else frame.iloc[rows]
        right = values.to_pandas().set_axis(left.index)
        whole = pandas.concat([left, right], axis=1)
        return whole if how == "left" else whole[found.to_numpy()]
    import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

    whole = pyarrow.table(frame)
    whole = whole if as_they_are else whole.take(rows)
    for name, column in zip(names, values.columns):
        whole = whole.append_column(name, column)
    return whole if how == "left" else whole.filter(found)


def _names(description: Description | None) -> list[str]:
    if description is None:
        return ["value"]
    return [name for name, _ in description[1]]


def _home(frame: Any) -> str:
    for kind in type(frame).__mro__:
        home = kind.__module__.partition(".")[0]
        if home in ("pandas", "polars", "pyarrow"):
            return home
    return ""
