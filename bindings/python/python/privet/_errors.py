"""Exceptions, by who is at fault. No message has a key that was looked up, or a value."""

from __future__ import annotations

from typing import Any

from . import _privet


class PrivetError(Exception):
    """Any error of Privet."""

    @property
    def is_final(self) -> bool:
        """Whether nobody may try again: another try could show a server what was wanted, or what
        failed is damaged and stays so.
        """
        return any(_privet.is_final(kind.__name__) for kind in type(self).__mro__)


class UsageError(PrivetError, ValueError):
    """The caller asked for something impossible. Nothing was sent.

    Except for a key that the table can never have, such as ``abc`` in a table of addresses. Its
    lookup was made like any other, so that nobody who listens learns of it.
    """


class UnavailableError(PrivetError, ConnectionError):
    """The other side, or a resource of this machine, is not there now. Trying later may help."""


class ExhaustedError(PrivetError):
    """Something is used up or full: hints, a size limit, a queue."""


class PeerError(PrivetError):
    """A server broke the protocol."""


class IntegrityError(PrivetError):
    """A digest, a proof or a signature is wrong: do not trust what came, and do not try again."""


class SelectiveError(PrivetError):
    """A lookup failed for a reason that may depend on its key.

    Asking again may tell a server something about the key.
    """


class CorruptedError(PrivetError):
    """A file of our own is damaged. If a lookup met the damage, asking again may reveal its key.

    It is no ``OSError``: code that tries again after one would catch this too.
    """


class InternalError(PrivetError, RuntimeError):
    """Privet itself is wrong. Please report it."""


class NotFound(PrivetError, KeyError):
    """The table does not have the key of ``db[key]``. The key is not in the message."""

    def __init__(self) -> None:
        super().__init__("the table does not have this key")

    def __str__(self) -> str:
        return "the table does not have this key"

    def __reduce__(self) -> Any:
        return NotFound, ()


def is_told_before(later: PrivetError, error: BaseException | None) -> bool:
    """Whether the later of two errors of one call is raised: if only that one is final.
    Otherwise a server could hide one failure behind another.
    """
    return later.is_final and not (isinstance(error, PrivetError) and error.is_final)
