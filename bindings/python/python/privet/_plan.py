"""Which scheme to take, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from os import fspath
from pathlib import Path
from typing import Any

from . import _privet
from ._errors import UsageError
from ._table import PathName, _inputs


class Plot:
    """A drawing in SVG, which notebooks show."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: PathName) -> None:
        """Writes it to a file, whose name ends in ``.svg``."""
        file = Path(fspath(path))
        if file.suffix.lower() != ".svg":
            raise UsageError(
                f"a drawing is saved as .svg, and not as {file.suffix or 'a file without ending'}: "
                "browsers and drawing programs turn it into other formats"
            )
        file.write_text(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


class Plan:
    """The schemes for a table and its use, the recommended one first."""

    def __init__(self, report: dict[str, Any], svg: str) -> None:
        self.report = report
        """Everything, as ``privet plan --json`` prints it."""
        self._svg = svg

    @property
    def schemes(self) -> list[dict[str, Any]]:
        """What each scheme costs, in the order of the ranking."""
        return list(self.report["schemes"])

    @property
    def recommendation(self) -> str:
        """Which scheme to take, and what it costs, in a sentence."""
        return str(self.report["recommendation"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.schemes)

    def to_polars(self) -> Any:
        """The ranking as a ``polars.DataFrame``."""
        import polars  # type: ignore[import-not-found,unused-ignore]

        return polars.DataFrame([_flat(scheme) for scheme in self.schemes])

    def to_pandas(self) -> Any:
        """The ranking as a ``pandas.DataFrame``."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame([_flat(scheme) for scheme in self.schemes])

    def plot(self) -> Plot:
        """All schemes in a drawing."""
        return Plot(self._svg)

    def __repr__(self) -> str:
        return f"<privet.Plan: {self.recommendation}>"


def plan(data: Any = None, **options: Any) -> Plan:
    """Computes which scheme suits a table and its use, and what each would cost.

    :param data: a table file; or, with ``key``, what :func:`build` takes.
    :param options: those of the command ``privet plan``, with ``_`` for ``-``: ``records`` and
        ``record_len`` instead of data, ``servers``, ``may_lie``, ``lookups``, ``clients``,
        ``updates_per_day``, ``client``, ``link``, ``prices`` and the others.
    """
    inputs = [] if data is None else _inputs(data)
    return Plan(*_privet.plan(inputs, options))


def bench(scheme: str, *, records: int, record_len: int, **options: Any) -> dict[str, Any]:
    """Measures a scheme on this machine: what ``privet bench --json`` prints.

    :param options: those of the command ``privet bench``, with ``_`` for ``-``.
    """
    return _privet.bench(scheme, {"records": records, "record_len": record_len, **options})


def _flat(scheme: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Fields of fields as columns of their own."""
    flat: dict[str, Any] = {}
    for name, value in scheme.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{before}{name}_"))
        elif not isinstance(value, list):
            flat[before + name] = value
    return flat
