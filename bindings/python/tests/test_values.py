"""Known answers: values as they are stored, and what they stand for."""

import datetime
import decimal
import json
import pathlib
from typing import Any

import privet

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
