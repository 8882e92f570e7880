#!/usr/bin/env python3
"""Writes vectors/finite_differences.json: finite differences with two servers computed a second time, from the definition, sharing no code with the Rust crates.

Needs: Python alone
m variables, degree D (odd), K = (D - 1) / 2. A word, a point and a difference are sets of variables, and as a number the sum of 2^j over the variables j in them. Everything can be recomputed from the fields of a case:
  table       byte k is the highest byte of the lowest four of (k + 1)^2 * 2654435761; with `one_bit` its lowest bit alone, so that records are bytes of value 0 or 1
  words       subsets of D variables, in ascending order as numbers; record i is the coefficient of the product of word i's variables
  value       of the polynomial at a point: the XOR of all records whose words are subsets of the point
  parameters  m, D, and 1 with `one_bit`, else 0: a byte each
  points      the values at all 2^m points in ascending order, and zeros up to 64 bytes; with `one_bit` bit i % 8 of byte i / 8 is the value at point i. Left out where they are many
  coins       ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`: r is the m highest bits of the first eight bytes, little-endian
  queries     r to the first server, r XOR word `index` to the second: as numbers, in as many bytes as m bits take, little-endian
  answers     the values at the query's point XOR e for all sets e of at most K variables, in ascending order of e; with `one_bit` packed like points, filled up with zeros
  record      from the answers alone: the XOR, over all subsets e of word `index` with at most K variables, of what both have for e
"""
import itertools, json, pathlib, struct

def table_bytes(size):
    return bytes(((k + 1) ** 2 * 2654435761 % 2 ** 32) >> 24 for k in range(size))

def chacha20_block(key):
    """The first 64 bytes of the stream."""
    state = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), 0, 0, 0, 0]
    work = list(state)
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                work[x] = (work[x] + work[y]) & 0xFFFFFFFF
                mixed = work[z] ^ work[x]
                work[z] = (mixed << left | mixed >> (32 - left)) & 0xFFFFFFFF
    return struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(work, state)))

# RFC 8439, appendix A.1, first vector: with counter and nonce zero, it does not matter that it has a shorter counter and a longer nonce.
assert chacha20_block(bytes(32)).hex().startswith("76b8e0ada0f13d90405d6ae55386bd28")

def subsets(variables, sizes):
    """As numbers, in ascending order."""
    return sorted(sum(1 << j for j in chosen) for size in sizes for chosen in itertools.combinations(variables, size))

def join(values, record_len, one_bit):
    if not one_bit:
        return b"".join(value.to_bytes(record_len, "little") for value in values)
    return sum(bit << place for place, bit in enumerate(values)).to_bytes(-(-len(values) // 8), "little")

def split(joined, count, record_len, one_bit):
    if not one_bit:
        return [int.from_bytes(joined[place * record_len:][:record_len], "little") for place in range(count)]
    return [(joined[place // 8] >> (place % 8)) & 1 for place in range(count)]

def case(m, D, records, record_len, index, rng_seed, one_bit=False, with_points=True):
    K = (D - 1) // 2
    table = table_bytes(records * record_len)
    if one_bit:
        table = bytes(byte & 1 for byte in table)
    words = subsets(range(m), [D])[:records]
    polynomial = list(zip(words, split(table, records, record_len, False)))

    def value(point):
        total = 0
        for word, record in polynomial:
            if word & point == word:
                total ^= record
        return total

    r = struct.unpack_from("<Q", chacha20_block(bytes([rng_seed] * 32)))[0] >> (64 - m)
    asked = [r, r ^ words[index]]
    ball = subsets(range(m), range(K + 1))
    answers = [join([value(point ^ e) for e in ball], record_len, one_bit) for point in asked]

    inside = [e for e in ball if e & words[index] == e]
    record = 0
    for answer in answers:
        entries = dict(zip(ball, split(answer, len(ball), record_len, one_bit)))
        for e in inside:
            record ^= entries[e]
    record = record.to_bytes(record_len, "little")
    assert record == table[index * record_len:][:record_len]

    made = {
        "variables": m, "degree": D, "one_bit": one_bit, "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed,
        "parameters": bytes([m, D, one_bit]).hex(),
    }
    if with_points:
        made["points"] = join([value(point) for point in range(1 << m)], record_len, one_bit).ljust(64, b"\0").hex()
    made["queries"] = [point.to_bytes(-(-m // 8), "little").hex() for point in asked]
    made["answers"] = [answer.hex() for answer in answers]
    made["record"] = record.hex()
    return made

cases = [
    # Fewer points than a cache line has bytes, as many, and more; not always as many records as there can be.
    case(2, 1, 2, 1, 1, 1), case(6, 3, 20, 1, 0, 2), case(8, 3, 56, 1, 55, 3), case(10, 5, 200, 1, 101, 4),
    case(3, 1, 3, 2, 2, 5), case(7, 3, 30, 2, 17, 6), case(4, 1, 4, 3, 0, 7), case(8, 3, 50, 3, 49, 8),
    case(2, 1, 1, 32, 0, 9), case(6, 3, 20, 32, 13, 10), case(5, 1, 5, 65, 3, 11),
    # Bits: less than a byte's worth of records, a line, several lines.
    case(3, 1, 3, 1, 2, 12, one_bit=True), case(6, 3, 20, 1, 19, 13, one_bit=True), case(9, 3, 84, 1, 43, 14, one_bit=True), case(11, 5, 400, 1, 218, 15, one_bit=True),
    # Points of megabytes, which are not all given.
    case(20, 5, 15_000, 1, 14_999, 16, with_points=False), case(18, 3, 816, 32, 500, 17, with_points=False), case(19, 3, 900, 3, 7, 18, with_points=False),
    case(24, 3, 2_000, 1, 1_234, 19, one_bit=True, with_points=False),
]
path = pathlib.Path(__file__).with_name("finite_differences.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
