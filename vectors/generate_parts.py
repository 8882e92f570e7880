#!/usr/bin/env python3
"""Writes vectors/parts.json: a table by key whose keys have four parts and lists of values, built a second time, sharing no code with the Rust crates.

Needs: pip install blake3
What every reader of such a table must know is in it, beyond what generate_cuckoo.py has: how the parts of a key hash, what the entry of each part holds, how several values are one, and how
the key map is encoded. Where values are cut is the builder's choice; here it is every 40 bytes, and the last piece takes the rest.
"""
import json, pathlib, struct
from blake3 import blake3

SEED = bytes(range(32))
RECORDS, RECORD_LEN, PARTS, PIECE_LEN = 17, 150, 4, 40


def words(key, part):
    return struct.unpack("<4Q", blake3(key, key=SEED).digest(length=32, seek=32 * part))


def candidates(key, part):
    """Of an odd number of records, all lie on one circle, and the tag's centre is left over."""
    _, first, _, tag = words(key, part)
    centre = (tag % 2**32 * 2**32 + tag // 2**32) * RECORDS >> 64
    first = [record for record in range(RECORDS) if record != centre][first * (RECORDS - 1) >> 64]
    return [first, (2 * centre - first) % RECORDS]


def variable_length(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def held(values):
    """What the entries of a key hold, by their part."""
    value = b"".join(variable_length(len(each)) + each for each in values)
    cuts = [part * PIECE_LEN for part in range(PARTS)] + [len(value)]
    pieces = [value[start:end] for start, end in zip(cuts, cuts[1:])]
    rest = len(value) - len(pieces[0])
    check = blake3(value, derive_key_context="privet value in pieces v1").digest()[:8] if rest else b""
    return [variable_length(rest) + check + pieces[0], *(piece for piece in pieces[1:] if piece)]


def entry(tag, piece):
    return variable_length(len(piece) + 1) + struct.pack("<Q", tag) + piece


keys = {f"key {i}".encode(): [bytes([i + j]) * (i * 7 % 23) for j in range(i % 4 + 1)] for i in range(40)}
keys |= {b"in all parts": [b"\xab" * 130], b"empty values": [b"", b""], b"too long for records": [bytes(range(256)) * 3]}
contents = [[] for _ in range(RECORDS)]
stash = []
for key, values in keys.items():
    for part, piece in enumerate(held(values)):
        tag = words(key, part)[3]
        for record in candidates(key, part):
            if sum(len(entry(*each)) for each in contents[record]) + len(entry(tag, piece)) <= RECORD_LEN:
                contents[record].append((tag, piece))
                break
        else:
            stash.append((tag, piece))

records = [b"".join(entry(*each) for each in sorted(each)) for each in contents]
key_map = struct.pack("<HBBBI", 3, 2, PARTS, 1, PIECE_LEN) + SEED
key_map += struct.pack("<4QI", len(keys), RECORDS, RECORD_LEN, sum(map(len, records)), len(stash))
for tag, piece in sorted(stash):
    key_map += struct.pack("<QI", tag, len(piece)) + piece

lookups = [
    {
        "key": key.hex(),
        "candidates": [record for part in range(PARTS) for record in candidates(key, part)],
        "values": [value.hex() for value in keys[key]] if key in keys else None,
    }
    for key in [*keys, b"missing", b"key 40", b""]
]
answers = {
    "about": "A table by key under a cuckoo map of four parts and lists. Bytes are in hexadecimal. A lookup of `key` fetches all records that `candidates` names, two for each part, and finds "
    "`values` in pieces in them or in the stash of `key_map`; null is a miss.",
    "seed": SEED.hex(),
    "key_map": key_map.hex(),
    "records": [record.ljust(RECORD_LEN, b"\0").hex() for record in records],
    "lookups": lookups,
}
path = pathlib.Path(__file__).with_name("parts.json")
path.write_text(json.dumps(answers, indent=2, ensure_ascii=False) + "\n")
print(f"{len(stash)} pieces in the stash, {path.name} written")
