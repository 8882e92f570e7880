#!/usr/bin/env python3
"""Writes vectors/values.json: what tables say of their values, written a second time, sharing no code with the Rust crates.

Needs nothing but Python. Each case has a description as bytes and as names (a type is its name and
what it is made of), one value as it is stored, and what it stands for. What JSON cannot say is
written as {"decimal": …}, {"bytes": …} in hexadecimal, {"date": …}, {"time": …}, {"timestamp": …}.
"""
import json, pathlib, struct

SIMPLE = {"any": 0, "null": 1, "boolean": 2, "number": 5, "text": 7, "bytes": 8, "date": 9}


def text(of):
    return struct.pack("<H", len(of.encode())) + of.encode()


def columns(of):
    return struct.pack("<H", len(of)) + b"".join(text(name) + kind(each) for name, each in of)


def kind(of):
    name, *made_of = of
    if name in SIMPLE:
        return bytes([SIMPLE[name]])
    if name == "integer":
        return bytes([3, made_of[0], made_of[1]])
    if name in ("float", "time"):
        return bytes([{"float": 4, "time": 10}[name], made_of[0]])
    if name == "decimal":
        return bytes([6, *made_of])
    if name == "timestamp":
        return bytes([11, made_of[0]]) + text(made_of[1] or "")
    if name == "struct":
        return b"\x0d" + columns(made_of[0])
    return bytes([{"list": 12, "map": 14}[name]]) + kind(made_of[0])


def case(raw, of, stored, stands_for):
    description = bytes([raw]) + columns(of)
    return {
        "description": description.hex(),
        "is_raw": raw,
        "columns": of,
        "stored": stored,
        "stands_for": stands_for,
    }


EVERY = [
    ["any", ["any"], '{"a":[1,null]}', {"a": [1, None]}],
    ["null", ["null"], "null", None],
    ["boolean", ["boolean"], "true", True],
    ["small", ["integer", 8, True], "-128", -128],
    ["large", ["integer", 64, False], "18446744073709551615", 2**64 - 1],
    ["float", ["float", 64], "0.1", 0.1],
    ["whole float", ["float", 32], "3", 3.0],
    ["number", ["number"], "1.25", 1.25],
    ["price", ["decimal", 20, 2], "1.50", {"decimal": "1.50"}],
    ["tiny", ["decimal", 38, 30], "0.000000000000000000000000000001", {"decimal": "1E-30"}],
    ["text", ["text"], '"\\u00e9\\"\\n"', 'é"\n'],
    ["bytes", ["bytes"], '"AP8="', {"bytes": "00ff"}],
    ["date", ["date"], '"2026-02-28"', {"date": "2026-02-28"}],
    ["time", ["time", 6], '"01:02:03.000004"', {"time": "01:02:03.000004"}],
    ["local", ["timestamp", 0, None], '"2020-01-02T03:04:05"', {"timestamp": "2020-01-02T03:04:05"}],
    [
        "instant",
        ["timestamp", 3, "UTC"],
        '"2020-01-02T03:04:05.006Z"',
        {"timestamp": "2020-01-02T03:04:05.006000+00:00"},
    ],
    ["list", ["list", ["bytes"]], '["AA==",null]', [{"bytes": "00"}, None]],
    ["struct", ["struct", [["b", ["bytes"]], ["n", ["integer", 32, True]]]], '{"b":"","n":1}', {"b": {"bytes": ""}, "n": 1}],
    ["map", ["map", ["date"]], '{"k":"0001-01-01"}', {"k": {"date": "0001-01-01"}}],
    ["Ærø, \"quoted\"", ["text"], '""', ""],
]


def main():
    everything = case(
        False,
        [[name, of] for name, of, _, _ in EVERY],
        "{" + ",".join(f"{json.dumps(name)}:{stored}" for name, _, stored, _ in EVERY) + "}",
        {name: stands_for for name, _, _, stands_for in EVERY},
    )
    nothing = case(False, [], "{}", {})
    raw_text = case(True, [["line", ["text"]]], "a, b", "a, b")
    raw_bytes = case(True, [["b", ["bytes"]]], "AP8=", {"bytes": "4150383d"})
    raw_date = case(True, [["d", ["date"]]], "2026-02-28", {"date": "2026-02-28"})
    cases = [everything, nothing, raw_text, raw_bytes, raw_date]
    path = pathlib.Path(__file__).with_name("values.json")
    path.write_text(json.dumps({"cases": cases}, indent=1, ensure_ascii=True) + "\n")


main()
