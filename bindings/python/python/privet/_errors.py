"""Exceptions, by who is at fault. No message has a key that was looked up, or a value."""

from __future__ import annotations


class PrivetError(Exception):
    """Any error of Privet."""


class UsageError(PrivetError, ValueError):
    """The caller asked for something impossible. Nothing was sent."""


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
    """A file of our own is damaged. If a lookup met the damage, asking again may tell its key.

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


def gravity(error: BaseException | None) -> int:
    """How grave an error is, the gravest the most: from 2 on, nothing may be tried again."""
    if error is None:
        return 0
    if isinstance(error, IntegrityError):
        return 3
    return 2 if isinstance(error, (SelectiveError, CorruptedError)) else 1
