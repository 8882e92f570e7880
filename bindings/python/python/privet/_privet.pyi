from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from ._errors import PrivetError

__all__ = [
    "Client",
    "Server",
    "is_final",
    "report",
    "run_command",
    "scheme_names",
    "set_program",
    "stream",
]

def set_program(words: Sequence[str]) -> None: ...
def run_command(typed: Sequence[str]) -> int: ...
def report(
    typed: Sequence[str],
    rows: Sequence[tuple[str, Any]] = ...,
    value_columns: Sequence[str] = ...,
    set: Sequence[tuple[str, str]] = ...,
    delete: Sequence[str] = ...,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> str: ...
def scheme_names() -> list[str]: ...
def is_final(class_name: str) -> bool: ...
def stream(keys: Any, outcomes: list[Any], values: bytes | None) -> Any: ...
@final
class Client:
    def __new__(
        cls,
        urls: Sequence[str],
        options: Mapping[str, Any],
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> Client: ...
    def get(
        self, key: object, timeout: float | None = None
    ) -> bytes | list[bytes] | None: ...
    def get_many(
        self,
        keys: list[Any],
        pad_to: int,
        told: Callable[[int, int], None] | None,
        timeout: float | None = None,
    ) -> list[Any]: ...
    def begin(
        self,
        keys: list[Any],
        pad_to: int,
        reply: Callable[[int, Any], None],
        timeout: float | None = None,
    ) -> int: ...
    def end(self, batch: int, timeout: float) -> PrivetError: ...
    def refresh(self) -> int: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...
    def table(self) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...
    def values(self) -> tuple[bool, tuple[tuple[str, tuple[Any, ...]], ...]] | None: ...
    def encoded_values(self) -> bytes | None: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def is_by_key(self) -> bool: ...
    @property
    def scheme(self) -> str: ...

@final
class Server:
    def __new__(
        cls,
        path: str,
        *,
        name: str | None,
        scheme: str | None,
        listen: str,
        threads: int | None,
        cache: str | None,
        insecure: bool,
        observe: bool,
        beside: Server | None,
    ) -> Server: ...
    def observed(self) -> list[bytes]: ...
    def close(self) -> None: ...
    @property
    def url(self) -> str: ...
    @property
    def scheme(self) -> str: ...
    @property
    def servers(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
