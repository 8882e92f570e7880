"""Privet: look records up in somebody else's table without the server learning which.

>>> import privet
>>> privet.build(frame, "packages.privet", key="Package")       # doctest: +SKIP
>>> with privet.serve("packages.privet") as server:             # doctest: +SKIP
...     with privet.connect(server.url) as db:
...         db["openssl"].values
"""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._client import AsyncClient, Client, Stats, Table, connect
from ._errors import (
    CorruptedError,
    ExhaustedError,
    IntegrityError,
    InternalError,
    NotFound,
    PeerError,
    PrivetError,
    SelectiveError,
    UnavailableError,
    UsageError,
)
from ._plan import Plan, Plot, bench, plan
from ._privet import scheme_names
from ._progress import Progress
from ._server import Server, serve
from ._table import (
    BuildReport,
    TableReport,
    UpdateReport,
    build,
    inspect,
    keygen,
    update,
)
from ._values import Answer, Answers, Value

if _TYPE_CHECKING:
    from . import testing as testing

__version__ = _version("privet")


def __getattr__(name: str) -> _Any:
    if name == "testing":
        # Only now: it imports pytest, where that is installed.
        from importlib import import_module

        return import_module(".testing", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Answer",
    "Answers",
    "AsyncClient",
    "BuildReport",
    "Client",
    "CorruptedError",
    "ExhaustedError",
    "IntegrityError",
    "InternalError",
    "NotFound",
    "PeerError",
    "Plan",
    "Plot",
    "PrivetError",
    "Progress",
    "SelectiveError",
    "Server",
    "Stats",
    "Table",
    "TableReport",
    "UnavailableError",
    "UpdateReport",
    "UsageError",
    "Value",
    "bench",
    "build",
    "connect",
    "inspect",
    "keygen",
    "plan",
    "scheme_names",
    "serve",
    "update",
]
