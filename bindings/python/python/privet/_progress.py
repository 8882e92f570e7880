"""How far long work is: bars in terminals and notebooks, or calls of a function."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, Union

from ._closing import Closing


@dataclass(frozen=True)
class Progress:
    """How far one piece of work is; or a notice, whose ``total`` is 0."""

    what: str
    done: int
    total: int | None
    """``None`` if it is not known."""


ProgressOption = Union[bool, None, Callable[[Progress], None]]
"""``True`` for bars, ``False`` for none, ``None`` for bars where somebody sees them, or a function
that is called with each :class:`Progress`. Without bars and function, notices go to the logger
``privet``."""

Told = Callable[[str, int, Union[int, None]], None]

_FIRST_SHOWN = 0.5
"""Work that takes less seconds shows no bar."""

_BETWEEN = 0.1

_log = logging.getLogger("privet")


def reporter(progress: ProgressOption) -> Reporter:
    """What ``progress`` asks for."""
    if callable(progress):
        return _Called(progress)
    if progress is False:
        return Reporter()
    display = _notebook_display()
    if display is not None:
        return _NotebookBars(display)
    if progress is True or sys.stderr.isatty():
        return _TerminalBars()
    return Reporter()


def log_notice(what: str, done: int, total: int | None) -> None:
    """Logs notices, and nothing else."""
    if total == 0:
        _log.warning("%s", what)


class Reporter(Closing):
    """Shows no progress."""

    def tell(self) -> Told | None:
        return None

    def close(self) -> None:
        pass


class _Called(Reporter):
    def __init__(self, function: Callable[[Progress], None]) -> None:
        self._function = function

    def tell(self) -> Told:
        return lambda what, done, total: self._function(Progress(what, done, total))


class _Bars(Reporter):
    def __init__(self) -> None:
        self._since = time.monotonic()
        self._shown = 0.0
        self._what = ""

    def tell(self) -> Told:
        return self._tell

    def _tell(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._since = what, now
        if total == 0:
            self._notice(what)
        elif now - self._since >= _FIRST_SHOWN and now - self._shown >= _BETWEEN:
            self._shown = now
            self._show(what, min(1.0, done / total) if total else None)

    def _notice(self, text: str) -> None:
        raise NotImplementedError

    def _show(self, what: str, share: float | None) -> None:
        raise NotImplementedError


class _TerminalBars(_Bars):
    def __init__(self) -> None:
        super().__init__()
        self._width = 0

    def _notice(self, text: str) -> None:
        self.close()
        print(f"privet: {text}", file=sys.stderr)

    def _show(self, what: str, share: float | None) -> None:
        bar = "" if share is None else f" [{'#' * round(30 * share):30}] {share:4.0%}"
        line = f"{what}{bar}"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def close(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class _NotebookBars(_Bars):
    def __init__(self, display: Any) -> None:
        super().__init__()
        self._display = display
        self._handle: Any = None

    def _put(self, html: str) -> None:
        from IPython.display import HTML  # type: ignore[import-not-found,unused-ignore]

        if self._handle is None:
            self._handle = self._display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))

    def _notice(self, text: str) -> None:
        self._put(escape(text))
        self._handle = None

    def _show(self, what: str, share: float | None) -> None:
        value = "" if share is None else f' value="{share:.3f}"'
        self._put(f"<progress{value}></progress> {escape(what)}")

    def close(self) -> None:
        if self._handle is not None:
            self._put("")
            self._handle = None


def _notebook_display() -> Any:
    """What displays HTML, if this is a notebook."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return display
