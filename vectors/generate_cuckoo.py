#!/usr/bin/env python3
"""Writes vectors/cuckoo.json: a table by key under a cuckoo map, built a second time, sharing no code with the Rust crates.

Needs: pip install blake3
What every reader of such a table must know is in it: how a key hashes, which records are its candidates, how entries lie in a record, and how the
key map is encoded. Where an entry lies is the builder's choice; here it is the first candidate with room, else the second, else the stash.
"""
import json, pathlib, struct
from blake3 import blake3

SEED = bytes(range(32))
RECORDS, RECORD_LEN = 13, 120


def words(key):
    return struct.unpack("<4Q", blake3(key, key=SEED).digest())


def candidates(key):
    _, first, second, _ = words(key)
    first, second = first * RECORDS >> 64, second * (RECORDS - 1) >> 64
    return [first, second + (second >= first)]


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
        if sum(len(entry(*other)) for other in contents[record]) + len(entry(key, value)) <= RECORD_LEN:
            contents[record].append((key, value))
            break
    else:
        stash.append((key, value))

by_tag = lambda pair: words(pair[0])[3]
records = [b"".join(entry(*pair) for pair in sorted(each, key=by_tag)) for each in contents]
key_map = struct.pack("<HB", 2, 1) + SEED
key_map += struct.pack("<4QI", len(pairs), RECORDS, RECORD_LEN, sum(map(len, records)), len(stash))
for key, value in sorted(stash, key=by_tag):
    key_map += struct.pack("<QI", words(key)[3], len(value)) + value

values = dict(pairs)
lookups = [
    {"key": key.hex(), "candidates": candidates(key), "value": values[key].hex() if key in values else None}
    for key in [*values, b"missing", b"key 60", b"key"]
]
answers = {
    "about": "A table by key under a cuckoo map. Bytes are in hexadecimal. A lookup of `key` fetches both records that `candidates` names, and finds "
    "`value` in one of them or in the stash of `key_map`; null is a miss.",
    "seed": SEED.hex(),
    "key_map": key_map.hex(),
    "records": [record.ljust(RECORD_LEN, b"\0").hex() for record in records],
    "lookups": lookups,
}
path = pathlib.Path(__file__).with_name("cuckoo.json")
path.write_text(json.dumps(answers, indent=2, ensure_ascii=False) + "\n")
print(f"{len(stash)} of {len(pairs)} in the stash, {path.name} written")
