#!/usr/bin/env python3
"""Writes vectors/simplepir.json: SimplePIR computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome numpy mpmath
Table, query and answer are given as BLAKE3 digests of their bytes; everything can be recomputed from the fields of a case:
  table     BLAKE3's output stream of the text "a table"
  table id  sixteen bytes 07
  matrix    AES-128 in counter mode (block = little-endian u64 counter, eight zero bytes), key = first half of
            BLAKE3 derive_key("privet 2026-11 simplepir public matrix", table id)
  coins     ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`
"""
import json, math, pathlib, struct
import numpy as np
from blake3 import blake3
from Crypto.Cipher import AES
from mpmath import mp, mpf, exp, floor

DIMENSION = 1024

def chacha20_words(key, count):
    def quarter(s, a, b, c, d):
        for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            v = s[z] ^ s[x]
            s[z] = ((v << r) | (v >> (32 - r))) & 0xFFFFFFFF
    out, counter = [], 0
    while len(out) < count:
        start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
        start += [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
        s = start[:]
        for _ in range(10):
            for q in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                      (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                quarter(s, *q)
        out += [(x + y) & 0xFFFFFFFF for x, y in zip(s, start)]
        counter += 1
    return out[:count]

def thresholds():
    mp.dps = 80
    sigma = mpf(64) / 10
    weight = lambda k: exp(-(mpf(k) ** 2) / (2 * sigma * sigma))
    total = sum(weight(k) for k in range(-300, 301))
    result = []
    for k in range(1, 300):
        t = int(floor(2 * sum(weight(j) for j in range(k, 301)) / total * mpf(2) ** 127 + mpf(1) / 2))
        if t == 0:
            return result
        result.append(t)

THRESHOLDS = thresholds()

def error(coins):
    magnitude = sum((coins >> 1) < t for t in THRESHOLDS)
    return -magnitude if coins & 1 else magnitude

def product(left, right):
    """Modulo 2^32, in 64-bit arithmetic that wraps."""
    with np.errstate(over="ignore"):
        return (left.astype(np.uint64) @ right.astype(np.uint64)) & np.uint64(0xFFFFFFFF)

def hexdigest(words):
    return blake3(words.astype("<u4").tobytes()).hexdigest()

def case(records, record_len, index, rng_seed):
    size = records * record_len
    table = blake3(b"a table").digest(length=size)
    per_column = min(max(1, math.floor(math.sqrt(size) / record_len + 0.5)), records)
    rows, columns = per_column * record_len, -(-records // per_column)
    padded = np.frombuffer(table.ljust(rows * columns, b"\0"), dtype=np.uint8)
    matrix = padded.reshape(columns, rows).T

    key = blake3(b"\7" * 16, derive_key_context="privet 2026-11 simplepir public matrix").digest()[:16]
    counters = b"".join(struct.pack("<QQ", i, 0) for i in range(columns * DIMENSION // 4))
    public = np.frombuffer(AES.new(key, AES.MODE_ECB).encrypt(counters), dtype="<u4").reshape(columns, DIMENSION)
    hint = product(matrix, public)

    words = chacha20_words(bytes([rng_seed] * 32), DIMENSION + 4 * columns)
    secret = np.array(words[:DIMENSION], dtype=np.uint64)
    coins = [sum(words[DIMENSION + 4 * j + i] << (32 * i) for i in range(4)) for j in range(columns)]
    errors = [error(c) for c in coins]
    query = (product(public, secret).astype(np.int64) + np.array(errors)) % 2**32
    column, slot = divmod(index, per_column)
    query[column] = (query[column] + 2**24) % 2**32
    answer = product(matrix, query.astype(np.uint64))

    first = slot * record_len
    noisy = (answer.astype(np.int64) - product(hint, secret).astype(np.int64) - 128 * sum(errors)) % 2**32
    record = bytes(((int(v) + 2**23) >> 24) % 256 for v in noisy[first:first + record_len])
    assert record == table[index * record_len:(index + 1) * record_len]
    return {
        "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed,
        "rows": rows, "columns": columns,
        "table_blake3": blake3(table).hexdigest(), "hint_blake3": hexdigest(hint),
        "query_blake3": hexdigest(query), "answer_blake3": hexdigest(answer), "record": record.hex(),
    }

cases = [case(1, 1, 0, 1), case(100, 1, 99, 2), case(1000, 3, 500, 3), case(4097, 17, 4096, 4), case(257, 300, 128, 5)]
path = pathlib.Path(__file__).with_name("simplepir.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
