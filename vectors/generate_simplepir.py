#!/usr/bin/env python3
"""Writes vectors/simplepir.json: SimplePIR computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome numpy mpmath
Table, query and answer are given as BLAKE3 digests of their bytes; everything can be recomputed from the fields of a case:
  table     BLAKE3's output stream of the text "a table"
  table id  sixteen bytes 07
  matrix    AES-128 in counter mode (block = little-endian u64 counter, eight zero bytes), key = first half of
            BLAKE3 derive_key("privet 2026-11 simplepir public matrix", table id)
  coins     ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`
  error     eight words of coins, four for each of two samples of the discrete Gaussian of
            deviation 8.45: as a number of 128 bits, bit 0 is the sign, bits 1 to 63 and 65 to 127
            are a place below 2^126, and as many floor(2^126 P(|X| >= k)) as lie above it are the
            magnitude. The error is w1 X1 + w2 X2, the weights being the first of WEIGHTS at which
            columns and deviation give a probability of failure of 2^-65 at most
"""
import json, math, pathlib, struct
import numpy as np
from blake3 import blake3
from Crypto.Cipher import AES
from mpmath import mp, mpf, exp, floor

DIMENSION = 1024
WEIGHTS = [(1, 4), (1, 3), (1, 2), (1, 1)]

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
    variance = mpf("8.45") ** 2
    weight = lambda k: exp(-(mpf(k) ** 2) / (2 * variance))
    total = sum(weight(k) for k in range(-400, 401))
    result = []
    for k in range(1, 400):
        t = int(floor(2 * sum(weight(j) for j in range(k, 401)) / total * mpf(2) ** 126))
        if t == 0:
            return result
        result.append(t)

THRESHOLDS = thresholds()

def sample(words):
    """A sample of the base from four words of coins."""
    coins = sum(word << (32 * i) for i, word in enumerate(words))
    place = (coins >> 65 << 63) | (coins >> 1 & (2**63 - 1))
    magnitude = sum(place < t for t in THRESHOLDS)
    return -magnitude if coins & 1 else magnitude

def weights(columns, decryptions):
    """The widest error at which that many bytes fail with probability 2^-65 at most."""
    def failure(variance):
        exponent = 2.0**46 / (2 * 128**2 * variance * columns)
        return 1 - exponent / math.log(2) + math.log2(decryptions)
    return next(w for w in WEIGHTS if failure(8.45**2 * (w[0] ** 2 + w[1] ** 2)) <= -65)

def product(left, right):
    """Modulo 2^32, by half-words: their products, summed up to 2^20 times, are exact in double precision."""
    halves = lambda a: [(a.astype(np.uint64) >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.float64) for shift in (0, 16)]
    (a, b), (c, d) = halves(left), halves(right)
    low, middle = (a @ c).astype(np.uint64), (a @ d + b @ c).astype(np.uint64)
    return (low + (middle << np.uint64(16))) & np.uint64(0xFFFFFFFF)

def hexdigest(words):
    return blake3(words.astype("<u4").tobytes()).hexdigest()

def public_matrix(purpose, rows):
    key = blake3(b"\7" * 16, derive_key_context=purpose).digest()[:16]
    counters = b"".join(struct.pack("<QQ", i, 0) for i in range(rows * DIMENSION // 4))
    return np.frombuffer(AES.new(key, AES.MODE_ECB).encrypt(counters), dtype="<u4").reshape(rows, DIMENSION)

def encrypt(public, wanted, words, decryptions=1):
    """The unit vector with its 1 at `wanted`; `words` are the coins, those of the secret first, for
    an error at which `decryptions` bytes shall come out right. Returns query, secret, sum of
    errors."""
    columns = len(public)
    one, other = weights(columns, decryptions)
    secret = np.array(words[:DIMENSION], dtype=np.uint64)
    coins = [words[DIMENSION + 8 * j:DIMENSION + 8 * j + 8] for j in range(columns)]
    errors = [one * sample(c[:4]) + other * sample(c[4:]) for c in coins]
    query = (product(public, secret).astype(np.int64) + np.array(errors)) % 2**32
    query[wanted] = (query[wanted] + 2**24) % 2**32
    return query.astype(np.uint64), secret, sum(errors)

def decrypt(answer, mask, error_sum):
    noisy = (answer.astype(np.int64) - mask.astype(np.int64) - 128 * error_sum) % 2**32
    return ((noisy + 2**23) >> 24) % 256

def case(records, record_len, index, rng_seed):
    size = records * record_len
    table = blake3(b"a table").digest(length=size)
    per_column = min(max(1, math.floor(math.sqrt(size) / record_len + 0.5)), records)
    rows, columns = per_column * record_len, -(-records // per_column)
    padded = np.frombuffer(table.ljust(rows * columns, b"\0"), dtype=np.uint8)
    matrix = padded.reshape(columns, rows).T

    public = public_matrix("privet 2026-11 simplepir public matrix", columns)
    hint = product(matrix, public)

    column, slot = divmod(index, per_column)
    words = chacha20_words(bytes([rng_seed] * 32), DIMENSION + 8 * columns)
    query, secret, error_sum = encrypt(public, column, words)
    answer = product(matrix, query)

    first = slot * record_len
    record = bytes(decrypt(answer, product(hint, secret), error_sum)[first:first + record_len].astype(np.uint8))
    assert record == table[index * record_len:(index + 1) * record_len]
    return {
        "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed,
        "rows": rows, "columns": columns,
        "table_blake3": blake3(table).hexdigest(), "hint_blake3": hexdigest(hint),
        "query_blake3": hexdigest(query), "answer_blake3": hexdigest(answer), "record": record.hex(),
    }

def write(name, cases):
    path = pathlib.Path(__file__).with_name(name)
    path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
    print(f"{len(cases)} cases written to {path}")

if __name__ == "__main__":
    write("simplepir.json", [case(1, 1, 0, 1), case(100, 1, 99, 2), case(1000, 3, 500, 3), case(4097, 17, 4096, 4), case(257, 300, 128, 5)])
