#!/usr/bin/env python3
"""Writes vectors/cuckoo.json: a table by key under a cuckoo map, built a second time, sharing no code with the Rust crates.

Needs: pip install blake3
What every reader of such a table must know is in it: how a key hashes, which records are its candidates (the tag pairs records off by reflection), how entries
lie in a record, and how the key map is encoded. Where an entry lies is the builder's choice; here it is the first candidate with room, else the second, else the stash.
"""
import json, pathlib, struct
from blake3 import blake3

SEED = bytes(range(32))
RECORDS, RECORD_LEN = 13, 120


def words(key):
    return struct.unpack("<4Q", blake3(key, key=SEED).digest())


def other(tag, record, records):
    """The record that belongs to `record` under `tag`, or None. Of an even number of records, the last one lies beside a circle of the others."""
    circle = records - (records % 2 == 0)
    centre = (tag % 2**32 * 2**32 + tag // 2**32) * circle >> 64
    if record < circle and record != centre:
        return next(image for image in range(circle) if (record - centre + image - centre) % circle == 0)
    if records % 2 == 0:
        return centre if record == circle else circle


def candidates(key, records=RECORDS):
    _, first, _, tag = words(key)
    if records == 1:
        return [0]
    paired = [record for record in range(records) if other(tag, record, records) is not None]
    first = paired[first * len(paired) >> 64]
    return [first, other(tag, first, records)]


def variable_length(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def entry(key, value):
    return variable_length(len(value) + 1) + struct.pack("<Q", words(key)[3]) + value


pairs = [(f"key {i}".encode(), bytes([i]) * (i * 5 % 23)) for i in range(60)]
pairs += [("Schlüssel".encode(), b"\xab" * 100), (b"too long for a record", b"\xcd" * 300), (b"", b"of the empty key")]
contents = [[] for _ in range(RECORDS)]
stash = []
for key, value in pairs:
    for record in candidates(key):
        if sum(len(entry(*pair)) for pair in contents[record]) + len(entry(key, value)) <= RECORD_LEN:
            contents[record].append((key, value))
            break
    else:
        stash.append((key, value))

by_tag = lambda pair: words(pair[0])[3]
records = [b"".join(entry(*pair) for pair in sorted(each, key=by_tag)) for each in contents]
key_map = struct.pack("<HB", 2, 2) + SEED
key_map += struct.pack("<4QI", len(pairs), RECORDS, RECORD_LEN, sum(map(len, records)), len(stash))
for key, value in sorted(stash, key=by_tag):
    key_map += struct.pack("<QI", words(key)[3], len(value)) + value

values = dict(pairs)
lookups = [
    {"key": key.hex(), "candidates": candidates(key), "value": values[key].hex() if key in values else None}
    for key in [*values, b"missing", b"key 60", b"key"]
]
other_sizes = [
    {"records": records, "key": key.hex(), "candidates": candidates(key, records)}
    for records in [1, 2, 3, 4, 5, 6, 64, 1001]
    for key in [b"", b"missing", *(f"key {i}".encode() for i in range(6))]
]
answers = {
    "about": "A table by key under a cuckoo map. Bytes are in hexadecimal. A lookup of `key` fetches both records that `candidates` names, and finds "
    "`value` in one of them or in the stash of `key_map`; null is a miss. `other_sizes` has candidates in tables of other sizes under the same seed.",
    "seed": SEED.hex(),
    "key_map": key_map.hex(),
    "records": [record.ljust(RECORD_LEN, b"\0").hex() for record in records],
    "lookups": lookups,
    "other_sizes": other_sizes,
}
path = pathlib.Path(__file__).with_name("cuckoo.json")
path.write_text(json.dumps(answers, indent=2, ensure_ascii=False) + "\n")
print(f"{len(stash)} of {len(pairs)} in the stash, {path.name} written")
