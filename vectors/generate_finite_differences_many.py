#!/usr/bin/env python3
"""Writes vectors/finite_differences_many.json: finite differences with many servers computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome
s servers, the field of q elements, m variables, degree D, K = floor(D / s). Everything can be recomputed from the fields of a case:
  table    BLAKE3's output stream of the text "a table"
  words    subsets of m variables that have D elements, in ascending order of the sum of 2^j over the variables j in them; record i belongs to word i
  symbols  a record is cut into pieces of 16 bytes, the last of what is left; each is a little-endian number, and its symbols are its digits in base q, lowest
           first, as many as the largest number of so many bytes has
  entry    the symbols of all pieces in a row, as many to a byte as fit (5, 3, 2, 2, 2 for q = 3, 5, 7, 11, 13), the first as lowest digit in base q
  points   for every point z, in ascending order of the sum of z_j q^j, the entry of F(z), the sum over all records of symbols times the product of the word's z_j
  coins    ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`: for each variable, lowest first, two little-endian words of 64 bits,
           low and high; with u = low + 2^64 high the coordinate of r is u q / 2^128, rounded down twice: floor((high q + floor(low q / 2^64)) / 2^64)
  query    to server b: r + b x, as the number that a point has, eight bytes little-endian
  answer   the entries at the query's point plus 1 in each variable of U, for all sets U of at most K variables, ordered like words
  record   from the answers alone: values and Hasse derivatives of g(t) = F(r + t x) at t = 0 .. s - 1, and the coefficient of t^D of the polynomial that has them
"""
import itertools, json, pathlib, struct
from math import comb, prod
from blake3 import blake3
from Crypto.Cipher import ChaCha20

PER_BYTE = {3: 5, 5: 3, 7: 2, 11: 2, 13: 2}

def digits(size, q):
    count = 0
    while q ** count < 256 ** size:
        count += 1
    return count

def pieces(data):
    return [data[at:at + 16] for at in range(0, len(data), 16)]

def to_symbols(record, q):
    symbols = []
    for piece in pieces(record):
        number = int.from_bytes(piece, "little")
        symbols += [number // q ** k % q for k in range(digits(len(piece), q))]
    return symbols

def from_symbols(symbols, record_len, q):
    record = b""
    for piece in pieces(bytes(record_len)):
        count = digits(len(piece), q)
        record += sum(symbol * q ** k for k, symbol in enumerate(symbols[:count])).to_bytes(len(piece), "little")
        symbols = symbols[count:]
    return record

def pack(symbols, q):
    p = PER_BYTE[q]
    return bytes(sum(symbol * q ** k for k, symbol in enumerate(symbols[at:at + p])) for at in range(0, len(symbols), p))

def unpack(entry, count, q):
    return [byte // q ** k % q for byte in entry for k in range(PER_BYTE[q])][:count]

def subsets(m, sizes):
    """Ascending as numbers."""
    return sorted((set_ for size in sizes for set_ in itertools.combinations(range(m), size)), key=lambda set_: sum(1 << j for j in set_))

def hermite_top(s, q, K, D, values):
    """The coefficient of t^D, by solving for all of them; `values[b][k]` are Hasse derivatives."""
    size = s * (K + 1)
    rows = [[comb(j, k) * pow(b, j - k, q) % q if j >= k else 0 for j in range(size)] + [values[b][k]] for b in range(s) for k in range(K + 1)]
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = pow(rows[column][column], -1, q)
        rows[column] = [value * inverse % q for value in rows[column]]
        for row in range(size):
            if row != column:
                factor = rows[row][column]
                rows[row] = [(value - factor * other) % q for value, other in zip(rows[row], rows[column])]
    return rows[D][-1]

def case(s, q, m, D, records, record_len, index, rng_seed):
    K = D // s
    table = blake3(b"a table").digest(length=records * record_len)
    symbols = [to_symbols(table[i * record_len:][:record_len], q) for i in range(records)]
    count = len(symbols[0])
    words = subsets(m, [D])[:records]
    number = lambda z: sum(value * q ** j for j, value in enumerate(z))

    def value(z):
        products = [prod(z[j] for j in word) % q for word in words]
        return [sum(product * row[k] for product, row in zip(products, symbols)) % q for k in range(count)]

    every = [[z // q ** j % q for j in range(m)] for z in range(q ** m)]
    points = [pack(value(z), q) for z in every]

    stream = ChaCha20.new(key=bytes([rng_seed] * 32), nonce=bytes(8)).encrypt(bytes(16 * m))
    coins = [struct.unpack_from("<QQ", stream, 16 * j) for j in range(m)]
    r = [(high * q + (low * q >> 64)) >> 64 for low, high in coins]
    x = [int(j in words[index]) for j in range(m)]
    asked = [[(r[j] + b * x[j]) % q for j in range(m)] for b in range(s)]
    ball = subsets(m, range(K + 1))
    moved = lambda z, set_: [(value + (j in set_)) % q for j, value in enumerate(z)]
    answers = [b"".join(points[number(moved(z, set_))] for set_ in ball) for z in asked]

    size, record = len(points[0]), []
    entries = [{set_: unpack(answer[at * size:][:size], count, q) for at, set_ in enumerate(ball)} for answer in answers]
    for symbol in range(count):
        derivatives = [[sum((-1) ** (k - len(U)) * entries[b][U][symbol]
                            for T in itertools.combinations(words[index], k)
                            for u in range(k + 1) for U in itertools.combinations(T, u)) % q
                        for k in range(K + 1)] for b in range(s)]
        record.append(hermite_top(s, q, K, D, derivatives))
    record = from_symbols(record, record_len, q)
    assert record == table[index * record_len:][:record_len]
    return {
        "servers": s, "field": q, "variables": m, "degree": D, "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed,
        "table_blake3": blake3(table).hexdigest(), "points_blake3": blake3(b"".join(points)).hexdigest(),
        "queries": [struct.pack("<Q", number(z)).hex() for z in asked],
        "answers": [answer.hex() for answer in answers], "record": record.hex(),
    }

cases = [
    case(3, 3, 7, 3, 35, 5, 20, 1), case(3, 3, 6, 4, 15, 16, 14, 2), case(3, 3, 8, 6, 20, 1, 7, 3), case(3, 5, 5, 3, 9, 17, 0, 4),
    case(4, 5, 4, 2, 6, 33, 3, 5), case(5, 5, 5, 5, 1, 12, 0, 6), case(5, 7, 3, 1, 3, 8, 2, 7), case(6, 7, 4, 2, 5, 1, 1, 8),
    case(8, 11, 3, 2, 3, 40, 1, 9), case(3, 13, 3, 3, 1, 3, 0, 10), case(13, 13, 2, 1, 2, 20, 1, 11),
]
path = pathlib.Path(__file__).with_name("finite_differences_many.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
