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


class CorruptedError(PrivetError, OSError):
    """A file of our own is damaged."""


class InternalError(PrivetError, RuntimeError):
    """Privet itself is wrong. Please report it."""


class NotFound(PrivetError, KeyError):
    """The table does not have the key of ``db[key]``. The key is not in the message."""

    def __init__(self) -> None:
        super().__init__("the table does not have this key")

    def __str__(self) -> str:
        return "the table does not have this key"
