"""Known answers: values as they are stored, and what they stand for."""

import contextlib
import datetime
import decimal
import json
import pathlib
import random
from typing import Any

import privet
import pytest

VECTORS = pathlib.Path(__file__).parents[3] / "vectors/values.json"


def meant(value: Any) -> Any:
    """What the vectors write where JSON has no such type."""
    if isinstance(value, list):
        return [meant(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            (kind, text), = value.items()
            read = {
                "decimal": decimal.Decimal,
                "bytes": bytes.fromhex,
                "date": datetime.date.fromisoformat,
                "time": datetime.time.fromisoformat,
                "timestamp": datetime.datetime.fromisoformat,
            }.get(kind)
            if read is not None and isinstance(text, str):
                return read(text)
        return {name: meant(item) for name, item in value.items()}
    return value


def tuples(kind: Any) -> Any:
    return tuple(tuples(part) for part in kind) if isinstance(kind, list) else kind


def test_known_values_are_read() -> None:
    cases = json.loads(VECTORS.read_text())["cases"]
    assert len(cases) > 4
    for case in cases:
        description = (case["is_raw"], tuples(case["columns"]))
        found = privet.Value(case["stored"].encode(), description).values
        expected = meant(case["stands_for"])
        assert found == expected
        if isinstance(expected, dict):
            for name, cell in expected.items():
                assert type(found[name]) is type(cell), name


def test_values_keep_their_content_to_themselves() -> None:
    value = privet.Value(b"secret", None)
    assert "secret" not in f"{value!r}{value}" and value.text == "secret"
    assert bytes(value) == b"secret" and len(value) == 6 and bool(privet.Value(b"", None))
    assert value == privet.Value(b"secret", None) != privet.Value(b"other", None)
    several = privet.Value([b"1", b"2"], None)
    assert (several.bytes, [each.values for each in several.all]) == (b"1", [1, 2])


NAMES = ["a", "b", "", "é"]
ZONES = [None, "UTC", "Europe/Paris", "America", "../etc", "Nowhere", "+05:30", "+99:99", "+"]
CELLS = [
    "1", 1, -1, 1.5, None, True, "2020-01-01", "2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z", "12:30:00.123456789", "24:00:00", ".", "x", "", "AAAA",
    "====", 1e308, 10**400, "NaN",
]  # fmt: skip


def any_kind(dice: random.Random, depth: int = 0) -> Any:
    simple = ["any", "null", "boolean", "number", "text", "bytes", "date"]
    others = ["integer", "float", "decimal", "time", "timestamp"]
    nested = ["list", "map", "struct"] if depth < 4 else []
    name = dice.choice(simple + others + nested)
    more: Any = {
        "integer": lambda: (dice.choice([8, 64]), dice.random() < 0.5),
        "float": lambda: (64,),
        "decimal": lambda: (dice.randrange(256), dice.randrange(256)),
        "time": lambda: (dice.choice([0, 9]),),
        "timestamp": lambda: (dice.choice([0, 9]), dice.choice(ZONES)),
        "list": lambda: (any_kind(dice, depth + 1),),
        "map": lambda: (any_kind(dice, depth + 1),),
        "struct": lambda: (any_columns(dice, depth + 1),),
    }
    return (name, *more.get(name, tuple)())


def any_columns(dice: random.Random, depth: int = 0) -> Any:
    return tuple((dice.choice(NAMES), any_kind(dice, depth)) for _ in range(dice.randrange(1, 4)))


def any_cell(dice: random.Random, depth: int = 0) -> Any:
    shape = dice.randrange(10) if depth < 4 else 9
    if shape < 2:
        return [any_cell(dice, depth + 1) for _ in range(dice.randrange(3))]
    if shape < 4:
        return {dice.choice(NAMES): any_cell(dice, depth + 1) for _ in range(dice.randrange(3))}
    return dice.choice(CELLS)


def test_whatever_a_publisher_writes_is_read_or_is_a_value_error() -> None:
    dice = random.Random(7)
    refused = 0
    for _ in range(30_000):
        columns = any_columns(dice)
        is_raw = dice.random() < 0.2
        described = (is_raw, columns[:1] if is_raw else columns)
        stored = json.dumps(any_cell(dice)).encode()
        if dice.random() < 0.1:
            stored = dice.randbytes(dice.randrange(9))
        try:
            privet.Value(stored, described).values
        except ValueError as error:
            assert str(error).startswith("the value "), error
            refused += 1
    assert 500 < refused < 10_000
    deepest = [b"[" * depth + b"]" * depth for depth in (100, 300, 600, 900, 100_000)]
    for deep in deepest:
        with contextlib.suppress(ValueError):
            privet.Value(deep, (False, (("a", ("any",)),))).values
    for deep in (deepest[-1], b'{"a":' * 100_000, b"1" * 5_000):
        with pytest.raises(ValueError, match="^the value cannot be read as JSON$"):
            privet.Value(deep, (False, (("a", ("any",)),))).values
