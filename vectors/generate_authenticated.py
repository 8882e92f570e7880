#!/usr/bin/env python3
"""Writes vectors/authenticated.json: authenticated tables computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3
Bytes are in hexadecimal. For each table by index, whose records are its values (the layout of one is the four bytes 01 00 00 00):
  records    as they were before they were authenticated
  served     the same, each followed by its path
  layout     what clients download: it holds the Merkle root
  root       what `privet build --authenticate` prints
"""
import json, pathlib, struct
from blake3 import blake3

LEAF = blake3(b"", derive_key_context="privet 2026-11 merkle leaf").digest()
NODE = blake3(b"", derive_key_context="privet 2026-11 merkle node").digest()
ZERO = bytes(32)

def above(level):
    """The level above, of a tree filled up to a power of two; None: no record below."""
    join = lambda left, right: left and blake3(left + (right or ZERO), key=NODE).digest()
    return [join(*pair) for pair in zip(level[::2], level[1::2])]

def table(count, record_len):
    stream = blake3(b"an authenticated table").digest(length=count * record_len)
    records = [stream[i:i + record_len] for i in range(0, len(stream), record_len)]
    width = 1
    while width < count:
        width *= 2
    level = [blake3(struct.pack("<Q", i) + r, key=LEAF).digest() for i, r in enumerate(records)]
    level += [None] * (width - count)
    served, height = list(records), 0
    while len(level) > 1:
        served = [s + (level[(i >> height) ^ 1] or ZERO) for i, s in enumerate(served)]
        level, height = above(level), height + 1
    layout = struct.pack("<H", 2) + level[0] + bytes([1, 0, 0, 0])
    shape = struct.pack("<QQ", count, len(served[0]))
    root = blake3(shape + blake3(layout).digest(), derive_key_context="privet table root v1")
    return {
        "records": [r.hex() for r in records],
        "served": [s.hex() for s in served],
        "layout": layout.hex(),
        "root": root.hexdigest(),
    }

answers = [table(count, record_len) for count, record_len in [(1, 5), (2, 32), (3, 2), (6, 9), (9, 1)]]
path = pathlib.Path(__file__).with_name("authenticated.json")
path.write_text(json.dumps(answers, indent=1) + "\n")
